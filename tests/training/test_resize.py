"""A tokenizer with more entries than the model has rows: resized once, then it trains."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from tests.training.attempts import Attempts
from training.loading.checks import check_vocabulary
from training.resize import main


@pytest.fixture
def grown(attempts: Attempts, tmp_path: Path) -> Path:
    """The tiny model in bf16, its tokenizer with one entry more."""
    folder = tmp_path / "grown"
    AutoModelForCausalLM.from_pretrained(attempts.model, dtype=torch.bfloat16).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(attempts.model)
    tokenizer.add_tokens(["<|one more|>"])
    tokenizer.save_pretrained(folder)
    return folder


def test_the_resized_model_fits_and_keeps_its_rows(grown: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["--model", str(grown), "--out", str(out)]) == 0
    config = AutoConfig.from_pretrained(out)
    check_vocabulary(config, AutoTokenizer.from_pretrained(out), str(out))
    before, after = (AutoModelForCausalLM.from_pretrained(folder, dtype="auto") for folder in (grown, out))
    old, new = (model.get_input_embeddings().weight for model in (before, after))
    assert (new.shape[0], new.dtype, config.vocab_size) == (4160, torch.bfloat16, 4160)
    assert config.unpadded_vocab_size == 4097, "an export leaves out the rest"
    assert torch.equal(new[:4096], old)
    assert new[4096:].isfinite().all()
    assert after.get_output_embeddings().weight is new


def test_it_refuses_where_there_is_nothing_to_do(attempts: Attempts, tmp_path: Path, capsys: object) -> None:
    assert main(["--model", str(attempts.model), "--out", str(tmp_path / "out")]) == 1
    assert "Train it as is" in capsys.readouterr().err  # type: ignore[attr-defined]
    assert not (tmp_path / "out").exists()


def test_it_writes_over_nothing(grown: Path, capsys: object) -> None:
    assert main(["--model", str(grown), "--out", str(grown)]) == 1
    assert "exists" in capsys.readouterr().err  # type: ignore[attr-defined]
