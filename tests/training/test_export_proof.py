"""What the proof finds in a folder that was spoilt after its export, loaded or not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.training.tokens import TAGGED
from training.export import cli, proof, prove, prove_streamed, sheet, streamed
from training.export.outcome import Failure
from training.export.weights import of_files
from training.export.written import WrittenTensors
from training.spec.job import ExportJob

pytestmark = pytest.mark.ranks
LARGE = 1 << 50  # bytes: no host has such a memory
LOADED = ["keys", "index", "load", "forward", "finite", "contents", "compare", "tokenizer", "generation"]
STREAMED = ["keys", "index", "forward", "finite", "contents", "compare", "tokenizer", "generation"]


@pytest.fixture(scope="module")
def exported(export_job, tmp_path_factory):
    """A finished float32 export in one file, with tied word embeddings; tests spoil a copy of it."""
    job = export_job(tmp_path_factory.mktemp("exported"), "tied", dtype="float32")
    assert cli.run(job) == 0
    return job


@pytest.fixture(scope="module")
def halved(export_job, tmp_path_factory):
    """One in bfloat16 that passes the smallest limit of a file and so is in two."""
    job = export_job(tmp_path_factory.mktemp("halved"), "untied", dtype="bfloat16", max_shard_bytes=1_000_000)
    assert cli.run(job) == 0
    return job


def judged(job: ExportJob, folder: Path, scratch: Path, *, size: int = 1, memory: int = 1 << 40) -> dict[str, Any]:
    """Run the proof's own program here, where torch is loaded already, and return its result."""
    request = {"job": job.model_dump(mode="json"), "folder": str(folder), "bytes": size, "memory": memory}
    (scratch / "request.json").write_text(json.dumps(request))
    assert prove.main([str(scratch / "request.json"), str(scratch / "result.json")]) == 0
    result: dict[str, Any] = json.loads((scratch / "result.json").read_text())
    return result


def passed(result: dict[str, Any]) -> list[str]:
    return [check["name"] for check in result["checks"] if check["passed"]]


def failed(result: dict[str, Any]) -> str:
    return next(check["name"] for check in result["checks"] if not check["passed"])


def detail(result: dict[str, Any], name: str) -> str:
    return str(next(check["detail"] for check in result["checks"] if check["name"] == name))


def spoil(folder: Path, change: str) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    match change:
        case "value":
            tensors["model.layers.1.mlp.up_proj.weight"][0, 0] += 1
        case "name":
            tensors["model.layers.1.mlp.upp.weight"] = tensors.pop("model.layers.1.mlp.up_proj.weight")
        case "prefix":
            tensors = {name.replace("layers.1.", "layers.1._orig_mod."): t for name, t in tensors.items()}
        case "shape":
            tensors["model.norm.weight"] = torch.ones(63)
        case "dtype":
            tensors = {name: tensor.half() for name, tensor in tensors.items()}
        case "infinite":
            tensors["model.norm.weight"][:] = torch.inf
        case "another file":
            save_file({"model.norm.weight": torch.ones(64)}, folder / "model-00002-of-00002.safetensors")
        case "half a save":
            (folder / "pytorch_model.bin").touch()
        case "cut short":
            path.write_bytes(path.read_bytes()[:-1])
            return
    save_file(tensors, path, metadata={"format": "pt"})


KEYS = [(change, "keys") for change in ("name", "prefix", "shape", "dtype", "cut short")]
FILES = [(change, "index") for change in ("another file", "half a save")]
VALUES = [("value", "contents"), ("infinite", "forward")]


@pytest.mark.parametrize(("change", "check"), [*KEYS, *FILES, *VALUES])
def test_the_proof_finds(exported, tmp_path, change, check):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    spoil(folder, change)
    assert failed(judged(exported, folder, tmp_path)) == check


@pytest.mark.parametrize(("change", "check"), VALUES)
def test_without_loading_the_proof_finds(exported, tmp_path, change, check):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    spoil(folder, change)
    assert failed(judged(exported, folder, tmp_path, size=LARGE)) == check


@pytest.mark.parametrize("size", [1, LARGE], ids=["loaded", "streamed"])
def test_the_proof_finds_what_no_forward_pass_of_a_few_tokens_does(halved, tmp_path, size):
    folder = shutil.copytree(halved.out, tmp_path / "spoilt")
    name = "model.embed_tokens.weight"
    path = folder / json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"][name]
    tensors = load_file(path)
    assert 3 not in sheet.probe_ids(len(tensors[name]))
    tensors[name][3] += 1
    save_file(tensors, path, metadata={"format": "pt"})
    result = judged(halved, folder, tmp_path, size=size)
    assert failed(result) == "contents"
    assert "compare" in passed(result)


def test_a_prefix_is_called_one(exported, tmp_path):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    spoil(folder, "prefix")
    assert detail(judged(exported, folder, tmp_path), "keys").startswith(
        "with a wrapper's prefix: model.layers.1._orig"
    )


