"""The loopback SSH host, by a real client: who gets in, what runs, what is left when a channel closes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

ROOT = Path(__file__).resolve().parents[2]
GENEROUS = 240.0


class Host:
    """One started host and the key that opens it."""

    def __init__(self, root: Path):
        self.state, self.authorized = root / "state", root / "authorized_keys"
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.authorized.write_bytes(self.key.export_public_key())
        command = [sys.executable, "-m", "workers.local.hosts", "--port", "0", "--state", str(self.state)]
        command += ["--authorized-keys", str(self.authorized)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.about: dict[str, Any] = json.loads(self.process.stdout.readline())

    @asynccontextmanager
    async def connect(self, **changes: Any) -> AsyncIterator[asyncssh.SSHClientConnection]:
        pinned = asyncssh.import_known_hosts(f"[127.0.0.1]:{self.about['port']} {self.about['host_key']}\n")
        settings = {"username": self.about["user"], "client_keys": [self.key], "known_hosts": pinned, "config": []}
        async with asyncssh.connect("127.0.0.1", self.about["port"], **(settings | changes)) as connection:
            yield connection

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(GENEROUS)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.end()
    assert host.process.stdout is not None
    host.process.stdout.close()


async def until(true: Callable[[], object]) -> None:
    async def wait() -> None:
        while not true():  # noqa: ASYNC110  (a process outside ends; nobody tells us)
            await asyncio.sleep(0.02)

    await asyncio.wait_for(wait(), GENEROUS)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def test_it_works(host: Host) -> None:
    async with host.connect() as connection:
        done = await connection.run("echo out; echo err >&2; exit 7")
        assert (done.stdout, done.stderr, done.exit_status) == ("out\n", "err\n", 7)
        assert (await connection.run("id -un")).stdout == host.about["user"] + "\n"
        assert (await connection.run("pwd")).stdout == str(Path.home()) + "\n"


async def test_it_rejects_a_wrong_key_a_password_and_another_user(host: Host) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    for changes in (
        {"client_keys": [other]},
        {"client_keys": None, "password": "x", "agent_path": None},
        {"username": "nobody"},
    ):
        with pytest.raises(asyncssh.PermissionDenied):
            async with host.connect(**changes):
                pass


async def test_a_key_taken_out_of_the_file_is_refused_at_once(host: Host) -> None:
    host.authorized.write_bytes(asyncssh.generate_private_key("ssh-ed25519").export_public_key())
    with pytest.raises(asyncssh.PermissionDenied):
        async with host.connect():
            pass
    host.authorized.write_text("")
    with pytest.raises(asyncssh.PermissionDenied):
        async with host.connect():
            pass


def test_it_listens_on_loopback_only(host: Host) -> None:
    inodes = {os.readlink(f) for f in Path(f"/proc/{host.process.pid}/fd").iterdir() if f.exists()}
    tables = [Path("/proc/net/tcp").read_text().splitlines()[1:], Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    rows = [row.split() for table in tables for row in table]
    listening = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]
    assert listening == [f"0100007F:{host.about['port']:04X}"]


async def test_the_host_key_is_made_once_and_kept_private(host: Host, tmp_path: Path) -> None:
    (path,) = [p for p in host.state.iterdir() if p.is_file()]
    assert path.stat().st_mode & 0o777 == 0o600
    host.end()
    again = Host(tmp_path)
    again.end()
    assert again.about["host_key"] == host.about["host_key"]


async def test_bytes_pass_unchanged_both_ways(host: Host) -> None:
    data = bytes(range(256)) * 8192
    async with host.connect() as connection:
        done = await connection.run("cat", input=data, encoding=None)
    assert done.stdout == data


async def test_a_signal_is_reported(host: Host) -> None:
    async with host.connect() as connection:
        done = await connection.run("kill -KILL $$")
        assert done.exit_signal is not None
        assert done.exit_signal[0] == "KILL"
        process = await connection.create_process("echo up; exec sleep 600")
        await process.stdout.readline()
        process.send_signal("TERM")
        done = await process.wait()
        assert done.exit_signal is not None
        assert done.exit_signal[0] == "TERM"


async def test_a_follower_streams_and_ends_with_its_connection(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    async with host.connect() as connection:
        follower = await connection.create_process(f"echo $$; exec tail -F -c +1 {path}")
        pid = int(await follower.stdout.readline())
        for line in ("one\n", "two\n"):
            with path.open("a") as file:
                file.write(line)
            assert await asyncio.wait_for(follower.stdout.readline(), GENEROUS) == line
        assert not gone(pid)
        connection.abort()
    await until(lambda: gone(pid))


async def test_a_closed_channel_ends_the_whole_group_but_no_other_session(host: Host) -> None:
    # the other session's process says its number itself, once it is there
    away = "setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1 </dev/null'"
    script = f"sleep 600 & echo $!; {away} & wait"
    async with host.connect() as connection:
        process = await connection.create_process(script)
        inside, outside = [int(await process.stdout.readline()) for _ in range(2)]
        process.close()
        await until(lambda: gone(inside))
        assert not gone(outside)
        done = await connection.run("echo still here")  # one channel's end is not the connection's
        assert done.stdout == "still here\n"
    os.kill(outside, signal.SIGKILL)


async def test_sftp(host: Host, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "deep" / "target"
    source.write_bytes(os.urandom(300_000))
    async with host.connect() as connection, connection.start_sftp_client() as sftp:
        await sftp.makedirs(str(target.parent))
        await sftp.put(str(source), str(target))
        await sftp.chmod(str(target), 0o600)
        await sftp.get(str(target), str(tmp_path / "back"))
        with pytest.raises(asyncssh.SFTPNoSuchFile):
            await sftp.stat(str(tmp_path / "nowhere"))
    assert target.read_bytes() == source.read_bytes() == (tmp_path / "back").read_bytes()
    assert target.stat().st_mode & 0o777 == 0o600


async def test_no_terminal_no_shell_no_forwarding(host: Host) -> None:
    async with host.connect() as connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.create_process("true", term_type="xterm")
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_connection("127.0.0.1", host.about["port"])
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.forward_remote_port("127.0.0.1", 0, "127.0.0.1", host.about["port"])
        done = await connection.run()
        assert done.exit_status == 1


async def test_the_servers_end_ends_open_commands(host: Host) -> None:
    async with host.connect() as connection:
        stubborn = await connection.create_process("trap '' TERM; echo $$; while :; do sleep 0.1; done")
        pid = int(await stubborn.stdout.readline())
        assert await asyncio.to_thread(host.end) == 0
    assert gone(pid)


def test_a_taken_port_is_an_error_in_words(host: Host, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "workers.local.hosts", "--port", str(host.about["port"])]
    command += ["--state", str(tmp_path / "other"), "--authorized-keys", str(host.authorized)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(host.about["port"]) in done.stderr


async def test_a_supervisor_outlives_the_connection_that_started_it(host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "scratch/runs/1/1/node0"
    folder.mkdir(parents=True)
    job = {"argv": ["sleep", "600"], "disk": str(tmp_path), "sample_seconds": 0.05, "grace_seconds": 1}
    (folder / "job.json").write_text(json.dumps(job))
    training = f"PYTHONPATH={ROOT} {sys.executable} -m training"
    async with host.connect() as connection:
        started = await connection.run(f"{training} start {folder}", check=True)
        assert json.loads(str(started.stdout))["state"] == "started"
        connection.abort()
    samples = folder / "samples.jsonl"
    before = samples.stat().st_size if samples.exists() else 0
    await until(lambda: samples.exists() and samples.stat().st_size > before)
    async with host.connect() as connection:
        assert json.loads(str((await connection.run(f"{training} status {folder}")).stdout))["state"] == "running"
        ended = await connection.run(f"{training} signal {folder} kill", check=True)
        assert json.loads(str(ended.stdout)) == {"processes": []}
    assert json.loads((folder / "exit.json").read_text())["reason"] == "stopped_unsaved"
