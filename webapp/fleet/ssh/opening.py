"""Open a connection: only the pinned key is trusted, only the node's identity is offered.

No password, no ssh_config.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncssh

from .endpoint import Endpoint
from .errors import AuthenticationFailed, HostKeyChanged, HostKeyNotPinned, Unreachable
from .keys import fingerprint, host_key

CONNECT_SECONDS = 10
LOGIN_SECONDS = 20
KEEPALIVE = (5, 3)  # seconds between probes, and how many may stay unanswered: a dead link is known after 20 s
# First those that processors have instructions for: half the time of the library's first choice for the same bytes.
CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"


class Client(asyncssh.SSHClient):
    """Remembers the key that was refused, and says when the connection has gone."""

    def __init__(self) -> None:
        self.shown = ""
        self.gone = asyncio.Event()

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = key.get_fingerprint()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()


async def open_connection(endpoint: Endpoint) -> tuple[asyncssh.SSHClientConnection, asyncio.Event]:
    """Return a new connection, and the event that it has gone.

    Raises HostKeyNotPinned, HostKeyChanged, AuthenticationFailed, Unreachable.
    """
    if not endpoint.host_key:
        raise HostKeyNotPinned(endpoint.name)
    client = Client()
    try:
        return await _connect(endpoint, client), client.gone
    except asyncssh.HostKeyNotVerifiable as error:
        raise HostKeyChanged(endpoint.name, fingerprint(endpoint.host_key), client.shown) from error
    except asyncssh.PermissionDenied as error:
        key = asyncssh.import_private_key(endpoint.private_key).get_fingerprint()
        raise AuthenticationFailed(endpoint.name, endpoint.user, key) from error
    except (OSError, asyncssh.Error) as error:
        await _refuse_another_type(endpoint, error)
        where = f"{endpoint.address} port {endpoint.port}"
        why = str(error) or f"no answer within {CONNECT_SECONDS} s"
        raise Unreachable(endpoint.name, f"no connection to {where} ({why})") from error


async def _connect(endpoint: Endpoint, client: Client) -> asyncssh.SSHClientConnection:
    pinned = asyncssh.import_public_key(endpoint.host_key)
    return await asyncssh.connect(
        endpoint.address, endpoint.port, username=endpoint.user, client_factory=lambda: client, config=None,
        known_hosts=([pinned], [], []), client_keys=[asyncssh.import_private_key(endpoint.private_key)],
        agent_path=None, password=None, preferred_auth="publickey", gss_host=None,
        connect_timeout=CONNECT_SECONDS, login_timeout=LOGIN_SECONDS, encryption_algs=CIPHERS,
        keepalive_interval=KEEPALIVE[0], keepalive_count_max=KEEPALIVE[1],
    )  # fmt: skip


async def _refuse_another_type(endpoint: Endpoint, error: Exception) -> None:
    """Raise HostKeyChanged where the host has no key of the pinned type: the key exchange fails, without saying so."""
    if not isinstance(error, (asyncssh.KeyExchangeFailed, asyncssh.ConnectionLost)):
        return
    shown = ""
    with suppress(Unreachable):
        shown = await host_key(endpoint.address, endpoint.port)
        await host_key(endpoint.address, endpoint.port, like=endpoint.host_key)
        return
    if shown:
        raise HostKeyChanged(endpoint.name, fingerprint(endpoint.host_key), fingerprint(shown)) from error
