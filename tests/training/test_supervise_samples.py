"""samples.jsonl: a line every so often, whatever training does; numbered, whole, the exit last."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from training import sample
from training.sample import Sampler
from training.spec.events import SAMPLED, parse

from .nodejobs import NodeJob, until
from .nvml_driver import Card, Driver, installed

# two ranks of about 60 MB and 0 MB more than an interpreter, one with a helper that carries its number as well
RANKS = """
import os, subprocess, sys, time
rank = "import time; block = bytearray({size}); print('rank', flush=True); time.sleep(600)"
helper = "import subprocess, sys; subprocess.Popen(['sleep', '600']);"
for number, size in ((0, 60_000_000), (1, 1)):
    script = helper + rank.format(size=size)
    subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"RANK": str(number)})
time.sleep(600)
"""


def test_lines_are_numbered_and_the_exit_is_last(tmp_path: Path) -> None:
    job = NodeJob(tmp_path).put("import os, time\nwhile not os.path.exists('stop'): time.sleep(0.01)")
    job.start()
    until(lambda: Path(job.folder.samples).exists() and len(job.samples()) >= 5)
    job.signal("term")
    job.exit()
    events = job.samples()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert [event.kind for event in events] == ["sample"] * (len(events) - 1) + ["exit"]
    assert events[-1].data["reason"] == "stopped"
    for event in events[:-1]:
        figures = event.data
        assert 0 < figures["ram_used"] <= figures["ram_total"]
        assert 0 < figures["disk_free"] <= figures["disk_total"]
        assert 0 <= figures["cpu"] <= 1
        assert figures["gpus"] == []
        assert figures.keys() == {*SAMPLED, "gpus", "ranks"}
    assert events[0].data["net_received"] is None
    assert events[1].data["net_received"] >= 0


def test_each_rank_has_its_memory(tmp_path: Path) -> None:
    job = NodeJob(tmp_path).put(RANKS)
    job.start()
    until(lambda: Path(job.folder.log).exists() and Path(job.folder.log).read_text().count("rank") == 2)
    count = len(job.samples())
    until(lambda: len(job.samples()) > count + 1)
    ranks = job.samples()[-1].data["ranks"]
    job.signal("kill")
    assert [entry["rank"] for entry in ranks] == [0, 1]
    assert ranks[0]["rss"] > 60_000_000 > ranks[1]["rss"] > 1_000_000


def test_a_disk_that_is_not_there_is_no_figure(tmp_path: Path) -> None:
    sampler = Sampler(str(tmp_path / "gone"), 1)
    figures = sampler.take()
    assert figures["disk_free"] is None
    assert figures["ram_total"] > 0
    assert (list(sampler.problems), "rates" in str(sampler.problems)) == (["rates"], True)


def test_a_driver_that_hangs_costs_its_own_figures_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The driver library stands in for one that never comes back; the second look doesn't even wait."""
    driver, go = Driver([Card()]), threading.Event()
    monkeypatch.setattr(driver, "nvmlDeviceGetMemoryInfo", lambda *_: go.wait() and 0)
    monkeypatch.setattr(sample, "PATIENCE", 0.2)
    with installed(driver):
        sampler = Sampler(str(tmp_path), 1)
        for _ in range(2):
            figures = sampler.take()
            assert "gpus" not in figures
            assert figures["disk_free"] > 0
        assert sampler.problems == {"gpus": "no answer"}
        go.set()
        sampler._slow["gpus"].get(60)
        assert sampler.take()["gpus"][0]["temperature"] == 61


def test_samples_go_on_while_the_job_stands_still(tmp_path: Path) -> None:
    job = NodeJob(tmp_path).put("import os, signal\nprint('up', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)")
    job.start()
    job.said("up")
    before = len(job.samples())
    until(lambda: len(job.samples()) > before + 3)
    assert job.signal("kill") == {"processes": []}
    assert parse(Path(job.folder.samples).read_text().splitlines()[-1]).kind == "exit"
