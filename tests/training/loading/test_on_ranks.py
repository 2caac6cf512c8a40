"""Loading on three real ranks: each way gives what accelerate's own gives, to the last digit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.training.attempts import Attempts
from tests.training.loading import ranks

pytestmark = pytest.mark.ranks
OURS = ("auto", "broadcast")


@pytest.fixture(scope="module")
def told(attempts: Attempts, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function giving what each rank wrote of a case, by rank."""
    out: Path = tmp_path_factory.mktemp("loading")
    for kind in ("tied", "untied"):
        ranks.build(out / kind, attempts.model, tied=kind == "tied")
    ranks.pickled(out / "pickled", out / "tied")
    ranks.tuned(out / "tuned", out / "untied")
    ranks.configured(out / "configured", out / "untied")
    ranks.tuned(out / "tied-tuned", out / "tied")
    ranks.pickled(out / "tuned-pickled", out / "tied-tuned")
    ranks.run(out)
    return lambda case: [json.loads((out / f"{case}-{rank}.json").read_text()) for rank in range(ranks.RANKS)]


@pytest.mark.parametrize("way", OURS)
@pytest.mark.parametrize("kind", ["tied", "untied"])
def test_weights_losses_and_norms_equal_accelerates(told: Any, kind: str, way: str) -> None:
    for theirs, ours in zip(told(f"{kind}-accelerate"), told(f"{kind}-{way}"), strict=True):
        assert ours["weights"] == theirs["weights"]
        assert ours["steps"] == theirs["steps"]
    assert len({json.dumps(rank["weights"]) for rank in told(f"{kind}-{way}")}) == ranks.RANKS


def test_each_way_was_really_taken(told: Any) -> None:
    assert {rank["way"] for rank in told("tied-auto")} == {"slices"}
    assert {rank["way"] for rank in told("tied-broadcast")} == {"broadcast"}
    assert {rank["way"] for rank in told("tied-accelerate")} == {"accelerate"}


@pytest.mark.parametrize("way", ["auto", "broadcast", "accelerate"])
def test_tied_ends_are_one_tensor_and_stay_equal_after_steps(told: Any, way: str) -> None:
    for rank in told(f"tied-{way}"):
        assert (rank["tied"], rank["tied_after"], rank["head_is_embedding"]) == (True, True, True)
    assert not any(rank["tied"] or rank["head_is_embedding"] for rank in told(f"untied-{way}"))


def test_rows_that_do_not_divide_are_all_there(told: Any) -> None:
    assert [rank["rows"] for rank in told("tied-auto")] == [1366, 1366, 1365]


def test_the_folder_on_the_head_alone_is_enough(told: Any) -> None:
    """The others get configuration and tokenizer, and each its rows."""
    for theirs, ours in zip(told("tied-accelerate"), told("head-only"), strict=True):
        assert (ours["way"], ours["weights"], ours["steps"]) == ("broadcast", theirs["weights"], theirs["steps"])
    assert "rank 1 does not see the same model files" in told("head-only")[0]["why"]


def test_a_fine_tune_on_another_node_is_not_mixed_in(told: Any) -> None:
    """Its files have the same names and sizes; all ranks get the first one's."""
    for theirs, ours in zip(told("untied-accelerate"), told("tuned"), strict=True):
        assert (ours["way"], ours["weights"], ours["steps"]) == ("broadcast", theirs["weights"], theirs["steps"])
    assert re.search(r"rank 1 does not see the same .* as rank 0: model-0000\d-of", told("tuned")[2]["why"])


@pytest.mark.parametrize(("case", "found"), [("configured", "config.json "), ("tuned-pickled", "")])
def test_what_each_node_reads_for_itself_has_to_be_the_same(told: Any, case: str, found: str) -> None:
    for rank in told(case):
        seen = f"{found}[0-9a-f]{{32}}"
        way_out = "Copy the first node's folder of the base model to every node."
        assert re.fullmatch(rf"model: node 1 has {seen} and node 0 has {seen}\. {way_out}", rank["said"])


def test_weights_in_no_safetensors_file_are_loaded_by_accelerate_and_it_is_said(told: Any) -> None:
    for theirs, ours in zip(told("tied-accelerate"), told("pickled"), strict=True):
        assert (ours["way"], ours["steps"]) == ("accelerate", theirs["steps"])
        assert "has neither model.safetensors" in ours["why"]


def test_a_buffer_that_differs_ends_the_run_with_name_and_rank(told: Any) -> None:
    for rank in told("buffer"):
        assert "buffer model.rotary_emb.inv_freq on rank 1 differs" in rank["said"]
        assert rank["reason"] == "rank_failed"


def test_what_is_in_force_is_read_back(told: Any) -> None:
    """Three layers, each a unit; the embedding, and the end's norm and head; tied, these three are one unit."""
    for kind, units in (("tied", 4), ("untied", 5)):
        for rank in told(f"{kind}-auto"):
            assert (rank["compute_dtype"], rank["reduce_dtype"], rank["units"]) == ("float32", "float32", units)
            assert rank["wrapped"]["LlamaDecoderLayer"] == 3
            assert rank["buffers"] == ["model.rotary_emb.inv_freq", "model.rotary_emb.original_inv_freq"]
