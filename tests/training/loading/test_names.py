"""Which stored tensor belongs where: ties, renames, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, BertConfig, BertForMaskedLM, LlamaConfig, MixtralConfig, PreTrainedModel

from tests.training.attempts import Attempts
from training.loading.empty import empty_model
from training.loading.equal import computed_buffers
from training.loading.names import placed
from training.loading.stored import Stored, Unfit
from training.spec.lint import Refused

SMALL = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}


def model(config: object | None = None, **changes: object) -> PreTrainedModel:
    config = config or LlamaConfig(**SMALL | {"tie_word_embeddings": True} | changes)
    return empty_model(config, dtype=torch.float32, attention="eager")


def files(names: dict[str, tuple[int, ...]]) -> dict[str, Stored]:
    return {name: Stored(Path("model.safetensors"), name, torch.float32, shape, 0) for name, shape in names.items()}


def shapes(of: PreTrainedModel, *, without: str = "lm_head.weight") -> dict[str, tuple[int, ...]]:
    return {name: tuple(t.shape) for name, t in of.state_dict().items() if name != without}


def test_an_empty_model_is_as_a_loaded_one(attempts: Attempts) -> None:
    """Its buffers are computed, its ties kept, and its parameters have addresses of their own."""
    from transformers import AutoModelForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(attempts.model, dtype=torch.float32)
    empty = empty_model(AutoConfig.from_pretrained(attempts.model), dtype=torch.float32, attention="sdpa")
    assert [(n, p.shape, p.dtype, p.requires_grad) for n, p in empty.named_parameters()] == [
        (n, p.shape, p.dtype, p.requires_grad) for n, p in loaded.named_parameters()
    ]
    ours, theirs = computed_buffers(empty), computed_buffers(loaded)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert empty.get_input_embeddings().weight is empty.get_output_embeddings().weight
    assert len({p.data_ptr() for p in empty.parameters()}) == len(list(empty.parameters()))


def test_a_tied_head_needs_no_tensor_of_its_own() -> None:
    there = model()
    assert placed(there, files(shapes(there))).keys() == shapes(there).keys()


def test_only_the_tied_head_stored_is_enough() -> None:
    there = model()
    found = placed(there, files(shapes(there, without="model.embed_tokens.weight")))
    assert "lm_head.weight" in found


def test_tied_and_stored_twice_is_for_another_way() -> None:
    there = model()
    with pytest.raises(Unfit, match="tied in the model and stored twice"):
        placed(there, files(shapes(there, without="")))


def test_a_missing_tensor_is_refused_with_its_name() -> None:
    there = model()
    with pytest.raises(Refused, match=r"1 tensors of the model are not in its files: model.norm.weight"):
        placed(there, files({name: shape for name, shape in shapes(there).items() if name != "model.norm.weight"}))


def test_a_tensor_left_over_is_refused_with_its_name() -> None:
    there = model()
    with pytest.raises(Refused, match=r"1 tensors in the files are not of this model: model.extra.weight"):
        placed(there, files(shapes(there) | {"model.extra.weight": (1,)}))


def test_rotary_frequencies_of_old_files_are_left_alone() -> None:
    there = model()
    old = {"model.layers.0.self_attn.rotary_emb.inv_freq": (4,)}
    assert placed(there, files(shapes(there) | old)).keys() == shapes(there).keys()


def test_another_shape_is_refused() -> None:
    there = model()
    with pytest.raises(Refused, match=r"model.norm.weight has shape \[17\] in the files and \[16\] in the model"):
        placed(there, files(shapes(there) | {"model.norm.weight": (17,)}))


def test_the_base_models_files_fit_with_its_prefix_added() -> None:
    there = model()
    stored = files({name.removeprefix("model."): shape for name, shape in shapes(there).items()})
    assert {name: where.key for name, where in placed(there, stored).items()} == {
        name: name.removeprefix("model.") for name in shapes(there)
    }


def test_renames_of_old_files_are_followed() -> None:
    config = BertConfig(
        vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, is_decoder=True
    )
    there = BertForMaskedLM(config)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): shape
        for name, shape in shapes(there, without="cls.predictions.decoder.weight").items()
        if name != "cls.predictions.decoder.bias"
    }
    assert any("gamma" in name for name in old)
    found = placed(there, files(old))
    assert found["bert.embeddings.LayerNorm.weight"].key == "bert.embeddings.LayerNorm.gamma"


def test_fused_experts_are_for_another_way() -> None:
    there = model(MixtralConfig(**SMALL, num_local_experts=2))
    stored = dict(shapes(there, without=""))
    for name in [name for name in stored if ".experts." in name]:
        del stored[name]
    stored |= {
        f"model.layers.{layer}.block_sparse_moe.experts.{expert}.{part}.weight": (24, 16)
        for layer in range(2) for expert in range(2) for part in ("w1", "w2", "w3")
    }  # fmt: skip
    with pytest.raises(Unfit, match="is computed out of stored tensors"):
        placed(there, files(stored))
