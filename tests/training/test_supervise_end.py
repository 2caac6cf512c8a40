"""The end of a job: nothing is left of it, and exit.json says why."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from training.spec.mark import MARK

from .nodejobs import NodeJob, call, gone, kill9, until

WAITS = "import time\nprint('up', flush=True)\ntime.sleep(600)"
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS
# a child, its child in a session of its own, and one whose parents are dead and which clears its environment
HIDDEN = """
import os, subprocess, time
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
one = subprocess.Popen(["sleep", "600"], **quiet)
two = subprocess.Popen(["sleep", "600"], start_new_session=True, **quiet)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        three = subprocess.Popen(["sleep", "600"], env={}, **quiet)
        open("three", "w").write(str(three.pid))
        os.rename("three", "hidden")
    os._exit(0)
os.wait()
while not os.path.exists("hidden"):
    time.sleep(0.01)
print(one.pid, two.pid, open("hidden").read(), flush=True)
"""


@pytest.fixture
def job(tmp_path: Path):
    job = NodeJob(tmp_path)
    yield job
    call("stop-all", str(job.scratch))


def only_process(job: NodeJob) -> int:
    (pid,) = job.status()["processes"]
    assert isinstance(pid, int)
    return pid


def test_killed_from_outside(job: NodeJob) -> None:
    job.put(WAITS).start()
    job.said("up")
    kill9(only_process(job))
    end = job.exit()
    assert (end["reason"], end["code"], end["signal"]) == ("killed_by_host", None, 9)
    assert "memory peaked at" in end["text"]


def test_kill_ends_the_stubborn(job: NodeJob) -> None:
    job.put(STUBBORN, grace=0.2).start()
    job.said("up")
    pid = only_process(job)
    assert job.signal("kill") == {"processes": []}
    assert gone(pid)
    end = job.exit()
    assert (end["reason"], end["signal"]) == ("stopped_unsaved", 9)


def test_nothing_hides(job: NodeJob) -> None:
    job.put(HIDDEN + WAITS).start()
    job.said("up")
    pids = [int(word) for word in Path(job.folder.log).read_text().split() if word.isdigit()]
    assert len(pids) == 3
    assert not any(map(gone, pids))
    job.signal("kill")
    assert all(map(gone, pids))


def test_what_the_command_leaves_behind_is_ended(job: NodeJob) -> None:
    job.put(HIDDEN).start()
    assert job.exit()["reason"] == "completed"
    pids = [int(word) for word in Path(job.folder.log).read_text().split()]
    assert len(pids) == 3
    assert all(map(gone, pids))


def test_supervisor_killed_and_kill_cleans(job: NodeJob) -> None:
    """Nobody is left to adopt orphans by then, and one of them has no mark: it works in the job's folder."""
    job.put(HIDDEN + STUBBORN).start()
    job.said("up")
    pids = job.status()["processes"]
    assert len(pids) == 4
    kill9(job.supervisor())
    until(lambda: job.status()["state"] == "lost")
    assert job.status()["processes"] == pids
    assert job.signal("kill") == {"processes": []}
    assert all(map(gone, pids))
    assert job.status()["state"] == "ended"
    assert job.exit()["reason"] == "supervisor_lost"
    assert (job.samples()[-1].kind, job.samples()[-1].data["reason"]) == ("exit", "supervisor_lost")


def test_only_its_own_processes_are_ended(job: NodeJob) -> None:
    """Others speak of the same things, work in its folder at a person's terminal, or are another job's."""
    words = ["sleep", "600"]
    plain = {name: value for name, value in os.environ.items() if name not in (MARK, "SSH_TTY")}
    job.put(STUBBORN)
    before = subprocess.Popen(words, cwd=job.path, env=plain)
    job.start()
    job.said("up")
    named = [sys.executable, "-c", "import time; time.sleep(600)", "-m", "training", "sft", str(job.folder.recipe)]
    others = [
        before,
        subprocess.Popen(named, env=plain),
        subprocess.Popen(words, cwd=job.path, env=plain | {"SSH_TTY": "/dev/pts/7"}, start_new_session=True),
        subprocess.Popen(words, cwd=job.path, env=plain | {MARK: f"{job.path}0"}, start_new_session=True),
    ]
    try:
        kill9(job.supervisor())
        assert job.signal("kill") == {"processes": []}
        assert [process.poll() for process in others] == [None] * 4
        assert job.status()["processes"] == []
    finally:
        for process in others:
            process.kill()
            process.wait()


