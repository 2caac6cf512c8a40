"""Open a connection: at each hop only the pinned key is trusted, and only the node's identity is offered.

No password, no ssh_config; an SSH agent is asked where it holds that identity's key, and for no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncssh

from .agent import key_of_agent
from .endpoint import Endpoint
from .errors import AuthenticationFailed, HostKeyChanged, HostKeyNotPinned, LoginCutOff, Unreachable, said
from .keys import fingerprint, shown_key

CONNECT_SECONDS = 10
LOGIN_SECONDS = 20
KEEPALIVE = (5, 3)  # seconds between probes, and how many may stay unanswered: a dead link is known after 20 s
# First those that processors have instructions for: half the time of the library's first choice for the same bytes.
CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"


class Client(asyncssh.SSHClient):
    """Remembers the key that was refused and how far it came, and says when the connection has gone."""

    def __init__(self) -> None:
        self.shown = ""
        self.gone = asyncio.Event()
        self.connection: asyncssh.SSHClientConnection | None = None  # from the host's first answer on

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.connection = conn

    @property
    def is_logging_in(self) -> bool:
        """The host has proven to have the pinned key: what is left is whether it lets us in."""
        return bool(self.connection and self.connection.get_extra_info("send_cipher"))

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = key.get_fingerprint()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()


async def open_connection(
    endpoint: Endpoint, gate: asyncssh.SSHClientConnection | None = None
) -> tuple[asyncssh.SSHClientConnection, asyncio.Event]:
    """Return a new connection, and the event that it has gone. `gate`: the one to its jump host.

    Raises HostKeyNotPinned, HostKeyChanged, AuthenticationFailed, AgentFailed, LoginCutOff, Unreachable.
    """
    if not endpoint.host_key:
        raise HostKeyNotPinned(endpoint.name)
    client = Client()
    try:
        async with _key(endpoint) as key:
            return await _connect(endpoint, client, key, gate), client.gone
    except asyncssh.HostKeyNotVerifiable as error:
        raise HostKeyChanged(endpoint.name, fingerprint(endpoint.host_key), client.shown) from error
    except asyncssh.PermissionDenied as error:
        raise AuthenticationFailed(endpoint.name, endpoint.user, _fingerprint(endpoint)) from error
    except asyncssh.ChannelOpenError as error:
        raise _not_let_through(endpoint, error) from error
    except (OSError, asyncssh.Error) as error:
        if client.is_logging_in:
            raise LoginCutOff(endpoint.name, endpoint.user, _fingerprint(endpoint), said(error)) from error
        await _refuse_another_type(endpoint, error, gate)
        raise _no_connection(endpoint, error, answered=client.connection is not None) from error


@asynccontextmanager
async def _key(endpoint: Endpoint) -> AsyncIterator[asyncssh.SSHKey | asyncssh.SSHKeyPair]:
    if endpoint.private_key:
        yield asyncssh.import_private_key(endpoint.private_key)
    else:
        async with key_of_agent(endpoint.name, endpoint.public_key) as key:
            yield key


def _fingerprint(endpoint: Endpoint) -> str:
    if not endpoint.private_key:
        return fingerprint(endpoint.public_key)
    return str(asyncssh.import_private_key(endpoint.private_key).get_fingerprint())


def _through(endpoint: Endpoint) -> str:
    return f" through {endpoint.jump.name}" if endpoint.jump else ""


def _no_connection(endpoint: Endpoint, error: Exception, *, answered: bool) -> Unreachable:
    where = f"{endpoint.where}{_through(endpoint)}"
    if isinstance(error, TimeoutError):
        return Unreachable(endpoint.name, f"no connection to {where} (no answer within {CONNECT_SECONDS} s)")
    if not answered:
        return Unreachable(endpoint.name, f"no connection to {where} ({said(error)})")
    return Unreachable(
        endpoint.name,
        f"there is an answer at {where}, but no SSH connection comes of it ({said(error)})",
        "Check that the port is that of its sshd. One that is asked too often sends away too (MaxStartups, fail2ban): "
        "its log says why.",
    )


def _not_let_through(endpoint: Endpoint, error: asyncssh.ChannelOpenError) -> Unreachable:
    gate = endpoint.jump.name if endpoint.jump else "its jump host"
    return Unreachable(
        endpoint.name,
        f"jump host {gate} opens no connection to {endpoint.where} ({error.reason or error})",
        f"Check that the host is up, its address as {gate} reaches it, and AllowTcpForwarding in {gate}'s sshd_config.",
    )


async def _connect(
    endpoint: Endpoint,
    client: Client,
    key: asyncssh.SSHKey | asyncssh.SSHKeyPair,
    gate: asyncssh.SSHClientConnection | None,
) -> asyncssh.SSHClientConnection:
    pinned = asyncssh.import_public_key(endpoint.host_key)
    return await asyncssh.connect(
        endpoint.address, endpoint.port, username=endpoint.user, client_factory=lambda: client, config=None,
        tunnel=gate or (), known_hosts=([pinned], [], []), client_keys=[key],
        agent_path=None, password=None, preferred_auth="publickey", gss_host=None,
        connect_timeout=CONNECT_SECONDS, login_timeout=LOGIN_SECONDS, encryption_algs=CIPHERS,
        keepalive_interval=KEEPALIVE[0], keepalive_count_max=KEEPALIVE[1],
    )  # fmt: skip


async def _refuse_another_type(endpoint: Endpoint, error: Exception, gate: asyncssh.SSHClientConnection | None) -> None:
    """Raise HostKeyChanged where the host has no key of the pinned type: the key exchange fails, without saying so."""
    if not isinstance(error, (asyncssh.KeyExchangeFailed, asyncssh.ConnectionLost)):
        return
    shown = ""
    with suppress(Unreachable):
        shown = await shown_key(endpoint.address, endpoint.port, tunnel=gate or ())
        await shown_key(endpoint.address, endpoint.port, endpoint.host_key, gate or ())
        return
    if shown:
        raise HostKeyChanged(endpoint.name, fingerprint(endpoint.host_key), fingerprint(shown)) from error
