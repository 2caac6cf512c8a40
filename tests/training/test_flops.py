"""The figures behind MFU: chips by the names that torch gives them, and FLOPs beside torch's own count."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from training.spec.chips import peak
from training.spec.flops import Work
from training.watch.work import work_of

ROWS, LENGTH = 2, 48


@pytest.mark.parametrize(
    ("name", "tera"),
    [
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA A100 80GB PCIe", 312),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA H200", 989),
        ("NVIDIA L40S", 362),
        ("NVIDIA L4", 121),
        ("NVIDIA A10", 125),
        ("NVIDIA A10G", 70),
        ("NVIDIA GeForce RTX 4090", 165.2),
    ],
)
def test_a_chip_is_known_by_its_name(name: str, tera: float) -> None:
    assert peak(name, "bfloat16") == tera * 1e12


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("NVIDIA GeForce GTX 1080", "float16"),
        ("NVIDIA A100-SXM4-80GB", "float32"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "bfloat16"),
        ("Tesla V100-SXM2-32GB", "bfloat16"),
        ("", "bfloat16"),
    ],
)
def test_no_figure_where_the_peak_is_not_known(name: str, dtype: str) -> None:
    assert peak(name, dtype) is None


def test_a_v100_has_its_peak_in_fp16() -> None:
    assert peak("Tesla V100-SXM2-32GB", "float16") == 125e12


def llama(*, tied: bool = False) -> LlamaForCausalLM:
    # eager: torch counts its products one by one, where a fused kernel is counted by a rule of its own
    config = LlamaConfig(
        vocab_size=96,
        hidden_size=32,
        intermediate_size=80,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=tied,
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config)


def counted(model: Any) -> int:
    """Return the FLOPs that torch counts in a forward and backward pass, without those of rotary positions."""
    ids = torch.arange(ROWS * LENGTH).reshape(ROWS, LENGTH) % 96
    with FlopCounterMode(display=False) as counter:
        model(input_ids=ids, labels=ids).loss.backward()
    found = counter.get_flop_counts()
    rotary = sum(sum(ops.values()) for name, ops in found.items() if name.endswith("rotary_emb"))
    return int(counter.get_total_flops() - rotary)


def told(work: Work | None) -> float:
    assert work is not None
    return work.flops(ROWS * LENGTH, ROWS * LENGTH**2)


@pytest.mark.parametrize("tied", [False, True])
def test_a_full_fine_tune_takes_what_torch_counts(tied: bool) -> None:
    model = llama(tied=tied)
    assert told(work_of(model, LENGTH)) == counted(model)


def test_a_frozen_base_takes_what_torch_counts() -> None:
    """But for the products that lead to the first layer's input, which needs no gradient: the formula has them."""
    model = get_peft_model(llama(), LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.0))
    model.config._attn_implementation = "eager"
    first = model.base_model.model.model.layers[0].self_attn
    spared = [p for part in (first.q_proj, first.k_proj, first.v_proj) for p in part.parameters()]
    # of an adapter's two factors the first one reads the input
    spared = [p for p in spared if p.shape[-1] == 32]
    assert told(work_of(model, LENGTH)) == counted(model) + 2 * ROWS * LENGTH * sum(p.numel() for p in spared)


def test_no_figure_where_the_formula_does_not_hold() -> None:
    config = MistralConfig(
        vocab_size=96,
        hidden_size=32,
        intermediate_size=80,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=64,
    )
    model = MistralForCausalLM(config)
    assert work_of(model, 65) is None
    assert work_of(model, 64) is not None
    model.config.num_local_experts = 8
    assert work_of(model, 64) is None
