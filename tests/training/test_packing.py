"""Samples packed into one row do not see each other, with the attention that packing trains with here."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from tests.training.attempts import Attempts

FIRST, SECOND = list(range(10, 20)), list(range(30, 45))


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_sample_does_not_see_its_neighbour(attempts: Attempts, attention: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(attempts.model, attn_implementation=attention).eval()
    collate = DataCollatorForLanguageModeling(pad_token_id=3, padding_free=True)

    def second_after(first: list[int]) -> torch.Tensor:
        ids = first + SECOND
        batch = collate([{"input_ids": ids, "labels": ids, "seq_lengths": [len(first), len(SECOND)]}])
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
