"""Why a job ended: what the ranks said, what the launcher saw, what the log holds."""

from __future__ import annotations

import socket
from pathlib import Path, PurePosixPath

import pytest

from training import ending
from training.ending import Outcome
from training.evidence import kernel
from training.evidence.hang import Hanging
from training.evidence.kernel import Kernel
from training.evidence.scene import Seen
from training.journal import Journal
from training.spec.folder import JobFolder

from .nodejobs import NodeJob, call

KILLED, HOST = "killed by the host, probably out of memory", socket.gethostname()
ELASTIC = "E1129 18:50 torch/distributed/elastic] failed (exitcode: {code}) local_rank: 1 (pid: 77) of binary: python\n"
REPORT = (
    "Failures:\n[1]:\n  rank      : 4 (local_rank: 0)\n  exitcode  : -15 (pid: 7)  (SIGTERM)\n"
    "Root Cause (first observed failure):\n[0]:\n  time      : now\n  host      : a\n"
    "  rank      : 5 (local_rank: 1)\n  exitcode  : {code} (pid: 8)\n"
)
LAUNCHER = (
    "Traceback (most recent call last):\n"
    '  File "launch.py", line 1, in launch\n'
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    "====\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(PurePosixPath(tmp_path))


def found(folder: JobFolder, log: str, outcome: Outcome) -> tuple[str, str]:
    Path(folder.log).write_text(log)
    end = ending.find(folder, outcome)
    return str(end.reason), end.text


def traceback(line: str, rank: str = "") -> str:
    return "".join(f"{rank}{x}\n" for x in ("Traceback (most recent call last):", '  File "a.py", line 1', line))


@pytest.mark.parametrize(
    ("log", "code", "signal", "reason", "text"),
    [
        ("", 0, None, "completed", ""),
        ("", None, 9, "killed_by_host", f"{KILLED}: the launcher was killed by signal 9 on {HOST}"),
        (ELASTIC.format(code=-9) + LAUNCHER, 1, None, "killed_by_host",
         f"{KILLED}: local rank 1 was killed by signal 9 on {HOST}"),
        (ELASTIC.format(code=-9) + LAUNCHER + REPORT.format(code=-9), 1, None, "killed_by_host",
         f"{KILLED}: rank 5 was killed by signal 9 on {HOST}"),
        (traceback("ValueError: bad"), 1, None, "rank_failed", "ValueError: bad"),
        (traceback("ValueError: bad", "[rank1]: ") + LAUNCHER, 1, None, "rank_failed", "ValueError: bad"),
        (traceback("torch.OutOfMemoryError: CUDA out of memory. Tried"), 1, None, "out_of_gpu_memory",
         "torch.OutOfMemoryError: CUDA out of memory. Tried"),
        (traceback("OSError: [Errno 28] No space left on device"), 1, None, "disk_full",
         "OSError: [Errno 28] No space left on device"),
        (traceback("KeyError: 1") + "\nDuring handling of the above exception, another exception occurred:\n\n"
         + traceback("Refused: field a: missing"), 1, None, "rank_failed", "Refused: field a: missing"),
        (ELASTIC.format(code=-11) + LAUNCHER, 1, None, "rank_failed", "local rank 1 was ended by signal 11 (SIGSEGV)"),
        ("{'loss': 1.2}\nterminate called after throwing\n\n" + ELASTIC.format(code=-6) + LAUNCHER
         + REPORT.format(code=-6), 1, None, "rank_failed",
         "rank 5 was ended by signal 6 (SIGABRT); its last words: terminate called after throwing"),
        ("", 3, None, "rank_failed", "the process ended with status 3"),
        ("", None, 15, "rank_failed", "the process was ended by signal 15 (SIGTERM)"),
    ],
)  # fmt: skip
def test_evidence(folder: JobFolder, log: str, code: int | None, signal: int | None, reason: str, text: str) -> None:
    assert found(folder, log, Outcome(code, signal)) == (reason, text)


def test_a_finished_event_counts(folder: JobFolder) -> None:
    Journal(Path(folder.events)).emit("finished", 3, reason="non_finite", text="NaN at step 3")
    assert found(folder, traceback("ValueError: bad"), Outcome(1, None)) == ("non_finite", "NaN at step 3")


def test_a_save_that_nobody_asked_for_is_not_a_stop(folder: JobFolder) -> None:
    """The ranks of a launcher that was killed are told to end, and save as in a stop."""
    Journal(Path(folder.events)).emit("finished", 3, reason="stopped", text="stopped on request, state saved")
    assert found(folder, "", Outcome(None, 9)) == (
        "killed_by_host",
        f"{KILLED}: the launcher was killed by signal 9 on {HOST}",
    )
    assert found(folder, "", Outcome(0, None)) == ("stopped", "stopped on request, state saved")
    assert found(folder, "", Outcome(None, 9, ended_by_us=True))[0] == "stopped"
    Path(folder.stop).touch()
    assert found(folder, "", Outcome(None, 9))[0] == "stopped"


@pytest.mark.parametrize("said", ["rank_failed", "peer_ended"])
def test_a_rank_that_lost_its_neighbour_does_not_hide_the_killed_one(folder: JobFolder, said: str) -> None:
    Journal(Path(folder.events)).emit("finished", 3, reason=said, text="Connection closed by peer")
    log = ELASTIC.format(code=-9)
    assert found(folder, log, Outcome(1, None))[0] == "killed_by_host"
    own = traceback("ValueError: bad row", "[rank1]: ")
    assert found(folder, own, Outcome(1, None)) == ("rank_failed", "ValueError: bad row")


def test_a_rank_that_only_lost_its_neighbour_says_so(folder: JobFolder) -> None:
    line = "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:231."
    assert found(folder, traceback(line, "[rank0]: "), Outcome(1, None)) == ("peer_ended", line)


def test_a_node_that_only_lost_another_one_says_so(folder: JobFolder) -> None:
    Journal(Path(folder.events)).emit("finished", 3, reason="peer_ended", text="Connection closed by peer")
    told = ("peer_ended", "Connection closed by peer")
    assert found(folder, ELASTIC.format(code=1) + LAUNCHER, Outcome(1, None)) == told
    assert found(folder, "", Outcome(None, 9, ended_by_us=True)) == told


def test_a_neighbours_full_disk_is_not_ours_though_our_log_tells_of_it(folder: JobFolder) -> None:
    text = "rank 1 could not save into /x (0.0 MB free): OSError: [Errno 28] No space left on device"
    Journal(Path(folder.events)).emit("finished", 3, reason="peer_ended", text=text, rank=1)
    log = traceback("OSError: [Errno 28] No space left on device", "[rank0]: ")
    Path(folder.log).write_text(log)
    end = ending.find(folder, Outcome(1, None))
    assert (end.reason, end.text, end.rank) == ("peer_ended", text, 1)


def test_what_we_ended_is_not_the_hosts_doing(folder: JobFolder) -> None:
    assert found(folder, ELASTIC.format(code=-9), Outcome(None, 9, ended_by_us=True))[0] == "stopped_unsaved"


def test_the_reason_of_an_unknown_word_is_left_alone(folder: JobFolder) -> None:
    Journal(Path(folder.events)).emit("finished", 3, reason="never heard of", text="?")
    assert found(folder, "", Outcome(3, None))[0] == "rank_failed"


NONE = Kernel(readable=True)
LINE = "Memory cgroup out of memory: Killed process 8 (python) total-vm:1kB, anon-rss:1kB"


@pytest.mark.parametrize(
    ("kernel", "kills", "words"),
    [
        (
            Kernel(True, (LINE,), (8,)),
            0,
            f"out of memory: rank 5 was killed by signal 9 on {HOST}; the kernel says: Mem",
        ),
        (NONE, 2, f"out of memory: rank 5 was killed by signal 9 on {HOST}; its memory group counted 2 such kills"),
        (
            Kernel(True, other_oom=(LINE,)),
            0,
            f"{KILLED}: rank 5 was killed by signal 9 on {HOST}; the kernel killed for",
        ),
        (NONE, 0, "killed, and not by the kernel for a lack of memory: rank 5"),
        (Kernel(), 0, KILLED),
    ],
)
def test_who_killed_it_is_told_as_far_as_the_kernel_lets_us(
    folder: JobFolder, kernel: Kernel, kills: int, words: str
) -> None:
    Path(folder.log).write_text(REPORT.format(code=-9))
    asked: list[object] = []
    outcome = Outcome(1, None, seen=Seen(pids={8: 5}, oom_kills=kills, since=1.0))
    end = ending.find(folder, outcome, lambda pids, since: asked.append((set(pids), since)) or kernel)
    assert (end.reason, end.rank, asked) == ("killed_by_host", 5, [({8}, 1.0)])
    assert words in end.text
    assert end.evidence["kernel"] == {"readable": kernel.readable, "lines": [*kernel.lines, *kernel.other_oom]}


@pytest.mark.parametrize(
    ("log", "reason", "rank"),
    [
        (traceback("AssertionError: shapes differ", "[rank1]: "), "assertion", 1),
        ("[rank1]:[E1130 ProcessGroupNCCL.cpp:685] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(\n"
         + ELASTIC.format(code=-6), "collective_timeout", 1),
        (traceback("RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv"
                   " operation to complete") + traceback("KeyError: 'rows'", "[rank1]: "), "rank_failed", 1),
    ],
)  # fmt: skip
def test_which_rank_failed_and_why(folder: JobFolder, log: str, reason: str, rank: int) -> None:
    Path(folder.log).write_text(log + ELASTIC.format(code=1))
    end = ending.find(folder, Outcome(1, None, seen=Seen(pids={77: 1})))
    assert (end.reason, end.rank) == (reason, rank)
    assert any(end.text[:100] in line for line in end.evidence["log"])


def test_a_rank_without_a_traceback_is_shown_by_its_own_last_lines(folder: JobFolder) -> None:
    lines = [f"line {n}" for n in range(30)]
    report = ELASTIC.format(code=-6) + LAUNCHER + REPORT.format(code=-6)
    Path(folder.log).write_text("\n".join([*lines, report]))
    assert ending.find(folder, Outcome(1, None)).evidence["log"] == lines[10:]


def test_a_stopped_rank_is_named_before_what_came_of_it(folder: JobFolder) -> None:
    end = ending.find(folder, Outcome(None, 9, seen=Seen(stopped={3: 4711})))
    assert (end.reason, end.rank) == ("killed_by_host", 3)
    assert end.text.startswith(f"rank 3, process 4711 on {HOST}, had been stopped by a signal; then: killed by")


def test_a_hang_names_the_rank_that_waits_for_nobody(folder: JobFolder) -> None:
    Journal(Path(folder.events)).emit("finished", 3, reason="peer_ended", text="Connection closed by peer")
    waiting = [Hanging(n, "forward_backward", 7, since=100.0 + n, waits=True) for n in (0, 1)]
    guilty = Hanging(2, "data", 7, since=105.0, where="a.py:3 in read")
    end = ending.find(folder, Outcome(None, 15, seen=Seen(hanging=(*waiting, guilty), hung=True)))
    assert (end.reason, end.rank) == ("hang", 2)
    assert "rank 2 makes no progress in data, step 7" in end.text
    assert end.text.endswith("at a.py:3 in read; on this node so do ranks 0, 1")


def test_the_kernel_is_asked_for_what_concerns_the_job() -> None:
    said = [
        LINE,
        LINE.replace("process 8", "process 9"),
        "python[8]: segfault at 0",
        "NVRM: Xid (PCI:0): 79",
        "eth0 up",
    ]
    assert kernel.of_job(said, {8}) == Kernel(True, (said[0], said[2], said[3]), (8,), (said[1],))


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    job = NodeJob(tmp_path)
    job.path.mkdir(parents=True)
    Path(job.folder.job).write_text('{"argv": ["/no/such/python"], "disk": "/tmp"}')
    job.start()
    end = job.exit()
    assert (end["reason"], end["code"]) == ("launch", None)
    assert "/no/such/python" in end["text"]


@pytest.mark.parametrize("text", ['{"argv": []}', "{", '{"argv": ["a"], "disk": "/", "surprise": 1}'])
def test_a_bad_job_file(tmp_path: Path, text: str) -> None:
    job = NodeJob(tmp_path)
    job.path.mkdir(parents=True)
    Path(job.folder.job).write_text(text)
    assert job.start()["state"] == "started"
    assert job.exit()["reason"] == "launch"
    assert "job.json" in job.exit()["text"]
    assert call("status", str(job.path)).returncode == 0
