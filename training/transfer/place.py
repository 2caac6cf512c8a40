"""A transfer's folder on a node: keys, and how far it is. Mode 700; whoever made it removes it.

What a node that died left behind goes when the next transfer begins there, a day later.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

OLD_SECONDS = 24 * 3600.0


class Place:
    """The names in it: those down to `taken` on the node that takes, the others on the one that lends."""

    def __init__(self, path: str):
        self.path = Path(path)
        self.key = self.path / "key"
        self.known_hosts = self.path / "known_hosts"
        self.told = self.path / "taking.json"
        self.progress = self.path / "progress"
        self.taken = self.path / "taken.json"
        self.host_key = self.path / "host_key"
        self.authorized = self.path / "authorized_keys"
        self.config = self.path / "sshd_config"
        self.listing = self.path / "lent.json"
        self.log = self.path / "sshd.log"
        self.done = self.path / "done"

    def make(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for other in self.path.parent.iterdir():
            if time.time() - other.lstat().st_mtime > OLD_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
        self.path.mkdir(mode=0o700, exist_ok=True)

    def forget_keys(self) -> None:
        for path in (self.key, self.key.with_suffix(".pub"), self.known_hosts):
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def make_key(path: Path) -> str:
    """Make an Ed25519 key pair at `path` unless there is one; return its public half. Raises OSError."""
    if not path.exists():
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise OSError("there is no ssh-keygen on this node: install OpenSSH's client") from error
        if done.returncode:
            raise OSError(f"ssh-keygen: {done.stderr.strip() or done.stdout.strip()}")
    return " ".join(path.with_suffix(".pub").read_text("ascii").split()[:2])


def write_private(path: Path, text: str) -> None:
    """Write a file that others may not read, whole or not at all."""
    work = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(work, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(work, path)
