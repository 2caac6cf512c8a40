"""Files that another node lends, read over its private SSH server by this node's own `ssh`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from types import TracebackType

from ..spec.transfer import Taking
from .place import Place

BLOCK = 1 << 20
OPTIONS = {
    "BatchMode": "yes",
    "IdentityFile": "key",  # names are of the place, where ssh is started
    "IdentitiesOnly": "yes",
    "IdentityAgent": "none",
    "UserKnownHostsFile": "known_hosts",
    "GlobalKnownHostsFile": "/dev/null",
    "StrictHostKeyChecking": "yes",
    "HostKeyAlgorithms": "ssh-ed25519",
    "UpdateHostKeys": "no",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "Compression": "no",
    "Ciphers": "^aes128-gcm@openssh.com",
}


class LinkFailed(Exception):
    """The other node could not be reached, or not to the end."""


class NotLent(Exception):
    """The other node has not what was saved."""


class Borrowed:
    """A connection to the node that lends; a context manager. Raises LinkFailed, NotLent."""

    def __init__(self, place: Place, taking: Taking):
        self._place, self.source = place, taking.source
        flags = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
        where = ["-p", str(taking.lent.port), "-l", taking.lent.user, "--", taking.address, "serve"]
        self._argv = ["ssh", "-F", "none", "-T", *flags, *where]

    def __enter__(self) -> Borrowed:
        self._log = (self._place.path / "ssh.log").open("w+b")
        try:
            self._ssh = subprocess.Popen(
                self._argv, cwd=self._place.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
            )
        except OSError as error:
            raise LinkFailed(f"ssh can not be started: {error}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for pipe in (self._ssh.stdin, self._ssh.stdout):
            if pipe:
                pipe.close()
        self._ssh.terminate()
        self._ssh.wait()
        self._log.close()

    def read(self, name: str, offset: int, size: int) -> Iterator[bytes]:
        """Yield the file's bytes from `offset` on; a file that is not of `size` is NotLent."""
        assert self._ssh.stdout is not None
        self._ask(name, offset)
        told = json.loads(self._ssh.stdout.readline() or self._gone())
        if "error" in told or told["size"] != size:
            found = told.get("error") or f"{name} has {told['size']:,} bytes, {size:,} were written"
            raise NotLent(f"{self.source}: {found}")
        left = size - offset
        while left > 0:
            block = self._ssh.stdout.read(min(BLOCK, left))
            if not block:
                self._gone()
            left -= len(block)
            yield block

    def _ask(self, name: str, offset: int) -> None:
        assert self._ssh.stdin is not None
        try:
            self._ssh.stdin.write(json.dumps({"name": name, "offset": offset}).encode() + b"\n")
            self._ssh.stdin.flush()
        except BrokenPipeError:
            self._gone()

    def _gone(self) -> bytes:
        """Raise what ssh said; never returns."""
        self._ssh.wait()
        self._log.seek(0)
        said = self._log.read().decode("utf-8", "replace").strip().splitlines()
        raise LinkFailed(f"{self.source}: {said[-1] if said else 'the connection ended'}")
