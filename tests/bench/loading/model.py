"""A Llama of random bf16 weights, in files of half a gigabyte: python -m tests.bench.loading.model OUT LAYERS

22 layers have 1.1B parameters. Made one tensor at a time in a process of its own, so that the rest stays small.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from training.samples import tiny

FILE_BYTES = 500_000_000


def config(layers: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=32000,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=4,
        tie_word_embeddings=False,
        dtype="bfloat16",
        architectures=["LlamaForCausalLM"],
    )


def build(out: Path, layers: int) -> None:
    """Write configuration, tokenizer and weights."""
    out.mkdir(parents=True)
    tiny._tokenizer().save_pretrained(out)
    config(layers).save_pretrained(out)
    with torch.device("meta"):
        state = LlamaForCausalLM(config(layers)).state_dict()
    generator, index, held = torch.Generator().manual_seed(1), {}, {}
    for name, tensor in state.items():
        held[name] = torch.empty(tensor.shape, dtype=torch.bfloat16).uniform_(-0.03, 0.03, generator=generator)
        if sum(t.nbytes for t in held.values()) >= FILE_BYTES or name == list(state)[-1]:
            file = f"model-{len(set(index.values())) + 1:05}.safetensors"
            save_file(held, out / file, {"format": "pt"})
            index |= dict.fromkeys(held, file)
            held = {}
    (out / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


if __name__ == "__main__":
    build(Path(sys.argv[1]), int(sys.argv[2]))
