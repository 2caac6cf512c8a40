"""Samples packed into one row do not see each other, and a model in which they would is not trained so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BloomConfig, MambaConfig
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from tests.training import ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import of_kind, recipe
from training.data.isolation import check_isolation, leak
from training.spec.lint import Refused

COLLATE = DataCollatorForLanguageModeling(pad_token_id=3, padding_free=True)
FIRST, SECOND = list(range(10, 20)), list(range(30, 45))


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_sample_does_not_see_its_neighbour(attempts: Attempts, attention: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(attempts.model, attn_implementation=attention).eval()

    def second_after(first: list[int]) -> torch.Tensor:
        ids = first + SECOND
        batch = COLLATE([{"input_ids": ids, "labels": ids, "seq_lengths": [len(first), len(SECOND)]}])
        batch.pop("labels")
        with torch.no_grad():
            logits: torch.Tensor = model(**batch, use_cache=False).logits[0, len(first) :]
        return logits

    before = second_after(FIRST)
    after = second_after([*FIRST[:3], 99, *FIRST[4:]])
    assert torch.equal(before, after)
    with torch.no_grad():
        alone = model(input_ids=torch.tensor([SECOND]), use_cache=False).logits[0]
    assert torch.allclose(before, alone, atol=1e-4)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_a_model_that_isolates_passes(attempts: Attempts, attention: str, dtype: torch.dtype) -> None:
    model = AutoModelForCausalLM.from_pretrained(attempts.model, attn_implementation=attention, dtype=dtype).train()
    state = torch.get_rng_state()
    assert leak(model, COLLATE, model.config.vocab_size, "cpu") == 0.0
    check_isolation(model, COLLATE, model.config, "cpu")
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


def test_the_wrong_collator_is_seen_to_leak(attempts: Attempts) -> None:
    model = AutoModelForCausalLM.from_pretrained(attempts.model, attn_implementation="sdpa")
    with pytest.raises(Refused, match=r"data.packing: samples packed into one row see each other in llama with sdpa"):
        check_isolation(model, DataCollatorForLanguageModeling(pad_token_id=3), model.config, "cpu")


@pytest.mark.parametrize(
    "config",
    [
        MambaConfig(vocab_size=256, hidden_size=32, num_hidden_layers=1),
        BloomConfig(vocab_size=256, hidden_size=32, n_layer=2, n_head=2),
    ],
    ids=lambda config: str(config.model_type),
)
def test_models_that_ignore_positions_are_refused(config: Any) -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with pytest.raises(Refused, match="see each other in"):
        check_isolation(model, COLLATE, config, "cpu")


@pytest.mark.ranks
def test_a_run_that_would_leak_ends_before_its_first_step(attempts: Attempts, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(attempts.model)
    tokenizer.save_pretrained(tmp_path / "model")
    config = BloomConfig(vocab_size=len(tokenizer), hidden_size=32, n_layer=2, n_head=2)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "model")
    launch = attempts.launch("leaks", nodes=1, processes=2, model=tmp_path / "model")
    plans = launch.plans(recipe(model={"attention": "eager"}, data={"packing": True}))
    assert any(ranks_harness.run(plans))
    (finished,) = of_kind(plans[0].folder, "finished")
    assert finished.data["reason"] == "configuration"
    assert "see each other in bloom" in finished.data["text"], finished.data
    assert not of_kind(plans[0].folder, "metrics")
