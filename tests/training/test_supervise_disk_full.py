"""A full disk: the job's end is still told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.namespaces import own_mounts
from training.spec.events import parse

from .nodejobs import ROOT, NodeJob

FILLS = """
import os, time
print('before', flush=True)
with open('filling', 'wb', buffering=0) as file:
    while True:
        file.write(bytes(4096))
"""
# In a mount namespace of its own: a file system of 2 MiB, the job on it, and what is left of it copied out.
SCRIPT = """
set -e
mount -t tmpfs -o size=2m tmpfs "$1"
cp -r "$2"/. "$1"
"$3" -m training start "$4" >/dev/null
while [ ! -e "$4/exit.json" ]; do sleep 0.05; done
sync
cp "$4"/exit.json "$4"/samples.jsonl "$4"/train.log "$2"
"""


@pytest.mark.root
def test_the_exit_is_told_on_a_full_disk(tmp_path: Path) -> None:
    assert os.geteuid() == 0, "mounting needs root: run it as root, or leave it out with -m 'not root'"
    job = NodeJob(tmp_path / "mounted").put(FILLS)
    prepared, mounted = tmp_path / "prepared", tmp_path / "mounted"
    mounted.rename(prepared)
    mounted.mkdir()
    words = [str(mounted), str(prepared), sys.executable, str(job.path)]
    command = [*own_mounts(), "sh", "-c", SCRIPT, "sh", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    end = json.loads((prepared / "exit.json").read_text())
    assert end["reason"] == "disk_full"
    assert end["code"] == 1
    seqs = [parse(line).seq for line in (prepared / "samples.jsonl").read_text().splitlines()]
    assert seqs == list(range(1, len(seqs) + 1))
