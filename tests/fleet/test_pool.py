"""One connection a node and process, shared by all that goes on there; against OpenSSH where its limits matter."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync

from tests.openssh import OpenSsh, openssh
from tests.sshd import Sshd
from webapp.fleet.ssh import (
    AuthenticationFailed,
    CommandFailed,
    Endpoint,
    Host,
    Talk,
    Unreachable,
    connect,
    make_identity,
)
from webapp.fleet.ssh import pool as pools
from webapp.fleet.ssh.errors import SshError
from webapp.fleet.ssh.pauses import Pauses
from webapp.fleet.ssh.pool import Pool

IDENTITY = make_identity()
GENEROUS = 240.0


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    server = Sshd(IDENTITY.public)
    yield server
    server.finish()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OpenSsh]:
    with openssh(tmp_path / "sshd", IDENTITY.public, MaxSessions=10) as server:
        yield server


def endpoint(sshd: Sshd) -> Endpoint:
    return Endpoint("n1", sshd.address, sshd.port, "me", sshd.host_key, IDENTITY.private)


def until(condition: Callable[[], object]) -> None:
    limit = time.monotonic() + GENEROUS
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def running(*words: str) -> list[int]:
    """Return the processes of exactly these words."""
    wanted, found = "\0".join(words) + "\0", []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().decode("utf-8", "replace") == wanted:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


async def say(there: Endpoint, pool: Pool, word: str) -> str:
    async with connect(there, among=pool) as host:
        return (await host.check(["echo", word])).strip()


def test_loops_threads_and_tasks_share_one_connection(server: OpenSsh, pool: Pool) -> None:
    there = server.endpoint(IDENTITY)

    async def several(number: int) -> list[str]:
        return list(await asyncio.gather(*(say(there, pool, f"{number}.{n}") for n in range(3))))

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(async_to_sync(several), range(4)))
    found.append(asyncio.run(several(4)))
    assert found == [[f"{number}.{n}" for n in range(3)] for number in range(5)]
    assert server.logins == 1


async def talking(host: Host, stack: AsyncExitStack, *argv: str) -> Talk:
    """Return a talk with `cat` that has begun."""
    talk = await stack.enter_async_context(host.talk(argv or ("cat",)))
    await talk.write(b"x")
    assert await talk.read() == b"x"
    return talk


async def test_more_commands_at_once_than_a_connection_has_sessions(
    server: OpenSsh, pool: Pool, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    async with connect(server.endpoint(IDENTITY), among=pool) as host, AsyncExitStack() as stack:
        await asyncio.gather(*(talking(host, stack) for _ in range(5)))
        assert server.logins == 2  # readers don't end, so the fifth does not wait for another
        said = await asyncio.gather(*(host.check(["sh", "-c", f"sleep 0.05; echo {n}"]) for n in range(20)))
        assert await host.read_text(str(tmp_path / "file")) == "x"
        assert [int(word) for word in said] == list(range(20))
        assert server.logins == 2


async def test_a_server_that_opens_few_sessions_is_connected_to_again(tmp_path: Path, pool: Pool) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with openssh(tmp_path / "sshd", IDENTITY.public, MaxSessions=2) as server:
        async with connect(server.endpoint(IDENTITY), among=pool) as host, AsyncExitStack() as stack:
            await talking(host, stack)
            assert await host.size(str(tmp_path / "file")) == 1
            assert await host.check(["echo", "here"]) == "here\n"
            before = server.logins
            assert await host.check(["echo", "again"]) == "again\n"
            assert (before, server.logins) == (2, 2)
    with openssh(tmp_path / "none", IDENTITY.public, MaxSessions=0) as server:
        async with connect(server.endpoint(IDENTITY), among=pool) as host:
            with pytest.raises(Unreachable, match="n1: it opens no session"):
                await host.run(["true"])


async def test_a_cancelled_command_is_hung_up_and_the_others_go_on(server: OpenSsh, pool: Pool) -> None:
    there, hung = server.endpoint(IDENTITY), ["cat", "-", f"/nowhere/{os.getpid()}"]
    async with connect(there, among=pool) as one, connect(there, among=pool) as other:
        going_on = asyncio.create_task(other.run(["sh", "-c", "read -r _; echo end"], input=b""))
        waiting = asyncio.create_task(one.run(hung))
        await asyncio.to_thread(until, lambda: running(*hung))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.to_thread(until, lambda: not running(*hung))
        assert await one.check(["echo", "here"]) == "here\n"
        assert not going_on.done()
        going_on.cancel()
    assert server.logins == 1


async def test_a_command_that_neither_reads_nor_writes_is_told_by_a_signal(sshd: Sshd, pool: Pool) -> None:
    slow = ["sleep", f"1{os.getpid()}.25"]
    async with connect(endpoint(sshd), among=pool) as host:
        with pytest.raises(CommandFailed, match="took too long"):
            await host.check(slow, seconds=3)  # under load the server takes its time to start it
        await asyncio.to_thread(until, lambda: not running(*slow))
        waiting = asyncio.create_task(host.run(slow))
        await asyncio.to_thread(until, lambda: running(*slow))
        waiting.cancel()
        await asyncio.to_thread(until, lambda: not running(*slow))


async def test_leaving_a_host_ends_what_it_does_there_and_no_more(server: OpenSsh, pool: Pool, tmp_path: Path) -> None:
    path, there = tmp_path / "file", server.endpoint(IDENTITY)
    path.write_bytes(b"x")
    cat = ("cat", "-", f"/nowhere/{os.getpid()}.leaving")
    async with connect(there, among=pool) as other, AsyncExitStack() as open_longer:
        kept = await talking(other, open_longer, *cat)
        async with connect(there, among=pool) as host:
            left = await talking(host, open_longer, *cat)
            reading = host.read_range(str(path))
            await anext(reading)
        await asyncio.to_thread(until, lambda: len(running(*cat)) == 1)
        for asked in (host.check(["true"]), left.write(b"y"), anext(reading)):
            with pytest.raises(Unreachable):
                await asked
        await kept.write(b"y")
        assert await kept.read() == b"y"
    assert server.logins == 1


async def test_who_is_cancelled_while_connecting_takes_nothing_from_the_others(sshd: Sshd) -> None:
    pool, there = Pool(idle=1.0), endpoint(sshd)
    for pause in (0, 0, 0.001, 0.005, 0.02):
        callers = [asyncio.create_task(say(there, pool, str(n))) for n in range(3)]
        await asyncio.sleep(pause)
        callers[0].cancel()
        found = await asyncio.gather(*callers, return_exceptions=True)
        assert found[1:] == ["1", "2"]
    assert len(sshd.connections) == 1
    await asyncio.to_thread(until, lambda: sshd.connections[0].is_closed())  # so nobody is counted as still there
    assert await say(there, pool, "anew") == "anew"
    assert len(sshd.connections) == 2
    pool.close()


async def test_a_cut_ends_all_callers_and_the_next_connects_anew(server: OpenSsh, pool: Pool, tmp_path: Path) -> None:
    there = server.endpoint(IDENTITY)
    (tmp_path / "file").write_bytes(bytes(1 << 22))

    async def listen() -> None:
        async with AsyncExitStack() as stack:
            talk = await talking(host, stack)
            talks.append(talk)
            while await talk.read():
                pass
            await talk.write(b"x")

    async with connect(there, among=pool) as host:
        blocks = host.read_range(str(tmp_path / "file"))
        await anext(blocks)
        word, talks = f"1{os.getpid()}.75", list[Talk]()
        callers = [asyncio.create_task(host.run(["sleep", word])) for _ in range(8)]  # also those who wait their turn
        callers.append(asyncio.create_task(listen()))
        await asyncio.to_thread(until, lambda: len(running("sleep", word)) == 5 and talks)
        server.cut()
        found = await asyncio.gather(*callers, return_exceptions=True)
        assert [type(error) for error in found] == [Unreachable] * 9
        with pytest.raises(Unreachable):
            await anext(blocks)
        await host.closed()
        assert await say(there, pool, "anew") == "anew"
        with pytest.raises(Unreachable):
            await host.size("/")
    assert server.logins == 2
    for pid in running("sleep", word):  # nobody told them of the cut
        os.kill(pid, 9)


async def test_a_node_that_does_not_answer_is_left_alone_for_a_while(sshd: Sshd) -> None:
    now, tries = [100.0], []
    pool, there = Pool(clock=lambda: now[0], jitter=lambda: 0.5), endpoint(sshd)
    sshd.stop()

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tries.append(now[0])
        writer.close()

    async def refused() -> str:
        with pytest.raises(Unreachable) as caught:
            await say(there, pool, "in")
        return str(caught.value)

    async with await asyncio.start_server(hang_up, there.address, there.port, reuse_address=True):
        first = await asyncio.gather(*(refused() for _ in range(5)))
        assert {*first, await refused()} == {first[0]}
        for _ in range(2):
            now[0] += 1.01
            await refused()
    assert sorted(set(tries)) == [100.0, 101.01]  # the second pause is longer
    now[0] += 1
    sshd.start()
    assert await say(there, pool, "in") == "in"
    pool.close()


async def test_a_node_that_refuses_a_key_has_answered_and_is_tried_again_at_once(sshd: Sshd, pool: Pool) -> None:
    sshd.accepted = make_identity().public
    with pytest.raises(AuthenticationFailed):
        await say(endpoint(sshd), pool, "in")
    sshd.accepted = IDENTITY.public
    assert await say(endpoint(sshd), pool, "in") == "in"


def test_pauses_grow_to_their_longest_and_are_forgotten() -> None:
    now, pauses, error = [0.0], None, SshError("n1", "why", "fix")
    pauses = Pauses(lambda: now[0], lambda: 0.5)
    for seconds in (1, 2, 4, 8, 15, 15):
        pauses.failed(error)
        now[0] += seconds - 0.01
        assert pauses.last_error() is error
        now[0] += 0.01
        assert pauses.last_error() is None
    now[0] += 121
    assert pauses.is_over
    pauses.failed(error)
    now[0] += 1
    assert pauses.last_error() is None
    early, late = (Pauses(lambda: now[0], lambda share=share: share) for share in (0.0, 1.0))
    for spread in (early, late):
        spread.failed(error)
    now[0] += 0.9
    assert (early.last_error(), late.last_error()) == (None, error)


def test_a_forked_process_has_connections_of_its_own(
    server: OpenSsh, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_current", pool)
    there = server.endpoint(IDENTITY)

    async def word() -> str:
        async with connect(there) as host:
            return await host.check(["echo", "here"])

    async_to_sync(word)()
    (told, tell), (wait, go) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(tell, async_to_sync(word)().encode())
            os.read(wait, 1)
        finally:
            os._exit(0)
    assert os.read(told, 5) == b"here\n"
    assert async_to_sync(word)() == "here\n"
    assert (server.logins, len(server.living)) == (2, 2)
    pool.close()
    until(lambda: len(server.living) == 1)  # the child has no hold of the parent's
    os.write(go, b"x")
    os.waitpid(child, 0)
    until(lambda: not server.living)
