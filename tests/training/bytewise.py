"""A small Llama with random weights over a tokenizer of single bytes: quickly made, and what it says is no UTF-8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

POSITIONS = 512
CHAT = (
    "{% for m in messages %}{% if m['role'] == 'system' and m['content'] == 'no' %}"
    "{{ raise_exception('no such system') }}{% endif %}[{{ m['role'] }}:{{ m['content'] }}]{% endfor %}"
)


def tokenizer(template: str | None = CHAT) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    raw = Tokenizer(models.BPE(vocab=alphabet | {"<end>": len(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<end>", pad_token="<end>")
    made.chat_template = template
    return made


def build(folder: Path, seed: int = 0, *, dtype: str = "float32", template: str | None = CHAT) -> Path:
    """Write model and tokenizer into `folder`, and return it."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    made = tokenizer(template)
    config = LlamaConfig(
        vocab_size=len(made), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=POSITIONS, initializer_range=0.5,
        bos_token_id=None, eos_token_id=made.eos_token_id, pad_token_id=made.pad_token_id,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config).to(getattr(torch, dtype))
    model.save_pretrained(folder)
    made.save_pretrained(folder)
    return folder
