"""The state folder: what the launcher keeps between starts, and where."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PROJECT = Path(__file__).resolve().parents[2]


class CannotStart(Exception):
    """Why nothing was started, and the way out."""


@dataclass(frozen=True)
class Place:
    root: Path

    @classmethod
    def from_environment(cls) -> Place:
        """SHARDBOARD_STATE, else .state beside the code; handed on to everything started from here."""
        root = Path(os.environ.get("SHARDBOARD_STATE") or PROJECT / ".state").resolve()
        os.environ["SHARDBOARD_STATE"] = str(root)
        return cls(root)

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def redis(self) -> Path:
        return self.root / "redis"

    @property
    def kept(self) -> Path:
        """Ports chosen at the first start."""
        return self.root / "launcher.json"

    @property
    def beat(self) -> Path:
        return self.root / "beat-schedule"

    @property
    def authorized_keys(self) -> Path:
        return self.root / "nodes" / "authorized_keys"

    def model(self, name: str) -> Path:
        return self.root / "models" / name

    def samples(self, name: str) -> Path:
        return self.root / "samples" / name

    def node(self, name: str) -> Path:
        """A loopback host's own folder: its host key and its scratch."""
        return self.root / "nodes" / name

    def scratch(self, name: str) -> Path:
        return self.node(name) / "scratch"

    def lock(self) -> IO[str]:
        """Hold the folder until the returned file is closed; raise CannotStart where another launcher does."""
        for folder in (self.root, self.logs, self.redis, self.authorized_keys.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (self.root / "launcher.pid").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CannotStart(
                f"{self.root} is in use by process {file.read().strip() or '?'}. "
                "Stop that one, or set SHARDBOARD_STATE to another folder and SHARDBOARD_PORT to another port."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        return file

    def read_kept(self) -> dict[str, int]:
        try:
            kept: dict[str, int] = json.loads(self.kept.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        return kept

    def write_kept(self, ports: dict[str, int]) -> None:
        new = self.kept.with_suffix(".new")
        new.write_text(json.dumps(ports, indent=1) + "\n", "utf-8")
        new.replace(self.kept)
