"""start: one supervisor, whoever calls however often; nothing begins that was stopped or has ended."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .nodejobs import ROOT, NodeJob, call, gone, kill9, until

WAITS = "import time\nprint('up', flush=True)\ntime.sleep(600)"


@pytest.fixture
def job(tmp_path: Path):
    job = NodeJob(tmp_path)
    yield job
    call("stop-all", str(job.scratch))


def test_it_works(job: NodeJob) -> None:
    job.put("print('hello')")
    assert job.status()["state"] == "ready"
    assert job.start()["state"] == "started"
    end = job.exit()
    assert (end["reason"], end["code"], end["signal"]) == ("completed", 0, None)
    until(lambda: gone(job.supervisor()))
    assert job.status() == {"state": "ended", "exit": end, "processes": [], "gpus": [], "gpu_problem": ""}
    assert Path(job.folder.log).read_text() == "hello\n"
    assert not [p for p in job.path.iterdir() if p.name.startswith(".")]


def test_many_callers_start_one_supervisor(job: NodeJob) -> None:
    job.put("open('began', 'a').write('x')\n" + WAITS)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: job.start(), range(6)))
    assert sorted(a["state"] for a in answers) == ["running"] * 5 + ["started"]
    assert {a["pid"] for a in answers} == {job.supervisor()}
    job.said("up")
    assert (job.path / "began").read_text() == "x"


def test_an_ended_job_is_not_started_again(job: NodeJob) -> None:
    job.put("open('began', 'a').write('x')").start()
    job.exit()
    assert job.start()["state"] == "ended"
    assert (job.path / "began").read_text() == "x"


def test_a_job_without_supervisor_is_lost_and_not_started_again(job: NodeJob) -> None:
    job.put("open('began', 'a').write('x')\n" + WAITS).start()
    job.said("up")
    kill9(job.supervisor())
    until(lambda: job.status()["state"] == "lost")
    assert job.start()["state"] == "lost"
    assert (job.path / "began").read_text() == "x"


def test_an_ended_job_starts_once_more_where_that_is_asked_for(job: NodeJob) -> None:
    """It goes on in its folder; what an earlier start said of its end is not this one's."""
    script = f"""
import os
from training.journal import Journal
from training.spec.events import Kind
again = os.path.exists("began")
open("began", "a").write("x")
if not again:
    Journal({str(job.folder.events)!r}).emit(Kind.FINISHED, reason="proof", text="no")
    raise SystemExit(1)
os.kill(os.getpid(), 9)
"""
    job.put(script, env=f"PYTHONPATH={ROOT}\n").start()
    assert job.exit()["reason"] == "proof"
    folder = str(job.path)
    assert job.command("again", folder, "2") == {"state": "ready", "start": 2}
    assert job.start()["state"] == "started"
    assert job.exit()["reason"] == "killed_by_host"
    assert job.command("again", folder, "2") == {"state": "ended", "start": 2}, "asked twice, it is the same start"
    assert (job.path / "began").read_text() == "xx"
    exits = [event for event in job.samples() if event.kind == "exit"]
    assert [event.data.get("start") for event in exits] == [None, 2]
    assert [event.seq for event in job.samples()] == list(range(1, len(job.samples()) + 1))


def test_one_of_which_nothing_was_put_is_readied_all_the_same(job: NodeJob) -> None:
    """Whoever started it first died between saying so and coming here."""
    assert job.command("again", str(job.path), "2") == {"state": "absent", "start": 2}


def test_a_job_at_work_is_not_readied_for_another_start(job: NodeJob) -> None:
    job.put(WAITS).start()
    job.said("up")
    assert job.command("again", str(job.path), "2") == {"state": "running", "start": 1}
    kill9(job.supervisor())
    assert job.command("again", str(job.path), "2")["start"] == 1, "what it left behind is at work"
    job.signal("kill")
    assert job.command("again", str(job.path), "2") == {"state": "ready", "start": 2}


@pytest.mark.parametrize("how", ["term", "kill"])
def test_stopped_before_it_was_put_it_never_begins(job: NodeJob, how: str) -> None:
    assert job.status()["state"] == "absent"
    assert job.signal(how) == {"processes": []}
    Path(job.folder.job).write_text('{"argv": ["touch", "began"], "disk": "/tmp"}')
    assert job.start()["state"] == "ended"
    assert job.exit()["reason"] == "stopped_unsaved"
    assert not (job.path / "began").exists()


def test_a_folder_without_job_is_refused(job: NodeJob) -> None:
    done = call("start", str(job.path))
    assert done.returncode == 1
    assert "job.json" in done.stderr
    assert not job.path.exists()


def test_it_is_detached_from_its_caller(job: NodeJob) -> None:
    job.put(WAITS).start()
    supervisor = job.supervisor()
    assert os.getsid(supervisor) == supervisor
    assert os.readlink(f"/proc/{supervisor}/fd/0") == "/dev/null"
    (process,) = job.status()["processes"]
    assert os.getpgid(process) == process


def test_another_process_with_the_old_pid_is_no_supervisor(job: NodeJob) -> None:
    job.put(WAITS).start()
    job.said("up")
    text = Path(job.folder.pid).read_text()
    kill9(job.supervisor())
    until(lambda: gone(job.supervisor()))
    Path(job.folder.pid).write_text(text.replace(f'"pid": {job.supervisor()}', f'"pid": {os.getpid()}'))
    assert job.status()["state"] == "lost"
