"""Ways to a node: through jump hosts (OpenSSH's), and with keys that an SSH agent (OpenSSH's) holds."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from tests.openssh import OpenSsh, openssh
from tests.sshd import Sshd
from webapp.fleet.models import Identity, Node
from webapp.fleet.ssh import (
    AgentFailed,
    AuthenticationFailed,
    Endpoint,
    HostKeyChanged,
    JumpCircle,
    KeyPair,
    Unreachable,
    agent_keys,
    connect,
    fingerprint,
    host_key,
    make_identity,
    pool,
)

IDENTITY = make_identity()
GENEROUS = 240.0


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[pool.Pool]:
    made = pool.Pool(jitter=lambda: 0.5)
    monkeypatch.setattr(pool, "_current", made)
    yield made
    made.close()


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    server = Sshd(IDENTITY.public)
    yield server
    server.finish()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[OpenSsh]:
    with openssh(tmp_path / "gate", IDENTITY.public, MaxSessions=0) as server:  # it forwards, and runs nothing
        yield server


def behind(sshd: Sshd, jump: Endpoint | None, name: str = "n2") -> Endpoint:
    return Endpoint(name, sshd.address, sshd.port, "me", sshd.host_key, IDENTITY.private, jump=jump)


def at(gate: OpenSsh, **changes: object) -> Endpoint:
    return gate.endpoint(IDENTITY, name="g1", **changes)


async def word(there: Endpoint) -> str:
    async with connect(there) as host:
        return (await host.check(["echo", "here"])).strip()


async def test_nodes_behind_one_jump_host_share_its_connection_and_its_fate(gate: OpenSsh, sshd: Sshd) -> None:
    first, second = behind(sshd, at(gate)), behind(sshd, at(gate), "n3")
    assert await asyncio.gather(word(first), word(second)) == ["here", "here"]
    assert (gate.logins, len(sshd.connections)) == (1, 2)
    async with connect(first) as host:
        gate.cut()
        await host.closed()
        with pytest.raises(Unreachable, match="n2: connection lost"):
            await host.size("/")
    assert await word(first) == "here"
    assert gate.logins == 2


async def test_a_chain_of_jump_hosts(gate: OpenSsh, sshd: Sshd, tmp_path: Path) -> None:
    with openssh(tmp_path / "second", IDENTITY.public) as inner:
        chain = behind(sshd, inner.endpoint(IDENTITY, name="g2", jump=at(gate)))
        assert await word(chain) == "here"
        assert (gate.logins, inner.logins) == (1, 1)
        with pytest.raises(HostKeyChanged, match="n2: jump host g2: jump host g1: its host key is"):
            await word(replace(chain, jump=replace(chain.jump, jump=at(gate, host_key=make_identity().public))))


async def test_the_hop_that_failed_is_named(gate: OpenSsh, sshd: Sshd, tmp_path: Path) -> None:
    with pytest.raises(AuthenticationFailed, match="n2: jump host g1: it does not accept the key") as caught:
        await word(behind(sshd, at(gate, private_key=make_identity().private)))
    assert caught.value.node == "n2"
    with pytest.raises(Unreachable, match=r"n2: jump host g1: no connection to 127\.0\.0\.1 port 1 "):
        await word(behind(sshd, at(gate, port=1)))
    with pytest.raises(Unreachable, match=r"n2: jump host g1 opens no connection to 127\.0\.0\.1 port 1 .*refused"):
        await word(replace(behind(sshd, at(gate)), port=1))
    other = make_identity().public
    with pytest.raises(HostKeyChanged, match="n2: its host key is") as changed:
        await word(replace(behind(sshd, at(gate)), host_key=other))
    assert (changed.value.pinned, changed.value.shown) == (fingerprint(other), fingerprint(sshd.host_key))
    with (
        openssh(tmp_path / "closed", IDENTITY.public, AllowTcpForwarding="no") as closed,
        pytest.raises(Unreachable, match="AllowTcpForwarding in g1's sshd_config"),
    ):
        await word(behind(sshd, at(closed)))


async def host_key_of(host: Any, gate: OpenSsh) -> str:
    return await host_key("127.0.0.1", host.port, via=at(gate))


async def test_the_key_of_a_node_behind_a_jump_host_can_be_compared(gate: OpenSsh, sshd: Sshd) -> None:
    assert await host_key_of(sshd, gate) == sshd.host_key
    assert gate.logins == 1
    with pytest.raises(Unreachable, match=f"{sshd.address} port {sshd.port}: jump host g1: no connection"):
        await host_key(sshd.address, sshd.port, via=at(gate, port=1))
    with pytest.raises(Unreachable, match="port 1: "):
        await host_key(sshd.address, 1, via=at(gate))


def test_a_way_is_made_of_the_rows_and_refused_where_it_is_a_circle() -> None:
    identity = Identity(name="key", public_key=IDENTITY.public, kind=Identity.Kind.AGENT)
    nodes = [Node(pk=n, name=f"n{n}", address="h", user="me", host_key="k", identity=identity) for n in range(3)]
    nodes[0].jump, nodes[1].jump = nodes[1], nodes[2]
    way = Endpoint.of(nodes[0])
    assert [way.name, way.jump.name, way.jump.jump.name, way.jump.jump.jump] == ["n0", "n1", "n2", None]
    assert (way.private_key, way.public_key) == ("", IDENTITY.public)
    nodes[2].jump = nodes[1]
    with pytest.raises(JumpCircle, match="n0: its way is a circle: n0, n1, n2, n1"):
        Endpoint.of(nodes[0])
    for node in (Node(name="new", jump=nodes[0]), nodes[1]):
        with pytest.raises(ValidationError, match="the way would be a circle"):
            node.clean()


@pytest.fixture
def agent(tmp_path: Path, settings: Any) -> Iterator[Path]:
    path = tmp_path / "agent"
    settings.SSH_AGENT = str(path)
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    limit = time.monotonic() + GENEROUS
    while not path.exists():
        assert time.monotonic() < limit
        time.sleep(0.02)
    yield path
    process.terminate()
    process.wait(GENEROUS)


def add(agent: Path, pair: KeyPair, *words: str) -> None:
    key = agent.with_name("key")
    key.write_text(pair.private)
    key.chmod(0o600)
    env = {"SSH_AUTH_SOCK": str(agent), "PATH": "/usr/bin:/bin"}
    subprocess.run(["ssh-add", "-q", *words, str(key)], check=True, env=env)


async def test_an_agent_signs_with_the_identitys_key_and_offers_no_other(
    agent: Path, sshd: Sshd, settings: Any
) -> None:
    ours, others = IDENTITY, make_identity()
    add(agent, others)
    there = replace(behind(sshd, None), private_key="", public_key=ours.public)
    lacking = f"n2: the SSH agent does not hold its identity's key {fingerprint(ours.public)}".replace("+", r"\+")
    with pytest.raises(AgentFailed, match=lacking):
        await word(there)
    add(agent, ours)
    assert [line.split()[1] for line in await agent_keys()] == [pair.public.split()[1] for pair in (others, ours)]
    assert await word(replace(there, name="n3")) == "here"
    with pytest.raises(AuthenticationFailed):  # though the agent holds the key that would be let in
        await word(replace(there, name="n4", public_key=others.public))
    assert len(sshd.connections) == 2


async def test_an_agent_that_is_away_is_told(sshd: Sshd, tmp_path: Path, settings: Any) -> None:
    there = replace(behind(sshd, None), private_key="", public_key=IDENTITY.public)
    for path, why in (("", "knows no SSH agent. Name its socket in SHARDBOARD_SSH_AGENT"), ("/nowhere", "at /nowhere")):
        settings.SSH_AGENT = path
        with pytest.raises(AgentFailed, match=why):
            await word(replace(there, name=f"n{len(path)}"))
    with pytest.raises(AgentFailed, match="/nowhere does not answer"):
        await agent_keys()


async def test_an_agent_that_says_nothing_is_not_waited_for(tmp_path: Path, settings: Any, monkeypatch: Any) -> None:
    """One that is asked for a passphrase elsewhere takes questions and answers none."""
    monkeypatch.setattr("webapp.fleet.ssh.agent.SECONDS", 0.05)
    settings.SSH_AGENT = str(tmp_path / "silent")
    held: list[object] = []
    async with await asyncio.start_unix_server(lambda *ends: held.extend(ends), settings.SSH_AGENT):
        with pytest.raises(AgentFailed, match=r"lists no keys \(no answer within 0.05 s\)"):
            await asyncio.wait_for(agent_keys(), GENEROUS)
        for end in held[1::2]:
            end.close()  # type: ignore[attr-defined]
