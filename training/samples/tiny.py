"""A 5M-parameter Llama with random weights: the real architecture, small enough to train in seconds.

The tokenizer is a byte-level BPE of 4,096 entries, trained on the standard library's own source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .stdlib import sources

SEED = 20
VOCABULARY = 4096
CONTEXT = 2048
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>")
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# What the tokenizer learns from: enough text for 4,096 entries, little enough for a second of work.
TEXT_BYTES = 2_000_000


def build(folder: Path) -> None:
    """Write model (fp32), tokenizer with chat template and generation config into `folder`."""
    tokenizer = _tokenizer()
    _model(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    raw.train_from_iterator(_text(), trainer)
    end, start, turn_end, pad = SPECIAL
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token=start,
        eos_token=turn_end,
        pad_token=pad,
        unk_token=end,
        model_max_length=CONTEXT,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _text() -> list[str]:
    """Return the first TEXT_BYTES of the standard library, whole files in a fixed order."""
    out, size = [], 0
    for _, text in sources():
        out.append(text)
        size += len(text)
        if size >= TEXT_BYTES:
            break
    return out


def _model(tokenizer: Any) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=5,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return LlamaForCausalLM(config)
