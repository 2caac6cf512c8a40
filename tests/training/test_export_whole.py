"""The export from real sharded checkpoints: what comes out is what torch itself gathers, and loads."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file

from tests.prove import oldest
from tests.training import sharded
from tests.training.tokens import TAGGED
from training.export import cli, papers
from training.export.planning import Planner
from training.spec.events import Event, Kind, parse
from training.spec.job import ExportJob
from training.spec.lint import Refused
from training.spec.passport import CheckpointFacts, ModelFacts, Passport, RunFacts

pytestmark = pytest.mark.ranks


def events(job: ExportJob) -> list[Event]:
    return [parse(line) for line in Path(job.events).read_bytes().splitlines()]


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    out: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        out |= load_file(path)
    return out


HOSTILE = "<img src=x onerror=alert(1)> | [x](javascript:1) `$(id)`\n# not a heading"
KNOWN = Passport(
    composed_of="rows",
    run=RunFacts(id=41, name=HOSTILE, owner="ada"),
    model=ModelFacts(name="the base", location="/models/base"),
    checkpoint=CheckpointFacts(name="checkpoint-7", step=7, nodes=2, world_size=2),
    asked_by="grace",
)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    return tmp_path_factory.mktemp("said") / "said"


@pytest.fixture(scope="module")
def tied(export_job, tmp_path_factory, said):
    """An export in bfloat16 in as many files as the smallest limit makes; what it prints is in `said`."""
    job = export_job(tmp_path_factory.mktemp("tied"), "tied", dtype="bfloat16")
    with said.open("w") as out, redirect_stdout(out), redirect_stderr(out):
        assert cli.run(job) == 0
    return job


@pytest.fixture(scope="module")
def untied(export_job, tmp_path_factory):
    """An export in float32, which passes the smallest limit and so is in two files; trained with its own template.

    What the service knows of it is put beside its job.
    """
    folder = tmp_path_factory.mktemp("untied")
    (folder / "passport.json").write_text(KNOWN.model_dump_json())
    job = export_job(
        folder,
        "untied",
        dtype="float32",
        max_shard_bytes=1_100_000,
        template=TAGGED,
        passport=f"{folder}/passport.json",
    )
    assert cli.run(job) == 0
    return job


def test_it_says_what_came_of_it(tied, said):
    size = sum(path.stat().st_size for path in Path(tied.out).iterdir())
    count = len(list(Path(tied.out).iterdir()))
    found = f"exported: {size / 1e6:.1f} MB in {count} files, 9 checks passed, largest difference of a logit 0"
    assert said.read_text() == f"{found}: {tied.out}\n"


def test_it_works(tied, sharded_checkpoints):
    truth = load_file(sharded_checkpoints / "tied" / "truth.safetensors")
    found = tensors(Path(tied.out))
    assert set(found) == set(truth) - {"lm_head.weight"}, "a tied tensor is stored once, under its own name"
    for name, tensor in found.items():
        assert torch.equal(tensor, truth[name].to(torch.bfloat16)), name


def test_it_splits_into_files_with_an_index(untied, sharded_checkpoints):
    folder = Path(untied.out)
    truth = load_file(sharded_checkpoints / "untied" / "truth.safetensors")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) == len(list(folder.glob("*.safetensors"))) > 1
    assert index["metadata"]["total_size"] == sum(t.nbytes for t in truth.values())
    assert set(index["weight_map"]) == set(truth)
    for name, file in index["weight_map"].items():
        with safe_open(folder / file, "pt") as opened:
            assert torch.equal(opened.get_tensor(name), truth[name]), name


def test_the_plan_had_foretold_it(untied):
    told = Planner(untied.model_copy(update={"out": untied.out + "-other"}), probe=False).plan()
    made = {path.name: path.stat().st_size for path in Path(untied.out).glob("*.safetensors")}
    assert {file.name: file.size for file in told.writing.files} == made
    assert told.works


def test_the_events_tell_the_way_and_the_end(tied):
    told = events(tied)
    assert [e.seq for e in told] == list(range(1, len(told) + 1))
    progress = [e.data for e in told if e.kind == Kind.PROGRESS]
    assert list(dict.fromkeys(p["phase"] for p in progress)) == ["check", "stream", "prove"]
    assert [p["done"] for p in progress if p["phase"] != "check"][-1] == progress[-1]["total"]
    assert [e.kind for e in told[-2:]] == [Kind.EXPORTED, Kind.FINISHED]
    assert told[-1].data["reason"] == "completed"


def test_the_list_of_files_is_what_lies_there(tied):
    exported = events(tied)[-2].data
    folder = Path(tied.out)
    assert {f["name"] for f in exported["files"]} == {p.name for p in folder.iterdir()}
    assert exported["bytes"] == sum(p.stat().st_size for p in folder.iterdir())
    for file in exported["files"]:
        data = (folder / file["name"]).read_bytes()
        assert (file["size"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert not folder.with_name("model.partial").exists()


def test_the_passport_goes_along_with_what_the_node_adds(untied):
    told = events(untied)[-2].data["passport"]
    assert json.loads((Path(untied.out) / "passport.json").read_text()) == told
    added = told.pop("export")
    assert told == KNOWN.model_dump(mode="json", exclude={"export"})
    assert (added["dtype"], added["asked_by"], added["versions"]["torch"]) == ("float32", "grace", torch.__version__)


def test_the_card_is_facts_and_shows_what_somebody_typed_as_it_is(untied):
    text = (Path(untied.out) / "README.md").read_text()
    _, head, body = text.split("---\n", 2)
    assert yaml.safe_load(head)["library_name"] == "transformers"
    assert "# &lt;img src=x onerror=alert(1)&gt; \\| \\[x\\](javascript:1) \\`$(id)\\` # not a heading\n" in body
    proof = json.loads((Path(untied.out) / "proof.json").read_text())
    for check in proof["checks"]:
        assert f"| {check['name']} | passed: " in body
    assert "Loads in transformers >= 4.45.0." in body


def test_every_byte_can_be_checked_by_anybody(untied):
    run = subprocess.run(
        ["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=untied.out, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    names = {path.name for path in Path(untied.out).iterdir()}
    assert {line.partition(": ")[0] for line in run.stdout.splitlines()} == names - {"SHA256SUMS"}
    listed = {file["name"] for file in json.loads((Path(untied.out) / "proof.json").read_text())["files"]}
    assert listed == names - {"SHA256SUMS", "proof.json"}


def test_a_passport_that_cannot_be_read_is_refused_before_anything_is_written(export_job, tmp_path):
    (tmp_path / "passport.json").write_text('{"composed_of": "rumours"}')
    job = export_job(tmp_path, "tied", passport=str(tmp_path / "passport.json"))
    with pytest.raises(Refused, match=r"passport: .*composed_of"):
        papers.read(job)
    with pytest.raises(Refused, match="No such file"):
        papers.read(job.model_copy(update={"passport": str(tmp_path / "none")}))


def test_the_proof_compared_with_the_checkpoint_itself(tied):
    proof = json.loads((Path(tied.out) / "proof.json").read_text())
    assert [(c["name"], c["passed"]) for c in proof["checks"]] == [
        (name, True)
        for name in (
            *("keys", "index", "load", "forward", "finite", "contents", "compare"),
            *("tokenizer", "generation"),
        )
    ]
    said = {check["name"]: check["detail"] for check in proof["checks"]}
    count = len(tensors(Path(tied.out)))  # the head is the embedding, and counts once
    assert f"{count} tensors" in said["keys"]
    assert f"{count} tensors" in said["contents"]
    assert proof["largest_difference"] == 0.0
    assert proof["to_masters"]["difference"] > 0
    assert proof["not_compared"] == ""
    assert proof["versions"]["torch"] == torch.__version__
    assert (proof["checkpoint"], proof["step"]) == ("checkpoint-7", 7)


def test_config_tokenizer_and_generation_config_come_along(tied):
    folder, base = Path(tied.out), Path(tied.model)
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
    assert (folder / "chat_template.jinja").read_text() == (base / "chat_template.jinja").read_text()
    kept = json.loads((folder / "generation_config.json").read_text())
    assert (kept["temperature"], kept["do_sample"]) == (0.9, False)


def test_the_template_that_was_trained_with_goes_along(untied):
    folder = Path(untied.out)
    assert (folder / "chat_template.jinja").read_text() == TAGGED
    assert (Path(untied.model) / "chat_template.jinja").read_text() != TAGGED
    told = json.loads((folder / "proof.json").read_text())["checks"]
    (told,) = (check for check in told if check["name"] == "tokenizer")
    assert told["passed"]
    assert told["detail"].endswith("with the chat template that was trained with")


GENERATE = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
model, info = AutoModelForCausalLM.from_pretrained(sys.argv[1], output_loading_info=True)
assert not any(info.values()), info
assert model.dtype == torch.float32, model.dtype
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
chat = tokenizer.apply_chat_template([{"role": "user", "content": "2 + 2?"}], add_generation_prompt=True,
                                     return_tensors="pt", return_dict=True)
out = model.generate(**chat, max_new_tokens=5, do_sample=False, eos_token_id=None)
print(out.shape[1] - chat["input_ids"].shape[1])
"""


def test_a_fresh_process_loads_it_and_generates(untied):
    run = subprocess.run([sys.executable, "-c", GENERATE, untied.out], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split()[-1] == "5"


def test_the_oldest_transformers_reads_the_same(tied, untied, tmp_path):
    """Installs that version beside ours; where no index answers this fails and says so."""
    exports = [("tied", "bfloat16", Path(tied.out)), ("untied", "float32", Path(untied.out))]
    results = list(oldest.compared(exports, "4.45.0", tmp_path))
    assert [str(result) for result in results if not result.holds] == []


def test_the_command_writes_float16(export_job, sharded_checkpoints, tmp_path):
    job = export_job(tmp_path, "tied", dtype="float16")
    (tmp_path / "recipe.json").write_text(job.model_dump_json())
    command = [sys.executable, "-m", "training", "export", str(tmp_path / "recipe.json")]
    run = subprocess.run(command, cwd=sharded.ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    truth = load_file(sharded_checkpoints / "tied" / "truth.safetensors")
    for name, tensor in tensors(Path(job.out)).items():
        assert torch.equal(tensor, truth[name].to(torch.float16)), name
