"""How much memory there is: the host's figures, or a container's where they are smaller."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from training.memory import Memory, memory

GIB = 1 << 30
ROOT = Path(__file__).parents[2]


def host(folder: Path) -> Path:
    path = folder / "meminfo"
    path.write_text(
        f"MemTotal:  {16 * GIB // 1024} kB\nMemFree: 1 kB\nMemAvailable: {8 * GIB // 1024} kB\nHugePages_Total: 0\n"
    )
    return path


def limit(folder: Path, values: dict[str, str]) -> None:
    for name, text in values.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def test_it_is_this_hosts() -> None:
    assert memory().total <= psutil.virtual_memory().total
    assert 0 < memory().available <= memory().total


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Memory(16 * GIB, 8 * GIB)),
        ({"memory.max": "max\n", "memory.current": "5\n", "memory.stat": ""}, Memory(16 * GIB, 8 * GIB)),
        (
            {
                "memory.max": f"{4 * GIB}\n",
                "memory.current": f"{3 * GIB}\n",
                "memory.stat": f"anon 1\ninactive_file {GIB}\n",
            },
            Memory(4 * GIB, 2 * GIB),
        ),
        (
            {
                "memory/memory.limit_in_bytes": f"{4 * GIB}\n",
                "memory/memory.usage_in_bytes": f"{GIB}\n",
                "memory/memory.stat": "inactive_file 7\ntotal_inactive_file 0\n",
            },
            Memory(4 * GIB, 3 * GIB),
        ),
        # v1 without a limit says a number beyond all memory
        (
            {
                "memory/memory.limit_in_bytes": "9223372036854771712\n",
                "memory/memory.usage_in_bytes": "1\n",
                "memory/memory.stat": "",
            },
            Memory(16 * GIB, 8 * GIB),
        ),
    ],
)
def test_a_containers_limit_counts(tmp_path: Path, values: dict[str, str], expected: Memory) -> None:
    limit(tmp_path, values)
    assert memory(host(tmp_path), tmp_path) == expected


GROUPS = "4:memory:/jobs/one\n1:cpu:/\n0::/jobs/one\n"


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("jobs/one", ("memory.max", "memory.current")),
        ("jobs", ("memory.max", "memory.current")),
        ("unified/jobs/one", ("memory.max", "memory.current")),
        ("memory/jobs/one", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ],
)
def test_a_limit_on_the_own_group_or_one_above_counts(tmp_path: Path, group: str, names: tuple[str, str]) -> None:
    process, folder = tmp_path / "process", tmp_path / "groups" / group
    process.mkdir()
    (process / "cgroup").write_text(GROUPS)
    folder.mkdir(parents=True)
    limit(folder, {names[0]: f"{GIB}\n", names[1]: f"{GIB // 4}\n", "memory.stat": ""})
    assert memory(host(tmp_path), tmp_path / "groups", process) == Memory(GIB, GIB - GIB // 4)
    (process / "cgroup").write_text("4:memory:/other\n0::/../escaped\n")
    assert memory(host(tmp_path), tmp_path / "groups", process) == Memory(16 * GIB, 8 * GIB)


@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_limit_on_the_process_counts(name: str) -> None:
    script = (
        f"import resource; resource.setrlimit(resource.{name}, ({GIB}, {GIB}));"
        "from training.memory import memory; print(*memory())"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    total, available = map(int, run.stdout.split())
    assert total == GIB
    assert GIB // 2 < available < GIB
