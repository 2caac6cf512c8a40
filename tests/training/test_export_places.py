"""Where an export may be written: what is a person's own stays, and a place that can't be is told before any work."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.namespaces import own_mounts
from tests.training.nodejobs import ROOT
from training.export import cli, place, record
from training.export.outcome import reason_of, refuse, words
from training.export.planning import Planner
from training.spec.events import parse
from training.spec.job import ExportJob
from training.spec.lint import Refused


def told(out: Path | str, tmp_path: Path) -> tuple[str, str]:
    """Export into `out`; return the reason and text of its last event, having seen that the plan says the same."""
    job = ExportJob(checkpoint=str(tmp_path), model="none", out=str(out), events=str(tmp_path / "events.jsonl"))
    assert cli.run(job) == 1
    last = parse((tmp_path / "events.jsonl").read_bytes().splitlines()[-1]).data
    ((why, reason),) = [(f.why, f.reason) for f in Planner(job).plan().problems if f.field == "out"]
    assert (reason, why in last["text"]) == (last["reason"], True)
    return last["reason"], last["text"]


def dead_link(folder: Path) -> Path:
    (folder / "model").symlink_to(folder / "nothing")
    return folder / "model"


def under_a_file(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file" / "model"


def under_a_dead_link(folder: Path) -> Path:
    return dead_link(folder) / "model"


@pytest.mark.parametrize(
    ("place_of", "said"),
    [
        (dead_link, "exists already"),
        (under_a_file, "not a directory"),
        (under_a_dead_link, "is not a folder"),
        (lambda folder: folder / ("x" * 256), "name too long"),
        (lambda folder: folder / ("x" * 250), "name too long"),  # the working folder's is longer
        (lambda folder: f"{folder}/a\0b", "null byte"),
        (lambda folder: folder / ("x" * 256) / "model", "name too long"),
    ],
)
def test_a_place_that_cannot_be_is_told_before_any_work(tmp_path, place_of, said):
    reason, text = told(place_of(tmp_path), tmp_path)
    assert (reason, said in text, "\0" in text) == ("configuration", True, False), text


@pytest.mark.root
def test_a_read_only_disk_is_told_by_plan_and_export(tmp_path):
    mount = tmp_path / "mount"
    mount.mkdir()
    code = (
        "import sys; from pathlib import Path; from tests.training.test_export_places import told;"
        "print(told(Path(sys.argv[1], 'out', 'model'), Path(sys.argv[2])))"
    )
    script = f'mount -t tmpfs -o ro tmpfs "{mount}" && exec "$0" -c "$1" "{mount}" "{tmp_path}"'
    command = [*own_mounts(), "bash", "-c", script, sys.executable, code]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("('permission', "), run.stdout
    assert "is on a read-only file system" in run.stdout


@pytest.mark.root
def test_a_file_system_that_takes_no_folder_is_named(tmp_path):
    with pytest.raises(Refused, match=r"/proc/model\.partial can't be made"), place.working(Path("/proc/model")):
        pass


def own_folder(folder: Path) -> Path:
    (folder / "model.partial").mkdir()
    return folder / "model.partial"


def own_link(folder: Path) -> Path:
    (folder / "data").mkdir()
    (folder / "model.partial").symlink_to(folder / "data")
    return folder / "data"


@pytest.mark.parametrize("make", [own_folder, own_link])
def test_what_has_the_working_folder_s_name_and_is_no_export_s_stays(tmp_path, make):
    precious = make(tmp_path) / "precious.txt"
    precious.write_text("mine")
    reason, text = told(tmp_path / "model", tmp_path)
    assert (reason, "no export made it" in text, precious.read_text()) == ("configuration", True, "mine")
    assert [path.name for path in precious.parent.iterdir()] == ["precious.txt"]


def test_a_link_to_what_another_export_left_is_not_followed(tmp_path):
    own_link(tmp_path)
    (tmp_path / "data" / place.LOCK).touch()
    assert told(tmp_path / "model", tmp_path)[0] == "configuration"


def test_a_link_that_lies_in_a_working_folder_goes_and_what_it_points_to_stays(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious.txt").touch()
    with place.working(tmp_path / "model") as work:
        (work.folder / "link").symlink_to(tmp_path / "data")
        work.go_on("mine")
        assert not os.path.lexists(work.folder / "link")
        (work.folder / "link").symlink_to(tmp_path / "data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
    assert (tmp_path / "data" / "precious.txt").exists()


def test_a_job_that_is_refused_leaves_what_a_killed_export_has_written(tmp_path):
    folder = place.partial(tmp_path / "model")
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"half")
    noted = record.Record(fingerprint="its", files={"model.safetensors": record.Durable(size=4, sha256="0")})
    (folder / record.NAME).write_text(noted.model_dump_json())
    with pytest.raises(Refused), place.working(tmp_path / "model"):
        raise refuse("dtype", "none of ours", "choose")
    with place.working(tmp_path / "model") as work:
        assert list(work.go_on("its")) == ["model.safetensors"]


@pytest.mark.parametrize(
    ("error", "reason", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/d/m.safetensors"), "disk_full", "/d/m.safetensors: the"),
        (OSError(errno.EROFS, "Read-only file system", "/d/m"), "permission", "/d/m: read-only file system. Let"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "killed_by_host", "no more memory"),
        (RuntimeError("can't start new thread"), "killed_by_host", "(can't start new thread). Free"),
        (MemoryError(), "killed_by_host", "ulimit -v"),
    ],
    ids=lambda value: getattr(value, "errno", None) and errno.errorcode[value.errno],
)
def test_what_the_system_denies_has_a_reason_and_a_way_out(error, reason, said):
    assert (reason_of(error), said in words(error)) == (reason, True), words(error)


THREADS = """
import resource, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from training.export.narrow import narrow

def size():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) * 1024

resource.setrlimit(resource.RLIMIT_AS, ({limit}, resource.RLIM_INFINITY))
narrow()
before = size()
pools = [ThreadPoolExecutor(1) for _ in range(8)]
for pool in pools:
    pool.submit(lambda: [bytearray(1000) for _ in range(1000)]).result()
print(size() - before)
"""


@pytest.mark.parametrize(("limit", "narrow"), [("1 << 40", True), ("resource.RLIM_INFINITY", False)])
def test_under_a_limit_on_the_address_space_threads_reserve_little_of_it(limit, narrow):
    code = THREADS.format(limit=limit)
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (int(run.stdout) < 100e6) == narrow, run.stdout