@pytest.mark.parametrize("change", ["place", "total", "missing"])
def test_the_index_and_the_files_must_agree(halved, tmp_path, change):
    folder = shutil.copytree(halved.out, tmp_path / "spoilt")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    names = sorted(index["weight_map"])
    files = sorted(set(index["weight_map"].values()))
    match change:
        case "place":
            index["weight_map"][names[0]] = next(f for f in files if f != index["weight_map"][names[0]])
        case "total":
            index["metadata"]["total_size"] += 1
        case "missing":
            del index["weight_map"][names[0]]
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert failed(judged(halved, folder, tmp_path)) == "index"


def test_the_conversion_is_a_figure_that_nothing_passes(halved, tmp_path):
    result = judged(halved, Path(halved.out), tmp_path)
    assert passed(result) == LOADED
    assert result["largest_difference"] == 0.0
    costs = result["to_masters"]
    assert 0 < costs["difference"] < 0.1 * costs["largest"]
    assert 0 < costs["same"] <= costs["places"]
    assert (result["how"], result["loads_in"]) == ("loaded", "transformers >= 4.45.0")


def test_the_proof_finds_another_tokenizer(exported, tmp_path):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    result = judged(exported, folder, tmp_path)
    assert failed(result) == "tokenizer"
    assert "differs from the base model's in chat" in detail(result, "tokenizer")


def test_the_proof_finds_a_token_without_a_row(exported, tmp_path):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    config = json.loads((folder / "tokenizer.json").read_text())
    extra = {"id": 4097, "content": "<|more|>", "single_word": False, "lstrip": False, "rstrip": False}
    config["added_tokens"].append(extra | {"normalized": False, "special": True})
    (folder / "tokenizer.json").write_text(json.dumps(config))
    result = judged(exported, folder, tmp_path)
    assert failed(result) == "tokenizer"


@pytest.mark.parametrize("text", ['{"eos_token_id": [2, 5000]}', '{"eos_token_id": '])
def test_the_proof_finds_generation_settings_that_are_wrong(exported, tmp_path, text):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    (folder / "generation_config.json").write_text(text)
    assert failed(judged(exported, folder, tmp_path)) == "generation"


@pytest.mark.parametrize("template", [TAGGED, "{{ raise_exception('begins with a system turn') }}"])
def test_the_proof_finds_the_bases_template_in_place_of_the_trained_one(exported, tmp_path, template):
    asked = exported.model_copy(update={"template": template})
    assert failed(judged(asked, Path(exported.out), tmp_path)) == "tokenizer"
    folder = shutil.copytree(exported.out, tmp_path / "right")
    (folder / "chat_template.jinja").write_text(template)
    assert all(c["passed"] for c in judged(asked, folder, tmp_path)["checks"])


@pytest.mark.parametrize("kind", ["exported", "halved"])
def test_a_model_larger_than_memory_runs_all_the_same(kind, request, tmp_path):
    job = request.getfixturevalue(kind)
    result = judged(job, Path(job.out), tmp_path, size=LARGE, memory=0)
    assert passed(result) == STREAMED
    assert (result["how"], result["not_compared"], result["largest_difference"]) == ("streamed", "", 0.0)


def test_the_streamed_pass_is_the_models_own(exported, halved):
    """Row by row the arithmetic is the whole model's, to the last places of its sums."""
    for job, allowed in ((exported, 1e-5), (halved, 0.02)):
        folder = Path(job.out)
        whole = sheet.logits(sheet.load_exported(job, folder, sheet.Sheet()))
        read = of_files(WrittenTensors(folder), prove_streamed.WHOLE)
        assert torch.allclose(prove_streamed.logits(job, folder, read), whole, atol=allowed), job.dtype


def test_one_that_cannot_be_run_so_is_compared_value_by_value_and_says_so(exported, tmp_path, monkeypatch):
    def refuse(*args: Any) -> Any:
        raise NotImplementedError("Cannot copy out of meta tensor")

    monkeypatch.setattr(streamed, "_Streaming", refuse)
    result = judged(exported, Path(exported.out), tmp_path, size=LARGE, memory=5)
    assert passed(result) == [name for name in STREAMED if name not in ("forward", "compare")]
    assert (result["how"], result["largest_difference"]) == ("flat", None)
    assert result["not_compared"].startswith(
        "the model takes 1,125,899,906,842,624 bytes of memory, more than was there"
    )
    assert "Cannot copy out of meta tensor" in result["not_compared"]


def test_what_the_fresh_process_found_ends_the_export(exported, tmp_path):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    spoil(folder, "value")
    with pytest.raises(Failure, match=r"^contents: differ: model.layers.1.mlp.up_proj.weight") as caught:
        proof.prove(exported, folder, 1)
    assert caught.value.reason == "proof"


def test_a_fresh_process_that_ends_early_ends_the_export(exported, tmp_path):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    (folder / "config.json").unlink()
    with pytest.raises(Failure, match=r"^load: the fresh process ended with status 1") as caught:
        proof.prove(exported, folder, 1)
    assert caught.value.reason == "proof"