def test_a_stopped_supervisor_does_not_save_the_job(job: NodeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    from training import signals

    job.put(WAITS).start()
    job.said("up")
    os.kill(job.supervisor(), signal.SIGSTOP)
    monkeypatch.setattr(signals, "SUPERVISOR_SECONDS", 0.5)
    assert signals.kill(job.folder) == []
    assert gone(job.supervisor())
    assert job.exit()["reason"] == "supervisor_lost"


def test_term_asks_and_the_job_ends_in_its_own_time(job: NodeJob) -> None:
    script = (
        "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('stop'): time.sleep(0.01)\nprint('saved')"
    )
    job.put(script).start()
    job.said("up")
    job.signal("term")
    end = job.exit()
    assert (end["reason"], end["code"]) == ("stopped", 0)
    assert "saved" in Path(job.folder.log).read_text()


def test_terminated_supervisor_asks_then_ends(job: NodeJob) -> None:
    job.put(STUBBORN, grace=0.3).start()
    job.said("up")
    os.kill(job.supervisor(), signal.SIGTERM)
    assert job.exit()["reason"] == "stopped_unsaved"
    assert Path(job.folder.stop).exists()
    assert job.status()["processes"] == []


def test_a_hangup_and_its_like_mean_nothing(job: NodeJob) -> None:
    job.put("import time\nprint('up', flush=True)\nwhile not open('go').read(): time.sleep(0.01)")
    (job.path / "go").write_text("")
    job.start()
    job.said("up")
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE):
        os.kill(job.supervisor(), number)
    before = len(job.samples())
    until(lambda: len(job.samples()) > before + 2)
    (job.path / "go").write_text("x")
    assert job.exit()["reason"] == "completed"


def test_an_end_that_the_disk_does_not_take_is_told_when_it_does(job: NodeJob) -> None:
    job.put("import time\nprint('up', flush=True)\nwhile not open('go').read(): time.sleep(0.01)")
    (job.path / "go").write_text("")
    job.start()
    job.said("up")
    in_the_way = job.path / ".exit.json"
    in_the_way.unlink()
    in_the_way.mkdir()
    (job.path / "go").write_text("x")
    job.said("going on")
    assert job.status()["state"] == "running"
    in_the_way.rmdir()
    assert job.exit()["reason"] == "completed"
    assert [event.kind for event in job.samples()].count("exit") == 1


def test_stop_all_ends_each_job_of_the_scratch_and_no_other(job: NodeJob, tmp_path: Path) -> None:
    second = NodeJob(tmp_path, run=2).put(WAITS)
    elsewhere = NodeJob(tmp_path / "other").put(WAITS)
    for each in (job.put(WAITS), second, elsewhere):
        each.start()
        each.said("up")
    answer = job.command("stop-all", str(job.scratch))
    assert answer == {"ended": [str(job.path), str(second.path)], "processes": []}
    assert job.status()["state"] == second.status()["state"] == "ended"
    assert elsewhere.status()["state"] == "running"
    elsewhere.signal("kill")


def test_stop_all_with_a_grace_lets_a_job_end_by_itself(job: NodeJob) -> None:
    stop = Path(job.folder.stop)
    job.put(f"import os, time\nprint('up', flush=True)\nwhile not os.path.exists({str(stop)!r}): time.sleep(0.01)")
    job.start()
    job.said("up")
    assert job.command("stop-all", str(job.scratch), "--grace", "60")["ended"] == [str(job.path)]
    end = job.exit()
    assert (end["code"], end["reason"]) == (0, "stopped")


def test_stop_all_goes_on_past_a_job_that_can_not_be_ended(job: NodeJob, tmp_path: Path) -> None:
    second = NodeJob(tmp_path, run=2).put(WAITS)
    for each in (job.put(WAITS), second):
        each.start()
        each.said("up")
    kill9(job.supervisor())
    until(lambda: job.status()["state"] == "lost")
    in_the_way = job.path / ".exit.json"
    in_the_way.unlink()
    in_the_way.mkdir()
    answer = call("stop-all", str(job.scratch))
    assert (answer.returncode, json.loads(answer.stdout)) == (1, {"ended": [str(second.path)], "processes": []})
    assert str(job.path) in answer.stderr
    assert job.status()["processes"] == []
    assert second.status()["state"] == "ended"


def test_the_exit_file_is_never_seen_half(job: NodeJob) -> None:
    job.put("print('x' * 100)\nraise SystemExit(7)").start()
    path = Path(job.folder.exit)
    seen = []

    def whole() -> bool:
        if path.exists():
            seen.append(json.loads(path.read_text()))
        return bool(seen)

    until(whole)
    assert seen[0]["code"] == 7
