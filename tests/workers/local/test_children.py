"""Children are kept alive, ended whole, given up with their last words, and never outlive the launcher."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workers.local import children
from workers.local.children import Child, GaveUp, Keeper

PYTHON = sys.executable
SLEEPER = "import time; time.sleep(600)"
WRITES_PID = "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); time.sleep(600)"


async def until(look: Callable[[], Any], limit: float = 120.0) -> Any:
    """Return what `look` returns once it is true."""
    async with asyncio.timeout(limit):
        while not (found := look()):  # noqa: ASYNC110  another process writes what we look at
            await asyncio.sleep(0.02)
        return found


def pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def alive(pid: int) -> bool:
    """Zombies don't count: in a container nobody may collect an orphan."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_it_starts_and_ends(tmp_path: Path) -> None:
    keeper, child = Keeper(tmp_path, print), Child("sleeper", (PYTHON, "-c", WRITES_PID, str(tmp_path / "pids")))
    keeper.start([child])
    (pid,) = await until(lambda: pids(tmp_path / "pids"))
    await keeper.stop([child])
    assert not alive(pid)


async def test_a_killed_child_is_started_again_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    keeper, child = Keeper(tmp_path, said.append), Child("worker", (PYTHON, "-c", WRITES_PID, str(tmp_path / "pids")))
    keeper.start([child])
    (first,) = await until(lambda: pids(tmp_path / "pids"))
    os.kill(first, signal.SIGKILL)
    both = await until(lambda: found if len(found := pids(tmp_path / "pids")) == 2 else None)
    await keeper.stop([child])
    assert both[1] != first
    assert len(said) == 1
    assert said[0].startswith("worker was ended by SIGKILL; starting it again")
    assert not any(alive(pid) for pid in both)


async def test_one_that_never_comes_up_is_given_up_with_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "BACK_OFF", (0.0,))
    child = Child("web", (PYTHON, "-c", "import sys; print('no module called site'); sys.exit(3)"))
    keeper = Keeper(tmp_path, lambda line: None)
    keeper.start([child])
    with pytest.raises(GaveUp, match=r"(?s)web ended with status 3, 6 times in a row.*no module called site"):
        await asyncio.wait_for(keeper.failure(), 60)
    await keeper.stop([child])


async def test_what_a_child_started_ends_with_it(tmp_path: Path) -> None:
    starts_another = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WRITES_PID!r}, sys.argv[1]])"
    keeper, child = Keeper(tmp_path, print), Child("parent", (PYTHON, "-c", starts_another, str(tmp_path / "pids")))
    keeper.start([child])
    (grandchild,) = await until(lambda: pids(tmp_path / "pids"))
    await keeper.stop([child])
    await until(lambda: not alive(grandchild))


async def test_one_that_ignores_term_is_killed_after_its_grace(tmp_path: Path) -> None:
    stubborn = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{WRITES_PID}"
    child = Child("stubborn", (PYTHON, "-c", stubborn, str(tmp_path / "pids")), grace=0.1)
    keeper = Keeper(tmp_path, print)
    keeper.start([child])
    (pid,) = await until(lambda: pids(tmp_path / "pids"))
    await keeper.stop([child])
    assert not alive(pid)


LAUNCHER = """
import asyncio, sys
from pathlib import Path
from typing import Any
from workers.local.children import Child, Keeper
async def main():
    Keeper(Path(sys.argv[1]), print).start([Child("kept", (sys.executable, "-c", sys.argv[2], sys.argv[3]))])
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_children_end_when_the_launcher_is_killed(tmp_path: Path) -> None:
    where = str(tmp_path / "pids")
    launcher = subprocess.Popen([PYTHON, "-c", LAUNCHER, str(tmp_path), WRITES_PID, where])  # noqa: ASYNC220
    (kept,) = await until(lambda: pids(tmp_path / "pids"))
    launcher.kill()
    launcher.wait()
    await until(lambda: not alive(kept))
