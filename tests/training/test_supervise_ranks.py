"""Two real ranks under accelerate: the launcher's own report is read right."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from .nodejobs import NodeJob

RANK = """
import os, signal, torch, torch.distributed as dist
dist.init_process_group("gloo")
block = torch.ones(4)
dist.all_reduce(block)
if os.environ["RANK"] == "1":
    {end}
while True:
    dist.all_reduce(block)
"""


def launched(tmp_path: Path, end: str) -> NodeJob:
    job = NodeJob(tmp_path).put("", grace=1.0)
    script = tmp_path / "rank.py"
    script.write_text(RANK.format(end=end))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = {
        "compute_environment": "LOCAL_MACHINE", "distributed_type": "FSDP", "use_cpu": True, "num_machines": 1,
        "num_processes": 2, "machine_rank": 0, "main_process_ip": "127.0.0.1", "main_process_port": port,
        "fsdp_config": {"fsdp_version": 2},
    }  # fmt: skip
    accelerate = Path(job.folder.accelerate)
    accelerate.write_text(json.dumps(config))  # JSON is YAML
    argv = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(accelerate), str(script)]
    body = json.loads(Path(job.folder.job).read_text()) | {"argv": argv}
    Path(job.folder.job).write_text(json.dumps(body))
    Path(job.folder.env).write_text("OMP_NUM_THREADS=1\nCUDA_VISIBLE_DEVICES=\n")
    Path(job.folder.env).chmod(0o600)
    job.start()
    return job


@pytest.mark.ranks
def test_a_rank_killed_by_the_host(tmp_path: Path) -> None:
    end = launched(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)").exit()
    assert (end["reason"], end["rank"]) == ("killed_by_host", 1)
    assert ": rank 1 was killed by signal 9 on " in end["text"]
    assert "rank 0 0." in end["text"]


@pytest.mark.ranks
def test_a_rank_that_raises(tmp_path: Path) -> None:
    job = launched(tmp_path, "raise ValueError('bad row 7')")
    end = job.exit()
    assert (end["reason"], end["text"]) == ("rank_failed", "ValueError: bad row 7")
    assert job.status()["processes"] == []
