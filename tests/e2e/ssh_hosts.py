"""Real OpenSSH hosts with their own addresses and private disks, on one machine (Linux, root).

Each host is a network namespace with a veth pair on a bridge, a mount namespace with its disk (a tmpfs, or one
folder of all) at /scratch, processes that see only each other, and an sshd that comes back when it is killed.
Everything is named after one tag and taken away again at the end.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.namespaces import own_mounts

MISSING = "OpenSSH hosts need root, `ip`, `unshare` and /usr/sbin/sshd"


@dataclass
class SshHost:
    """One host. `key`, `log`: sshd's. `link`: the outer end of its link; `init`: what its processes live under;
    `scratch`: its disk, as seen from outside; `boot` starts it.
    """

    name: str
    address: str
    port: int
    key: Path
    log: Path
    namespace: str
    link: str
    scratch: Path
    boot: Callable[[], subprocess.Popen[bytes]]
    init: subprocess.Popen[bytes]

    @property
    def host_key(self) -> str:
        return " ".join(self.key.with_suffix(".pub").read_text().split()[:2])

    def cut(self) -> None:
        run("ip", "link", "set", self.link, "down")

    def mend(self) -> None:
        run("ip", "link", "set", self.link, "up")

    def inside(self, *argv: str) -> str:
        """Return the output of a command run in the host's namespaces."""
        (first,) = Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text().split()
        enter = ["nsenter", "-t", first, "-n", "-m", "-p", "-r", *argv]
        return subprocess.run(enter, check=True, capture_output=True, text=True).stdout

    def processes(self) -> list[psutil.Process]:
        """Return all that lives on it, by the process ids of outside."""
        return psutil.Process(self.init.pid).children(recursive=True)

    def off(self) -> None:
        """Take its power away: all its processes end at once, its disk stays."""
        living = self.processes() if self.init.poll() is None else []
        self.init.kill()
        self.init.wait()
        psutil.wait_procs(living, timeout=30)

    def on(self) -> None:
        self.init = self.boot()
        _wait_for(self)

    def new_key(self) -> None:
        """Give it another host key, as a host that was installed anew has."""
        for path in (self.key, self.key.with_suffix(".pub")):
            path.unlink()
        make_key(self.key)
        self.end_sshd()

    def end_sshd(self) -> None:
        """kill -9 of sshd and of all its sessions; it comes back by itself."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                if (process.cmdline() or [""])[0].startswith("sshd"):
                    process.kill()


def possible() -> bool:
    tools = all(shutil.which(tool) for tool in ("ip", "unshare", "nsenter"))
    return os.geteuid() == 0 and tools and Path("/usr/sbin/sshd").exists()


def run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")


@contextmanager
def ssh_hosts(
    folder: Path, authorized_key: str, count: int = 2, disk: str = "3g", tag: str = "", *, shared: bool = False
) -> Iterator[list[SshHost]]:
    """Start `count` hosts that let `authorized_key` in as root; `folder` keeps their keys, logs and disks.

    `shared`: they have one disk.
    """
    assert possible(), MISSING
    number = zlib.crc32(str(folder).encode())
    tag, third = tag or f"sb{number % 100000}", number % 200 + 20
    Path("/run/sshd").mkdir(exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "authorized_keys").write_text(authorized_key + "\n")
    with ExitStack() as stack:
        _bridge(stack, tag, f"10.77.{third}.1")
        disks = [_disk(stack, folder / f"disk_{n}", disk) for n in range(1, 2 if shared else count + 1)]
        yield [
            _host(stack, folder, tag, n, f"10.77.{third}.{10 + n}", disks[0 if shared else n - 1])
            for n in range(1, count + 1)
        ]


def _bridge(stack: ExitStack, name: str, address: str) -> None:
    run("ip", "link", "add", name, "type", "bridge")
    stack.callback(run, "ip", "link", "del", name)
    run("ip", "addr", "add", f"{address}/24", "dev", name)
    run("ip", "link", "set", name, "up")


def _disk(stack: ExitStack, path: Path, size: str) -> Path:
    path.mkdir()
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))
    stack.callback(run, "umount", "-l", str(path))
    return path


def _host(stack: ExitStack, folder: Path, tag: str, number: int, address: str, disk: Path) -> SshHost:
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
    make_key(key)

    def boot() -> subprocess.Popen[bytes]:
        return _init(folder, namespace, key, number, address, disk)

    log = folder / f"sshd_{number}.log"
    host = SshHost(f"host-{number}", address, 22, key, log, namespace, link, disk, boot, boot())
    stack.callback(lambda: host.off())
    _wait_for(host)
    return host


def make_key(path: Path) -> None:
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))


def _init(folder: Path, namespace: str, key: Path, number: int, address: str, disk: Path) -> subprocess.Popen[bytes]:
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
    mount = 'mkdir -p /scratch && mount --bind "$1" /scratch && shift'
    script = mount + ' && while :; do /usr/sbin/sshd -D -e -f /dev/null "$@"; sleep 0.2; done'
    processes = ("--pid", "--fork", "--kill-child", "--mount-proc")
    argv = ["nsenter", f"--net=/run/netns/{namespace}", *own_mounts(), *processes,
            "bash", "-c", script, "sshd", str(disk), *flags]  # fmt: skip
    with (folder / f"sshd_{number}.log").open("ab") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _wait_for(host: SshHost) -> None:
    for _ in range(200):
        if host.init.poll() is not None:
            raise RuntimeError(f"sshd ended: {host.log.read_text()}")
        try:
            socket.create_connection((host.address, 22), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"sshd at {host.address} does not answer: {host.log.read_text()}")
