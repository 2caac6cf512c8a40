"""Padding of the vocabulary is left out of an export, and nothing else is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training import sharded
from training import resize
from training.export import cli, prove
from training.export.manifest import MODEL_FOLDER
from training.export.vocabulary import is_padding
from training.spec.events import Kind, parse
from training.spec.job import ExportJob

pytestmark = pytest.mark.ranks
ROWS, PADDED = sharded.ROWS, 4160
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


@pytest.mark.parametrize(
    ("stored", "rows", "so"),
    [(4160, 4097, True), (32064, 32001, True), (4104, 4097, True), (4097, 4097, False), (4097, 4000, False),
     (5120, 4097, True), (8192, 4097, False), (4160, 5000, False)],
)  # fmt: skip
def test_padding_is_what_fills_up_to_a_multiple(stored: int, rows: int, so: bool) -> None:
    assert is_padding(stored, rows) == so


@pytest.fixture
def padded(request, export_job, sharded_checkpoints, tmp_path) -> tuple[ExportJob, dict[str, torch.Tensor]]:
    """An export of a checkpoint with 63 rows more than its base's config says, of one rank; and what is right."""
    import torch.distributed.checkpoint as dcp

    kind: str = request.param
    source = shutil.copytree(sharded_checkpoints / kind, tmp_path / "source")
    truth = load_file(source / "truth.safetensors")
    # a row of padding is anything but a number that could pass for one
    extra = torch.full((PADDED - ROWS, 64), torch.inf)
    tensors = {n: torch.cat([t, extra]) if n in (EMBEDDING, HEAD) else t for n, t in truth.items()}
    place = source / "checkpoint-7" / MODEL_FOLDER
    shutil.rmtree(place)
    dcp.save({"model": tensors}, checkpoint_id=place, no_dist=True)
    sharded.sign(source / "checkpoint-7", sharded.RANKS)
    job = export_job(tmp_path, kind, dtype="float32")
    return job.model_copy(update={"checkpoint": str(source / "checkpoint-7"), "model": str(source / "base")}), truth


def exported(job: ExportJob, truth: dict[str, torch.Tensor]) -> None:
    """Export; see that the rows that mean something are there, and that all parts agree."""
    assert cli.run(job) == 0, Path(job.events).read_text()
    found = load_file(Path(job.out) / "model.safetensors")
    for name, tensor in found.items():
        assert torch.equal(tensor, truth[name]), name
    config = json.loads((Path(job.out) / "config.json").read_text())
    assert config["vocab_size"] == ROWS
    assert resize.UNPADDED not in config
    proof = json.loads((Path(job.out) / "proof.json").read_text())
    assert (proof["largest_difference"], proof["not_compared"]) == (0.0, "")


@pytest.mark.parametrize("padded", ["tied"], indirect=True)
def test_rows_beyond_the_base_s_own_are_left_out(padded) -> None:
    job, truth = padded
    exported(job, truth)
    warnings = [e for e in map(parse, Path(job.events).read_bytes().splitlines()) if e.kind == Kind.WARNING]
    assert f"rows {ROWS} to {PADDED - 1} of {EMBEDDING} are padding" in " ".join(e.data["text"] for e in warnings)


@pytest.mark.parametrize("padded", ["untied"], indirect=True)
def test_what_resize_embeddings_padded_is_left_out_again(padded) -> None:
    """The base has the padded rows too, and its config how many mean something. Proven without loading, too."""
    job, truth = padded
    path = Path(job.model) / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"vocab_size": PADDED, resize.UNPADDED: ROWS}))
    exported(job, truth)
    request = {"job": job.model_dump(mode="json"), "folder": job.out, "bytes": 1 << 50, "memory": 1 << 40}
    asked, told = (Path(job.events).with_name(name) for name in ("request.json", "result.json"))
    asked.write_text(json.dumps(request))
    prove.main([str(asked), str(told)])
    checks = json.loads(told.read_text())["checks"]
    assert [check["name"] for check in checks if not check["passed"]] == []


@pytest.mark.parametrize("padded", ["tied"], indirect=True)
def test_rows_that_a_token_has_are_never_cut(padded) -> None:
    """The config says less than the tokenizer has: another base's config, or a slip."""
    from transformers import AutoTokenizer

    job, _ = padded
    tokenizer = AutoTokenizer.from_pretrained(job.model)
    tokenizer.add_tokens([f"<|{n}|>" for n in range(ROWS + 1 - len(tokenizer))])
    tokenizer.save_pretrained(job.model)
    assert cli.run(job) == 1
    last = parse(Path(job.events).read_bytes().splitlines()[-1])
    assert last.data["reason"] == "configuration"
    why = f"has {PADDED} rows, the config says {ROWS}, and the tokenizer has {ROWS + 1} entries"
    assert why in last.data["text"]
