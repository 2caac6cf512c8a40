"""Which key a host shows, also one behind a jump host: for a person to compare, before it is pinned."""

from __future__ import annotations

from . import pool
from .endpoint import Endpoint
from .errors import SshError
from .keys import shown_key
from .lease import Lease


async def host_key(address: str, port: int = 22, *, like: str = "", via: Endpoint | None = None) -> str:
    """Return the public key that a host shows, unverified. Raises Unreachable, and what a jump host raises.

    `like`: a public key; only one of its type will do. `via`: the jump host that it is reached through.
    """
    if via is None:
        return await shown_key(address, port, like)
    connections = pool.current()

    async def ask(lease: Lease) -> str:
        return await shown_key(address, port, like, lease.shared.connection)

    try:
        async with connections.lease(via) as lease:
            return await connections.background.do(lambda: lease.doing(ask))
    except SshError as error:
        if error.node == via.name:
            raise error.on_the_way(f"{address} port {port}") from error
        raise
