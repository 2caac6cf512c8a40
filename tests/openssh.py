"""A real OpenSSH server on loopback for tests, as the user who runs them: what it counts and refuses is its own."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from training.spec.ports import free_port
from webapp.fleet.ssh import Endpoint, KeyPair

HOST = "127.0.0.1"
GENEROUS = 240.0


@dataclass
class OpenSsh:
    port: int
    host_key: str
    log: Path
    pid: int

    @property
    def logins(self) -> int:
        return self.log.read_text().count("Accepted publickey")

    @property
    def living(self) -> list[int]:
        """The processes of the connections there are."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def cut(self) -> None:
        for pid in self.living:
            os.kill(pid, signal.SIGKILL)

    def endpoint(self, identity: KeyPair, **changes: object) -> Endpoint:
        made = Endpoint("n1", HOST, self.port, getpass.getuser(), self.host_key, identity.private)
        return replace(made, **changes)


@contextmanager
def openssh(folder: Path, authorized_key: str, **options: object) -> Iterator[OpenSsh]:
    """Start a server that lets `authorized_key` in; `options` are sshd_config's."""
    folder.mkdir(parents=True, exist_ok=True)
    key, log, port = folder / "host_key", folder / "log", free_port(HOST)
    (folder / "authorized_keys").write_text(authorized_key + "\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    settings = {
        "HostKey": key, "AuthorizedKeysFile": folder / "authorized_keys", "ListenAddress": HOST, "Port": port,
        "PidFile": "none", "StrictModes": "no", "UsePAM": "no", "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no", "Subsystem": "sftp internal-sftp", "MaxStartups": 100,
        "SetEnv": f"HOME={folder}",  # what the tester's shell reads first is none of a test's
    }  # fmt: skip
    flags = [word for name, value in (settings | options).items() for word in ("-o", f"{name}={value}")]
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-E", str(log), "-f", "/dev/null", *flags])
    try:
        _wait_for(port, server, log)
        public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
        host = OpenSsh(port, public, log, server.pid)
        yield host
        host.cut()
    finally:
        server.terminate()
        server.wait(GENEROUS)


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    limit = time.monotonic() + GENEROUS
    while True:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
            return
        except OSError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < limit, log.read_text()
            time.sleep(0.05)
