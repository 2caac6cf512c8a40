"""Keys that an SSH agent holds for the service: it signs with them, and nobody here ever has them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncssh
from django.conf import settings

from .errors import AgentFailed
from .keys import fingerprint

SETTING = "SHARDBOARD_SSH_AGENT"
SECONDS = 10.0  # for each answer: an agent may wait for a person who unlocks it


async def agent_keys() -> list[str]:
    """Return the public keys that the agent holds now, in OpenSSH format with their comments. Raises AgentFailed."""
    async with _agent("the SSH agent") as agent:
        return [_line(pair) for pair in await _pairs("the SSH agent", agent) if not pair.has_cert]


@asynccontextmanager
async def key_of_agent(node: str, public_key: str) -> AsyncIterator[asyncssh.SSHKeyPair]:
    """Yield the agent's key whose public half is `public_key`, to sign with. Raises AgentFailed in the node's name."""
    wanted = asyncssh.import_public_key(public_key).public_data
    async with _agent(node) as agent:
        found = [pair for pair in await _pairs(node, agent) if pair.public_data == wanted and not pair.has_cert]
        if not found:
            why = f"the SSH agent does not hold its identity's key {fingerprint(public_key)}"
            raise AgentFailed(node, why, "Add it to the agent with ssh-add, and unlock the agent where it is locked.")
        yield found[0]


@asynccontextmanager
async def _agent(node: str) -> AsyncIterator[asyncssh.SSHAgentClient]:
    path = settings.SSH_AGENT
    if not path:
        raise AgentFailed(node, "the service knows no SSH agent", f"Name its socket in {SETTING}.")
    try:
        async with asyncio.timeout(SECONDS):
            agent = await asyncssh.connect_agent(path)
    except (OSError, asyncssh.Error) as error:
        why = f"the SSH agent at {path} does not answer ({_said(error)})"
        raise AgentFailed(
            node, why, f"Start it, with its socket where {SETTING} says, for the service's user."
        ) from error
    try:
        yield agent
    finally:
        agent.close()
        await agent.wait_closed()


async def _pairs(node: str, agent: asyncssh.SSHAgentClient) -> list[asyncssh.SSHKeyPair]:
    try:
        async with asyncio.timeout(SECONDS):
            return list(await agent.get_keys())
    except (OSError, ValueError, asyncssh.Error) as error:
        why = f"the SSH agent lists no keys ({_said(error)})"
        raise AgentFailed(node, why, f"Look whether {SETTING} names an SSH agent's socket.") from error


def _said(error: Exception) -> str:
    return f"no answer within {SECONDS:g} s" if isinstance(error, TimeoutError) else str(error)


def _line(pair: asyncssh.SSHKeyPair) -> str:
    key = base64.b64encode(pair.public_data).decode()
    comment = (pair.get_comment_bytes() or b"").decode("utf-8", "replace")
    return f"{pair.algorithm.decode()} {key} {comment}".strip()
