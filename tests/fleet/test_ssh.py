"""The contract of a host, against a real SSH server on loopback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from tests.sshd import Sshd
from training.spec.faults import Reason
from training.spec.lint import Refused
from webapp.fleet.ssh import (
    CommandFailed,
    CommandKilled,
    DiskFull,
    Host,
    Unreachable,
    connect,
    import_identity,
    make_identity,
    patience,
)
from webapp.fleet.ssh.files import temporary

from .loopback import IDENTITY, endpoint


async def test_it_runs_a_command_without_a_shell_seeing_its_words(sshd: Sshd) -> None:
    async with connect(endpoint(sshd)) as host:
        result = await host.run(["printf", "%s", "$(id); a b"])
        fed = await host.run(["cat"], input=b"in")
        failed = await host.run(["sh", "-c", "echo no >&2; exit 3"])
    assert (result.code, result.out) == (0, "$(id); a b")
    assert fed.out == "in"
    assert (failed.code, failed.err) == (3, "no\n")


async def test_a_command_that_must_succeed_says_why_it_did_not(sshd: Sshd) -> None:
    async with connect(endpoint(sshd)) as host:
        with pytest.raises(CommandFailed, match=r"n1.*no such luck") as caught:
            await host.check(["sh", "-c", "echo no such luck >&2; exit 1"])
        with pytest.raises(CommandFailed, match="took too long"):
            await host.check(["sleep", "60"], seconds=0.2)
    assert caught.value.reason == Reason.LAUNCH


async def test_a_command_that_a_signal_ended_is_told_from_one_whose_end_nobody_told(sshd: Sshd) -> None:
    async with connect(endpoint(sshd)) as host:
        killed = await host.run(["sh", "-c", "kill -9 $$"])
        with pytest.raises(CommandKilled, match="signal 15 ended it") as caught:
            await host.check(["sh", "-c", "(sh -c 'kill -15 $$'); exit $?"])
        waiting = asyncio.create_task(host.run(["sleep", "60.5"]))
        async with asyncio.timeout(30):
            while not any("60.5" in command for command in sshd.commands):  # noqa: ASYNC110  the server sends no event
                await asyncio.sleep(0.01)
        await asyncio.to_thread(sshd.cut)
        with pytest.raises(Unreachable, match="connection lost"):
            await waiting
    assert (killed.code, caught.value.reason) == (128 + 9, Reason.KILLED_BY_HOST)


async def blocks() -> AsyncIterator[bytes]:
    yield bytes(1 << 16)


WRITES = {
    "text": lambda host, path, local: host.put_text(path, "x" * 9000),
    "file": lambda host, path, local: host.put_file(path, local),
    "stream": lambda host, path, local: host.write_stream(path, blocks()),
    "tree": lambda host, path, local: host.put_tree(path, {"a": bytes(9000)}),
}


class Hung(asyncssh.SFTPServer):
    """Beside a disk that hangs: the server answers nothing about a file once it has been opened."""

    async def stat(self, path: bytes) -> asyncssh.SFTPAttrs:
        return await asyncio.Event().wait()

    async def read(self, file_obj: object, offset: int, size: int) -> bytes:
        return await asyncio.Event().wait()

    async def write(self, file_obj: object, offset: int, data: bytes) -> int:
        return await asyncio.Event().wait()

    async def close(self, file_obj: object) -> None:
        await asyncio.Event().wait()


async def all_of(host: Host, path: str) -> bytes:
    return b"".join([block async for block in host.read_range(path)])


HANGS = WRITES | {
    "size": lambda host, path, local: host.size(path),
    "text read": lambda host, path, local: host.read_text(str(local)),
    "range": lambda host, path, local: all_of(host, str(local)),
}


@pytest.mark.parametrize("work", HANGS)
async def test_a_disk_that_hangs_holds_nobody_for_good(
    tmp_path: Path, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "SECONDS", 0.2)
    monkeypatch.setattr(patience, "LET_GO", 0.05)
    server = Sshd(IDENTITY.public, sftp=Hung)
    local = tmp_path / "local"
    local.write_bytes(b"x" * 9000)
    try:
        async with connect(endpoint(server)) as host:
            with pytest.raises(CommandFailed, match="took too long"):
                await HANGS[work](host, str(tmp_path / "there"), local)
            assert await host.check(["echo", "well"]) == "well\n"
    finally:
        server.finish()


class Full(asyncssh.SFTPServer):
    """A server on a full disk that says no more of it than OpenSSH does."""

    def write(self, file_obj: object, offset: int, data: bytes) -> int:
        raise asyncssh.SFTPFailure("Failure")

    def statvfs(self, path: bytes) -> os.statvfs_result:
        found = list(os.statvfs("/"))
        found[3] = found[4] = 0
        return os.statvfs_result(found)


@pytest.mark.parametrize("write", WRITES)
async def test_a_full_disk_is_told_with_node_path_and_way_out(tmp_path: Path, write: str) -> None:
    server = Sshd(IDENTITY.public, sftp=Full)
    local = tmp_path / "local"
    local.write_bytes(bytes(9000))
    try:
        async with connect(endpoint(server)) as host:
            with pytest.raises(DiskFull, match=f"n1: writing {tmp_path}/there failed: No space.*Free space") as caught:
                await WRITES[write](host, str(tmp_path / "there"), local)
    finally:
        server.finish()
    assert caught.value.reason == Reason.DISK_FULL
    assert os.listdir(tmp_path) == ["local"]


async def test_a_stream_that_is_cancelled_in_the_middle_leaves_nothing(sshd: Sshd, tmp_path: Path) -> None:
    written = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield bytes(1 << 16)
        written.set()
        await asyncio.Event().wait()

    async with connect(endpoint(sshd)) as host:
        writing = asyncio.create_task(host.write_stream(str(tmp_path / "there"), endless()))
        await written.wait()
        assert os.listdir(tmp_path) == [f".there.{host._suffix}"]
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert os.listdir(tmp_path) == []


async def test_a_server_that_names_the_full_disk_is_understood(sshd: Sshd, tmp_path: Path) -> None:
    async with connect(endpoint(sshd)) as host:
        os.symlink("/dev/full", temporary(str(tmp_path / "there"), host._suffix))
        with pytest.raises(DiskFull, match="No space left on device"):
            await host.write_stream(str(tmp_path / "there"), blocks())


async def test_a_write_that_fails_with_room_left_is_no_full_disk(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    async with connect(endpoint(sshd)) as host:
        with pytest.raises(CommandFailed) as caught:
            await host.put_text(str(tmp_path / "there"), "x")
    assert caught.value.reason == Reason.LAUNCH


async def test_text_appears_whole_with_its_mode(sshd: Sshd, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "env"
    async with connect(endpoint(sshd)) as host:
        await host.put_text(str(path), "K=1\n", 0o600)
        await host.put_text(str(path), "K=2\n", 0o600)
        assert await host.read_text(str(path)) == "K=2\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == ["env"]


async def test_a_tree_is_put_once(sshd: Sshd, tmp_path: Path) -> None:
    root = tmp_path / "releases" / "abc"
    async with connect(endpoint(sshd)) as host:
        await host.put_tree(str(root), {"pkg/a.py": b"1", "pkg/sub/b.py": b"2"})
        await host.put_tree(str(root), {"pkg/a.py": b"other"})
        await asyncio.gather(*(host.put_tree(f"{root}2", {"x": b"1"}) for _ in range(3)))
    assert (root / "pkg" / "a.py").read_bytes() == b"1"
    assert (root / "pkg" / "sub" / "b.py").read_bytes() == b"2"
    assert sorted(os.listdir(root.parent)) == ["abc", "abc2"]


async def test_a_refused_write_names_node_and_path(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with connect(endpoint(sshd)) as host:
        with pytest.raises(CommandFailed, match=r"n1: writing .*file/x"):
            await host.put_text(str(tmp_path / "file" / "x"), "")


async def test_ranges_and_streams(sshd: Sshd, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "big").write_bytes(content)
    async with connect(endpoint(sshd)) as host:
        part = b"".join([block async for block in host.read_range(str(tmp_path / "big"), 5, 2_000_000)])
        copy = str(tmp_path / "copy")
        written = await host.write_stream(copy, host.read_range(str(tmp_path / "big")))
        assert not await host.exists(copy)
        await host.commit(copy)
        assert await host.size(copy) == written[0] == 3_000_000
    assert part == content[5:2_000_005]
    assert (tmp_path / "copy").read_bytes() == content


async def test_a_talk_goes_both_ways_and_ends_with_the_connection(sshd: Sshd, tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")
    async with connect(endpoint(sshd)) as host, host.talk(["sed", "-u", f"s|$|{mark}|"]) as talk:
        for word in (b"one", b"two"):
            await talk.write(word + b"\n")
            assert await talk.read() == word + mark.encode() + b"\n"
        sshd.cut()
        with pytest.raises(Unreachable):
            async with host.talk(["true"]):
                pass
    async with asyncio.timeout(30):
        while _running(mark):  # noqa: ASYNC110  the process table sends no event
            await asyncio.sleep(0.05)


async def test_a_talk_that_ends_says_why(sshd: Sshd) -> None:
    async with connect(endpoint(sshd)) as host, host.talk(["sh", "-c", "echo no >&2; exit 3"]) as talk:
        assert await talk.read() == b""
        assert await talk.end() == (3, "no\n")


def _running(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in entry.read_text():
                found.append(entry.parent.name)
        except (OSError, UnicodeDecodeError):
            continue
    return found


def test_an_identity_is_imported_or_refused_with_the_reason() -> None:
    pair = make_identity()
    assert import_identity(pair.private).public.split()[:2] == pair.public.split()[:2]
    with pytest.raises(Refused, match="no private key"):
        import_identity("rubbish")
    locked = asyncssh.generate_private_key("ssh-ed25519").export_private_key("pkcs8-pem", "secret").decode()
    with pytest.raises(Refused, match="passphrase"):
        import_identity(locked)
