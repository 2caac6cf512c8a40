"""Exports that end in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.namespaces import own_mounts
from tests.training import sharded
from training.export import record
from training.spec.events import Event, parse
from training.spec.job import ExportJob

pytestmark = pytest.mark.ranks
PATIENCE = 120  # seconds for a condition that comes in a few


def events(job: ExportJob) -> list[Event]:
    path = Path(job.events)
    return [parse(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def start(job: ExportJob, folder: Path) -> subprocess.Popen[bytes]:
    """Start the command in a process group of its own, as the supervisor does."""
    (folder / "recipe.json").write_text(job.model_dump_json())
    command = [sys.executable, "-m", "training", "export", str(folder / "recipe.json")]
    return subprocess.Popen(command, cwd=sharded.ROOT, start_new_session=True)


def until_proving(job: ExportJob, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while not any(e.data.get("phase") == "prove" for e in events(job)):
        assert process.poll() is None, "the export ended before its proof"
        assert time.monotonic() < end, "the proof never began"
        time.sleep(0.05)


def left(folder: Path) -> int:
    """Return the bytes that the next start can go on from; nothing else may be there."""
    assert [path.name for path in (folder / "out").iterdir()] == ["model.partial"]
    found = record.read(folder / "out" / "model.partial")
    assert found is not None
    return sum(durable.size for durable in found.files.values())


def test_a_stop_leaves_what_is_on_the_disk(export_job, tmp_path):
    job = export_job(tmp_path, "tied")
    process = start(job, tmp_path)
    until_proving(job, process)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(PATIENCE) == 1
    assert left(tmp_path) > 0
    assert events(job)[-1].data["reason"] == "stopped_unsaved"


def test_a_request_to_stop_is_heeded(export_job, tmp_path):
    job = export_job(tmp_path, "tied")
    process = start(job, tmp_path)
    until_proving(job, process)
    (tmp_path / "stop").touch()
    assert process.wait(PATIENCE) == 1
    assert left(tmp_path) > 0
    assert (events(job)[-1].data["reason"], events(job)[-1].data["text"]) == ("stopped_unsaved", "stopped on request")


FILL = """
set -e
mount -t tmpfs -o size=200m,nr_inodes={inodes} tmpfs {mount}
status=0
{python} -m training export {recipe} || status=$?
ls -A {mount}/out > {listing}
exit $status
"""


@pytest.mark.root
@pytest.mark.parametrize(
    ("inodes", "kept"),
    [(4, ""), (10, ""), (12, "model.partial\n")],
    ids=["at the tokenizer", "at the weights", "at the model card"],
)
def test_a_disk_that_fills_up_midway_leaves_what_is_on_the_disk(export_job, tmp_path, inodes, kept):
    """A file system that has bytes left and takes no more files: what the plan could not foresee."""
    mount = tmp_path / "mount"
    mount.mkdir()
    job = export_job(tmp_path, "tied").model_copy(update={"out": str(mount / "out" / "model")})
    (tmp_path / "recipe.json").write_text(job.model_dump_json())
    script = FILL.format(
        inodes=inodes, mount=mount, python=sys.executable, recipe=tmp_path / "recipe.json", listing=tmp_path / "left"
    )
    command = [*own_mounts(), "bash", "-c", script]
    run = subprocess.run(command, cwd=sharded.ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    assert events(job)[-1].data["reason"] == "disk_full", run.stderr
    assert (tmp_path / "left").read_text() == kept, run.stderr
