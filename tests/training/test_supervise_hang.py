"""The supervisor ends a job that hangs, and names the rank that a signal has stopped."""

from __future__ import annotations

from pathlib import Path

from training.journal import tail

from .nodejobs import NodeJob


def test_a_rank_that_hangs_too_long_ends_the_job_and_a_stopped_one_is_named(tmp_path: Path) -> None:
    """Rank 1 is stopped by a signal; rank 0 waits for it, says so, and is not borne any longer."""
    script = (
        "import json, os, signal, subprocess, sys, time\n"
        "stop = 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)'\n"
        "subprocess.Popen([sys.executable, '-c', stop], env=os.environ | {'RANK': '1'})\n"
        "told = {'rank': 0, 'part': 'forward_backward', 'step': 3, 'since': 1.0, 'ends_at': time.time()}\n"
        "open('hang-rank0.json', 'w').write(json.dumps(told | {'waits': True}))\n"
        "time.sleep(600)\n"
    )
    job = NodeJob(tmp_path).put(script, env="RANK=0\n")
    job.start()
    end = job.exit()
    assert (end["reason"], end["rank"]) == ("hang", 1)
    assert "had been stopped by a signal; then: rank 0 makes no progress in forward backward, step 3" in end["text"]
    assert [one["waits"] for one in end["evidence"]["hanging"]] == [True]
    warnings = [event.data for event in tail(Path(job.folder.events)) if event.kind == "warning"]
    assert [(warning["rank"], warning["pid"]) for warning in warnings] == [(1, end["evidence"]["stopped"]["1"])]
    assert job.status()["processes"] == []
