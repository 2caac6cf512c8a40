"""The parts of an adapter's training, each by itself."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from tests.training.launch import recipe
from training.adapters import dtypes, names
from training.adapters.gradients import GradientCheck, sentence, without_gradient
from training.adapters.quantise import check_plain, quantisation, settings
from training.adapters.wrap import adapt
from training.endings import Ended
from training.ranks import Ranks
from training.recompute import keep_random_state
from training.spec.job import export_settings
from training.spec.lint import Refused, problems_on
from training.spec.recipe import Recipe
from training.spec.sections.method import Method
from training.watch.brake import Brake


def llama(*, tied: bool = False) -> LlamaForCausalLM:
    torch.manual_seed(3)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, tie_word_embeddings=tied,
        )
    )  # fmt: skip


def lora(**fields: object) -> Recipe:
    return recipe(method={"kind": "lora", "rank": 2, **fields})


def test_it_works() -> None:
    model = adapt(llama(), lora(rank_stabilised=True, alpha=6))
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert len(trained) == 2 * 2 * 7
    assert not any("lm_head" in name or "embed" in name for name in trained)
    layer = model.get_base_model().model.layers[0].mlp.up_proj
    assert layer.scaling["default"] == pytest.approx(6 / 2**0.5)


def test_the_first_values_depend_on_the_seed_alone() -> None:
    one = adapt(llama(), lora()).state_dict()
    torch.rand(7)
    two = adapt(llama(), lora()).state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
    other = adapt(llama(), recipe(method={"kind": "lora", "rank": 2}, optimisation={"seed": 5})).state_dict()
    assert any(not torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"target_modules": ["q_porj"]}, "no layer q_porj. Did you mean q_proj"),
        ({"target_modules": ["lm_head"]}, "adapter on the head lm_head is never trained"),
        ({"target_modules": ["embed_tokens"]}, "embed_tokens is a Embedding, no linear layer"),
        ({"modules_to_save": ["head"]}, "the model has no layer head"),
    ],
)
def test_layers_that_are_not_there_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(Refused, match=words):
        adapt(llama(), lora(**fields))


def test_an_end_of_tied_embeddings_is_not_trained_whole() -> None:
    with pytest.raises(Refused, match="ties lm_head to its other end"):
        adapt(llama(tied=True), lora(modules_to_save=["lm_head"]))
    assert adapt(llama(), lora(modules_to_save=["lm_head"]))


@pytest.mark.parametrize(
    ("changes", "base", "adapter"),
    [
        ({"precision": "bf16"}, torch.bfloat16, torch.float32),
        ({"precision": "fp32"}, torch.float32, torch.float32),
        ({"precision": "bf16", "fsdp": {"version": 1}}, torch.float32, torch.float32),
        ({"precision": "bf16", "master_weights": "bf16"}, torch.bfloat16, torch.bfloat16),
        ({"precision": "bf16", "method": {"kind": "qlora"}}, torch.bfloat16, torch.bfloat16),
    ],
)
def test_the_rule_for_number_formats(changes: dict[str, object], base: torch.dtype, adapter: torch.dtype) -> None:
    asked = recipe(**{"method": {"kind": "lora"}, **changes})
    assert (dtypes.base_dtype(asked), dtypes.adapter_dtype(asked)) == (base, adapter)


def test_under_fsdp1_the_first_parameter_of_another_format_is_named() -> None:
    asked = recipe(method={"kind": "lora", "rank": 2}, fsdp={"version": 1})
    assert adapt(llama(), asked)
    reason = r"layers\.0\.self_attn\.q_proj\.lora_A\.default\.weight is torch\.float32 and .*embed_tokens\.weight is"
    with pytest.raises(Refused, match=reason):
        adapt(llama().to(torch.bfloat16), asked)


def test_qlora_is_refused_without_a_gpu_and_rendered_for_one() -> None:
    method = {"kind": "qlora", "quantisation": "fp4", "double_quantisation": False}
    with pytest.raises(Refused, match="set precision to bf16"):
        recipe(method=method)  # in fp32
    asked = recipe(method=method, precision="bf16")
    assert [p.field for p in problems_on(asked, accelerator=False)] == ["method.kind"]
    assert not problems_on(asked, accelerator=True)
    rendered = settings(asked.method).to_dict()
    assert rendered["load_in_4bit"]
    assert (rendered["bnb_4bit_quant_type"], rendered["bnb_4bit_use_double_quant"]) == ("fp4", False)
    assert rendered["bnb_4bit_compute_dtype"] == rendered["bnb_4bit_quant_storage"] == "bfloat16"
    assert quantisation(Method(kind="lora")) is None


def test_a_base_that_is_quantised_already_is_refused() -> None:
    config = LlamaConfig()
    check_plain(config)
    config.quantization_config = {"quant_method": "gptq", "bits": 4}  # as a config.json has it
    with pytest.raises(Refused, match=r"quantised weights \(gptq\). Name the unquantised model"):
        check_plain(config)


def test_a_4_bit_base_needs_an_adapter() -> None:
    with pytest.raises(Refused, match="quantisation belongs to qlora"):
        recipe(method={"kind": "full", "quantisation": "fp4"})


def test_names_by_table() -> None:
    table = [
        ("base_model.model.model.norm.weight", "model.norm.weight"),
        ("base_model.model.lm_head.original_module.weight", "lm_head.weight"),
        ("base_model.model.lm_head.modules_to_save.default.weight", "lm_head.weight"),
        ("base_model.model.x._checkpoint_wrapped_module.q.base_layer.bias", "x.q.bias"),
        ("base_model.model.x.q.lora_A.default.weight", None),
        ("_fsdp_wrapped_module.model.norm.weight", "model.norm.weight"),
    ]
    assert [names.base_name(live) for live, _ in table] == [wanted for _, wanted in table]
    dirty = "_orig_mod.base_model.model.x._fsdp_wrapped_module.q.lora_B.default.weight"
    assert names.saved_name(dirty) == names.saved_name("base_model.model.x.q.lora_B.weight")


def test_names_are_pefts_own() -> None:
    from peft import get_peft_model_state_dict

    model = adapt(llama(), lora(modules_to_save=["lm_head"]))
    ours = {names.saved_name(name) for name, p in model.named_parameters() if p.requires_grad}
    assert ours == set(get_peft_model_state_dict(model))


class Alone:
    """One rank among none."""

    def gather(self, value: object) -> list[object]:
        return [value]


def watch() -> tuple[Ranks, Brake]:
    alone: Any = Alone()
    return alone, Brake(Path("none"), 2, alone)


def test_a_step_that_is_left_out_says_nothing_and_the_next_is_looked_at() -> None:
    model = adapt(llama(), lora())
    ranks, brake = watch()
    check = GradientCheck(ranks, brake)
    brake.left_out = True
    check.on_pre_optimizer_step(None, None, None, model=model)
    brake.left_out = False
    with pytest.raises(Ended, match="28 trained parameters got no gradient"):
        check.on_pre_optimizer_step(None, None, None, model=model)


@pytest.mark.parametrize("impl", [CheckpointImpl.NO_REENTRANT, CheckpointImpl.REENTRANT])
def test_activation_checkpointing_leaves_every_trained_weight_its_gradient_or_is_found_out(
    impl: CheckpointImpl,
) -> None:
    model = adapt(llama(), lora())
    layers = model.get_base_model().model.layers
    for number, layer in enumerate(layers):
        layers[number] = checkpoint_wrapper(layer, checkpoint_impl=impl)
    ids = torch.arange(12)[None]
    loss = model(input_ids=ids, labels=ids).loss
    check = GradientCheck(*watch())
    if impl is CheckpointImpl.NO_REENTRANT:
        loss.backward()
        check.on_pre_optimizer_step(None, None, None, model=model)
        return
    if loss.requires_grad:
        loss.backward()
    with pytest.raises(Ended, match="trained parameters got no gradient in the first step: base_model"):
        check.on_pre_optimizer_step(None, None, None, model=model)


def test_the_names_without_a_gradient_are_counted() -> None:
    model = adapt(llama(), lora())
    assert len(without_gradient(model)) == 28
    assert sentence(without_gradient(model)).endswith("and 23 more")


def test_recomputed_layers_drop_what_the_forward_dropped() -> None:
    plain = adapt(llama(), lora(dropout=0.5)).train()
    for name, parameter in plain.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    wrapped = copy.deepcopy(plain)
    layers = wrapped.get_base_model().model.layers
    for number, layer in enumerate(layers):
        layers[number] = checkpoint_wrapper(layer, preserve_rng_state=False)  # as accelerate does
    assert not _same(_gradients(plain), _gradients(wrapped)), "or there would be nothing to mend"
    assert keep_random_state(wrapped) == 2
    assert _same(_gradients(plain), _gradients(wrapped))


def _gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    model.zero_grad()
    torch.manual_seed(11)
    ids = torch.arange(12)[None]
    model(input_ids=ids, labels=ids).loss.backward()
    return {names.clean(n): p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def _same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(map(partial(torch.allclose, rtol=1e-5), one.values(), two.values()))


def test_gpt2_keeps_its_layers_the_other_way_round() -> None:
    model = adapt(GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=32, n_head=2, vocab_size=64)), lora())
    assert model.peft_config["default"].fan_in_fan_out


def test_the_recipe_says_how_a_run_is_exported() -> None:
    usual = {
        "trust_remote_code": False, "template": "", "dtype": "base", "adapter": "none",
        "max_shard_bytes": 5_000_000_000,
    }  # fmt: skip
    assert export_settings(recipe()) == usual
    assert export_settings(lora())["adapter"] == "merged"
    assert export_settings(recipe(data={"template": "{{ messages }}"}))["template"] == "{{ messages }}"
    asked = recipe(
        method={"kind": "lora"}, export={"adapter": "adapter", "shard_gigabytes": 0.0015, "dtype": "float32"}
    )
    assert export_settings(asked) == {**usual, "dtype": "float32", "adapter": "adapter", "max_shard_bytes": 1_500_000}
