"""Whom a connection is opened to, and what is said where none comes about, against a real SSH server on loopback."""

from __future__ import annotations

import asyncio

import asyncssh
import pytest

from tests.sshd import Sshd
from training.spec.faults import Reason
from webapp.fleet.ssh import (
    AuthenticationFailed,
    HostKeyChanged,
    HostKeyNotPinned,
    Unreachable,
    connect,
    fingerprint,
    host_key,
    make_identity,
)

from .loopback import IDENTITY, endpoint


async def test_a_changed_host_key_is_refused_with_both_fingerprints(sshd: Sshd) -> None:
    other = make_identity().public
    with pytest.raises(HostKeyChanged) as caught:
        async with connect(endpoint(sshd, host_key=other)):
            pass
    assert caught.value.pinned == fingerprint(other)
    assert caught.value.shown == fingerprint(sshd.host_key)
    assert caught.value.reason == Reason.HOST_KEY_CHANGED
    assert sshd.commands == []


async def test_a_pinned_key_of_another_type_is_refused_too(sshd: Sshd) -> None:
    rsa = asyncssh.generate_private_key("ssh-rsa", key_size=2048).export_public_key().decode()
    with pytest.raises(HostKeyChanged, match=fingerprint(rsa).replace("+", r"\+")):
        async with connect(endpoint(sshd, host_key=rsa)):
            pass


async def test_an_unconfirmed_host_key_is_refused(sshd: Sshd) -> None:
    with pytest.raises(HostKeyNotPinned):
        async with connect(endpoint(sshd, host_key="")):
            pass


async def test_a_key_the_node_does_not_know_is_refused(sshd: Sshd) -> None:
    with pytest.raises(AuthenticationFailed, match="authorized_keys"):
        async with connect(endpoint(sshd, private_key=make_identity().private)):
            pass


async def test_a_closed_port_is_unreachable(sshd: Sshd) -> None:
    there = endpoint(sshd)
    sshd.stop()
    with pytest.raises(Unreachable, match=str(there.port)):
        async with connect(there):
            pass


async def test_a_login_that_is_cut_off_names_user_and_key(sshd: Sshd) -> None:
    sshd.lets_nobody_in = True
    with pytest.raises(Unreachable) as caught:
        async with connect(endpoint(sshd)):
            pass
    problem = caught.value.problem
    assert problem.field == "user"
    assert f"ended while user me logged in with the key {fingerprint(IDENTITY.public)} (" in problem.reason
    assert "identity" in problem.fix


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
async def test_a_port_that_is_no_sshd_is_told_as_that(sshd: Sshd, first: bytes) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        writer.close()

    other = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = other.sockets[0].getsockname()[1]
    with pytest.raises(Unreachable) as caught:
        async with connect(endpoint(sshd, port=port)):
            pass
    other.close()
    assert f"an answer at 127.0.0.1 port {port}, but no SSH connection comes of it (" in caught.value.why
    assert "sshd" in caught.value.fix


async def test_a_closed_port_shows_no_host_key(sshd: Sshd) -> None:
    port = sshd.port
    sshd.stop()
    with pytest.raises(Unreachable) as caught:
        await host_key("127.0.0.1", port)
    assert caught.value.why == "it shows no host key (Connection refused)"


async def test_it_works_over_ipv6() -> None:
    server = Sshd(IDENTITY.public, "::1")
    try:
        async with connect(endpoint(server)) as host:
            assert await host.check(["echo", "here"]) == "here\n"
        assert await host_key("::1", server.port) == server.host_key
    finally:
        server.finish()


async def test_the_shown_host_key_can_be_compared(sshd: Sshd) -> None:
    shown = await host_key(sshd.address, sshd.port)
    assert shown == sshd.host_key
    assert fingerprint(shown).startswith("SHA256:")
