"""Real OpenSSH hosts with their own addresses and private disks, on one machine (Linux, root).

Each host is a network namespace with a veth pair on a bridge, a mount namespace with a tmpfs at
/scratch, processes that see only each other, and an sshd that comes back when it is killed. Everything is
named after one tag and taken away again at the end.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.namespaces import own_mounts

MISSING = "OpenSSH hosts need root, `ip`, `unshare` and /usr/sbin/sshd"


@dataclass
class SshHost:
    """One host. `link` is the interface of its link, on the outer side; `init` is what its processes live under."""

    name: str
    address: str
    port: int
    host_key: str
    namespace: str
    link: str
    init: subprocess.Popen[bytes]

    def cut(self) -> None:
        run("ip", "link", "set", self.link, "down")

    def mend(self) -> None:
        run("ip", "link", "set", self.link, "up")

    def inside(self, *argv: str) -> str:
        """Return the output of a command run in the host's namespaces."""
        (first,) = Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text().split()
        enter = ["nsenter", "-t", first, "-n", "-m", "-p", "-r", *argv]
        return subprocess.run(enter, check=True, capture_output=True, text=True).stdout


def possible() -> bool:
    tools = all(shutil.which(tool) for tool in ("ip", "unshare", "nsenter"))
    return os.geteuid() == 0 and tools and Path("/usr/sbin/sshd").exists()


def run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")


@contextmanager
def ssh_hosts(
    folder: Path, authorized_key: str, count: int = 2, disk: str = "3g", tag: str = ""
) -> Iterator[list[SshHost]]:
    """Start `count` hosts that let `authorized_key` in as root; `folder` keeps their keys and logs."""
    assert possible(), MISSING
    tag = tag or f"sb{os.getpid() % 100000}"
    third = os.getpid() % 200 + 20
    Path("/run/sshd").mkdir(exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "authorized_keys").write_text(authorized_key + "\n")
    with ExitStack() as stack:
        _bridge(stack, tag, f"10.77.{third}.1")
        yield [_host(stack, folder, tag, n, f"10.77.{third}.{10 + n}", disk) for n in range(1, count + 1)]


def _bridge(stack: ExitStack, name: str, address: str) -> None:
    run("ip", "link", "add", name, "type", "bridge")
    stack.callback(run, "ip", "link", "del", name)
    run("ip", "addr", "add", f"{address}/24", "dev", name)
    run("ip", "link", "set", name, "up")


def _host(stack: ExitStack, folder: Path, tag: str, number: int, address: str, disk: str) -> SshHost:
    namespace, link = f"{tag}n{number}", f"{tag}v{number}"
    run("ip", "netns", "add", namespace)
    stack.callback(run, "ip", "netns", "del", namespace)
    run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    stack.callback(run, "ip", "link", "del", link)  # not left to the namespace, which the kernel frees later
    run("ip", "link", "set", link, "master", tag, "up")
    inside = ("nsenter", f"--net=/run/netns/{namespace}", "ip")  # `ip -n` wants to mount, which a chroot may not
    run(*inside, "addr", "add", f"{address}/24", "dev", "eth0")
    for device in ("lo", "eth0"):
        run(*inside, "link", "set", device, "up")
    key = folder / f"host_key_{number}"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    init = _init(folder, namespace, key, number, address, disk)
    stack.callback(_end, init)
    _wait_for(address, init, folder / f"sshd_{number}.log")
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    return SshHost(f"host-{number}", address, 22, public, namespace, link, init)


def _init(folder: Path, namespace: str, key: Path, number: int, address: str, disk: str) -> subprocess.Popen[bytes]:
    options = {
        "HostKey": key,
        "AuthorizedKeysFile": folder / "authorized_keys",
        "ListenAddress": address,
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "Subsystem": "sftp internal-sftp",
    }
    flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    # Every host has its runs at the same path: one that saw another's processes would take them for its own job's.
    mount = 'mkdir -p /scratch && mount -t tmpfs -o size="$1" tmpfs /scratch && shift'
    script = mount + ' && while :; do /usr/sbin/sshd -D -e -f /dev/null "$@"; sleep 0.2; done'
    processes = ("--pid", "--fork", "--kill-child", "--mount-proc")
    argv = ["nsenter", f"--net=/run/netns/{namespace}", *own_mounts(), *processes,
            "bash", "-c", script, "sshd", disk, *flags]  # fmt: skip
    with (folder / f"sshd_{number}.log").open("wb") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _wait_for(address: str, init: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(200):
        if init.poll() is not None:
            raise RuntimeError(f"sshd ended: {log.read_text()}")
        try:
            socket.create_connection((address, 22), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"sshd at {address} does not answer: {log.read_text()}")


def _end(init: subprocess.Popen[bytes]) -> None:
    """End the host: with its first process the kernel ends all others."""
    init.kill()
    init.wait()
