"""An export that is killed goes on to the same bytes; two never work in one place."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.training import sharded
from training.export import cli, flow, place, record
from training.export.assemble import Assembly
from training.export.opened import open_checkpoint
from training.export.outcome import reason_of
from training.export.resume import verified
from training.journal import Journal
from training.spec.events import Event, Kind, parse
from training.spec.job import ExportJob
from training.spec.lint import Refused

pytestmark = pytest.mark.ranks
LIMIT = 1_000_000  # bytes of a file: the smallest, so that there are several

# The export in a process of its own, which kills itself as it is about to note for the second time what is on the disk.
DYING = """
import os, signal, sys
from training.export import cli, flow, record
from training.spec.job import ExportJob
flow.NOTE_EVERY = 100_000
note, seen = record.Ledger.note, []
def dying(self, name, durable):
    if seen:
        os.kill(os.getpid(), signal.SIGKILL)
    note(self, name, durable)
    seen.append(name)
record.Ledger.note = dying
cli.run(ExportJob.model_validate_json(open(sys.argv[1]).read()))
"""


def events(job: ExportJob) -> list[Event]:
    return [parse(line) for line in Path(job.events).read_bytes().splitlines()]


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def kept(job: ExportJob) -> list[int]:
    return [event.data["kept"] for event in events(job) if event.kind == Kind.WARNING and "kept" in event.data]


@pytest.fixture(scope="module")
def unbroken(export_job, tmp_path_factory) -> tuple[ExportJob, dict[str, str]]:
    job = export_job(tmp_path_factory.mktemp("unbroken"), "untied", dtype="float32", max_shard_bytes=LIMIT)
    assert cli.run(job) == 0
    return job, hashes(Path(job.out))


@pytest.fixture(scope="module")
def killed(unbroken, tmp_path_factory) -> Path:
    """The folder that a killed export of the same left."""
    folder = tmp_path_factory.mktemp("killed")
    job = elsewhere(unbroken[0], folder)
    (folder / "job.json").write_text(job.model_dump_json())
    command = [sys.executable, "-c", DYING, str(folder / "job.json")]
    assert subprocess.run(command, cwd=sharded.ROOT, check=False).returncode == -signal.SIGKILL
    assert [path.name for path in Path(job.out).parent.iterdir()] == ["model.partial"]
    return place.partial(Path(job.out))


def elsewhere(job: ExportJob, folder: Path) -> ExportJob:
    return job.model_copy(update={"out": str(folder / "out" / "model"), "events": str(folder / "events.jsonl")})


@pytest.fixture
def job(unbroken, tmp_path) -> ExportJob:
    return elsewhere(unbroken[0], tmp_path)


def test_killed_and_started_again_it_comes_to_the_same_bytes(unbroken, killed, job, monkeypatch):
    """Killed a second time, too: when its folder had its name, and its end was not told."""
    shutil.copytree(killed, place.partial(Path(job.out)))
    with monkeypatch.context() as patched:
        patched.setattr(place.Work, "told", lambda self: None)
        assert cli.run(job) == 0
    (bytes_,) = kept(job)
    begun = [e.data["done"] for e in events(job) if e.data.get("phase") == "stream"]
    assert 0 < bytes_ == begun[0], "progress begins with what is there"
    for _ in range(2):
        assert [event.kind for event in events(job)][-2:] == [Kind.EXPORTED, Kind.FINISHED]
        status = cli.run(job)
    assert status == 1, "once it has been told, the folder is one like any other"
    assert hashes(Path(job.out)) == unbroken[1]


def left(job: ExportJob, **facts: Any) -> Path:
    """Put what a killed export of `job` has written and noted, with `facts` otherwise, into its place."""
    folder = place.partial(Path(job.out))
    folder.mkdir(parents=True)
    (folder / "model-00001-of-00003.safetensors").write_bytes(b"half")
    noted = record.Record(fingerprint="", files={"model-00001-of-00003.safetensors": record.Durable(size=4, **facts)})
    (folder / record.NAME).write_text(noted.model_dump_json())
    return folder


def test_what_another_job_left_is_cleared(job):
    folder = left(job, sha256=hashlib.sha256(b"half").hexdigest())
    (folder / "stray").write_text("of another job")
    with place.working(Path(job.out)) as work:
        assert work.go_on("mine") == {}
        assert sorted(path.name for path in folder.iterdir()) == [record.NAME, place.LOCK]


@pytest.mark.parametrize("spoil", ["nothing", "a bit", "the end", "the file"])
def test_only_bytes_that_are_what_was_noted_are_kept(unbroken, killed, tmp_path, spoil):
    folder = shutil.copytree(killed, tmp_path / "partial")
    noted = record.read(folder)
    assert noted is not None
    ((name, durable),) = noted.files.items()
    path = folder / name
    match spoil:
        case "a bit":
            data = bytearray(path.read_bytes())
            data[durable.size - 1] ^= 1
            path.write_bytes(data)
        case "the end":
            os.truncate(path, durable.size - 1)
        case "the file":
            path.unlink()
    found = verified(Assembly(unbroken[0]).files, noted.files, folder, lambda count: None)
    assert {one: part.size for one, part in found.items()} == ({name: durable.size} if spoil == "nothing" else {})


def test_other_bytes_in_a_shard_s_place_are_another_job(job, tmp_path):
    source = shutil.copytree(job.checkpoint, tmp_path / "checkpoint-7")

    def found() -> str:
        return record.fingerprint(job, open_checkpoint(source, Journal(job.events)).files.identity)

    before = found()
    assert found() == before
    os.utime(next(source.rglob("__0_0.distcp")), ns=(1, 1))
    assert found() != before


def test_a_second_export_into_the_same_place_is_refused(job):
    with place.working(Path(job.out)) as work:
        assert cli.run(job) == 1
        assert work.folder.exists()
    said = events(job)[-1].data
    assert (said["reason"], "another export is writing" in said["text"]) == ("configuration", True)
    assert not place.partial(Path(job.out)).exists()


def test_a_result_in_the_place_is_refused(job):
    Path(job.out).mkdir(parents=True)
    with pytest.raises(Refused) as caught, place.working(Path(job.out)):
        pass
    assert reason_of(caught.value) == "configuration"


def test_memory_is_bounded_by_slots():
    assert flow.ROOM < 300e6
