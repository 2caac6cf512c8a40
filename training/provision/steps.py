"""The steps themselves, one after the other; each line that they print is kept, and the last one told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..spec.venvfolder import VenvFolder
from .background import take, write

LONGEST = 500  # characters of a line that is told
SHORTEST = 4  # of what is hidden: a user name of one letter would be struck out of every word


class Making:
    """What is told of it; `began` and `step_began` in seconds since the epoch, of the node's clock."""

    def __init__(self, folder: VenvFolder, steps: list[dict[str, Any]]):
        self.folder, self.steps = folder, steps
        self.began = time.time()
        self.told: dict[str, Any] = {}

    def step(self, number: int, name: str) -> None:
        self.told = {"step": name, "number": number, "of": len(self.steps), "began": self.began}
        self.told |= {"step_began": time.time(), "line": ""}
        write(self.folder.state, self.told)

    def line(self, text: str) -> None:
        """Told at once: pip says what it fetches, and then nothing for minutes."""
        self.told["line"] = text[:LONGEST]
        write(self.folder.state, self.told)

    def end(self, code: int) -> None:
        seconds = round(time.time() - self.began, 1)
        write(self.folder.exit, {"code": code, "step": self.told.get("step", ""), "seconds": seconds})


def run(folder: VenvFolder, lock: int) -> int:
    """Do all steps; return 0, or the status of the one that failed. `lock`: handed down by `start`, else taken."""
    if lock < 0:
        taken = take(folder)
        if taken is None:
            raise ValueError(f"{folder.path} is being made by another process")
        lock = taken
    env = pip_env(folder)
    making = Making(folder, json.loads(Path(folder.order).read_text("utf-8"))["steps"])
    code = 0
    for number, step in enumerate(making.steps, start=1):
        making.step(number, step["name"])
        code = _do(step["argv"], making, env, lock)
        if code:
            break
    if not code:
        _finish(folder)
    with suppress(FileNotFoundError):
        os.unlink(folder.env)
    making.end(code)
    return code


def _finish(folder: VenvFolder) -> None:
    shutil.rmtree(folder.cache, ignore_errors=True)
    os.sync()  # the mark must not outlive, over a power cut, what it stands for
    Path(folder.complete).write_text("", "utf-8")


def _do(argv: list[str], making: Making, env: Mapping[str, str], lock: int) -> int:
    """Run one command to its end. It holds the lock too: what is left of it is waited for, not run beside."""
    hidden = secrets_in(env)
    print("$ " + " ".join(argv), flush=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**clean, **env, "PYTHONUNBUFFERED": "1"},
            cwd="/",
            pass_fds=(lock,),
        )
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", flush=True)
        return 127
    assert process.stdout is not None
    for raw in process.stdout:
        text = hide(raw.decode("utf-8", "replace").rstrip(), hidden)
        print(text, flush=True)
        if text.strip():
            making.line(text.strip())
    return process.wait()


def pip_env(folder: VenvFolder) -> dict[str, str]:
    """Return the settings of the env file, none where there is no file."""
    try:
        lines = Path(folder.env).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def secrets_in(env: Mapping[str, str]) -> list[str]:
    """Return what no line may show: user names and passwords in addresses, the longest first."""
    found = set()
    for value in env.values():
        for word in value.split():
            if "@" in word:
                address = urlsplit(word)
                found |= {part for part in (address.password, address.username) if part and len(part) >= SHORTEST}
    return sorted(found, key=len, reverse=True)


def hide(text: str, hidden: list[str]) -> str:
    for secret in hidden:
        text = text.replace(secret, "****")
    return text
