"""preflight: a true answer on any node, a bare one included."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import pytest

from training import installed

from .nodejobs import ROOT, call


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with nothing but its standard library."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


def answer(python: Path | str, scratch: Path, path: str = "") -> dict[str, Any]:
    environment = {"PYTHONPATH": str(ROOT), "PATH": path or os.environ["PATH"]}
    command = [str(python), "-m", "training", "preflight", "--scratch", str(scratch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    body: dict[str, Any] = json.loads(done.stdout)
    return body


def fields(body: dict[str, Any]) -> list[str]:
    return [problem["field"] for problem in body["problems"]]


def test_it_works(tmp_path: Path) -> None:
    body = answer(sys.executable, tmp_path / "new" / "scratch")
    assert body["hostname"] == socket.gethostname()
    assert body["python"] == ".".join(map(str, sys.version_info[:3]))
    assert body["scratch_writable"]
    assert 0 < body["ram_available"] <= body["ram_total"]
    assert 0 < body["disk_free"] <= body["disk_total"]
    assert {"name": "lo", "address": "127.0.0.1"} in body["interfaces"]
    assert body["cores"] >= 1
    assert list((tmp_path / "new" / "scratch").iterdir()) == []


def test_a_bare_python_gets_an_answer_with_the_way_out(bare_python: Path, tmp_path: Path) -> None:
    body = answer(bare_python, tmp_path)
    (problem,) = [p for p in body["problems"] if p["field"] == "versions"]
    assert "torch" in problem["reason"]
    assert "pydantic" in problem["reason"]
    assert problem["fix"].startswith(f"{bare_python} -m pip install -r ")
    assert Path(problem["fix"].split()[-1]).is_file()
    assert body["versions"]["torch"] is None


def test_the_other_bare_commands(bare_python: Path) -> None:
    for words in (["--help"], ["free-port", "127.0.0.1"]):
        command = [str(bare_python), "-m", "training", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr


def test_a_scratch_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for scratch in (tmp_path / "file" / "below", Path("/proc/nowhere"), Path("not/absolute")):
        body = answer(sys.executable, scratch)
        assert "scratch" in fields(body)
        assert body["scratch_writable"] is False


def test_gpus_and_who_holds_them_are_read_from_nvidia_smi(tmp_path: Path) -> None:
    me = os.getpid()
    name = "NVIDIA A100-SXM4-80GB"
    gpus = f"0, GPU-a, {name}, 81920, 5, 570.86.15\n1, GPU-b, {name}, 81920, 1024, 570.86.15\n"
    links = "GPU 0: A\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"
    tool(
        tmp_path,
        f"case $1 in *compute-apps*) echo 'GPU-b, {me}, 1019' ;; nvlink) printf '{links}' ;;"
        f" *) cat <<'E'\n{gpus}E\n;; esac",
    )
    body = answer(sys.executable, tmp_path / "s", f"{tmp_path}:{os.environ['PATH']}")
    assert [gpu["memory_used"] for gpu in body["gpus"]] == [5 << 20, 1 << 30]
    assert (body["gpus"][1]["name"], body["gpus"][1]["driver"]) == (name, "570.86.15")
    (holder,) = body["gpu_processes"]
    assert (holder["gpu"], holder["pid"], holder["memory"]) == (1, me, 1019 << 20)
    assert holder["command"].startswith(psutil.Process().cmdline()[0])
    assert body["nvlink"] == {"active": 1, "inactive": 1}
    # torch of this test environment may or may not have CUDA; only the build without it is a problem
    assert ("cuda" in fields(body)) == (body["versions"]["torch"] is not None and body["cuda"] is None)


def test_a_broken_driver_is_a_problem(tmp_path: Path) -> None:
    tool(tmp_path, "echo 'Failed to initialize NVML' >&2; exit 9")
    body = answer(sys.executable, tmp_path / "s", f"{tmp_path}:{os.environ['PATH']}")
    assert body["gpus"] == []
    assert "gpus" in fields(body)


def test_a_free_port_is_free() -> None:
    port = json.loads(call("free-port", "127.0.0.1").stdout)["port"]
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_port_on_a_foreign_address_is_refused() -> None:
    done = call("free-port", "203.0.113.7")
    assert done.returncode == 1
    assert "203.0.113.7" in done.stderr


def tool(folder: Path, body: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_versions_are_those_that_the_interpreter_would_take(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (
        first / "Flash_Attn-9.8+cu13.dist-info",
        second / "flash_attn-1.0.dist-info",
        second / "x-1.egg-info",
    ):
        folder.mkdir(parents=True)
    found = installed.versions(["flash-attn", "x", "none"], [str(first), str(second), str(tmp_path / "away")])
    assert found == {"flash-attn": "9.8+cu13", "x": "1", "none": None}
    named = ["torch", "PyYAML", "nvidia-ml-py", "accelerate"]
    assert installed.versions(named) == {name: metadata.version(name) for name in named}
