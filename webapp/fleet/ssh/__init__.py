"""SSH to nodes: one small contract for a host (run, put, read, talk), one shared connection, pinned keys only."""

from .agent import agent_keys
from .endpoint import Endpoint
from .errors import (
    AgentFailed,
    AuthenticationFailed,
    CommandFailed,
    CommandKilled,
    DiskFull,
    HostKeyChanged,
    HostKeyNotPinned,
    JumpCircle,
    NotThere,
    SshError,
    Unreachable,
)
from .host import Host, connect
from .keys import KeyPair, fingerprint, import_identity, make_identity
from .lease import Result
from .showing import host_key
from .talk import Talk

__all__ = [
    "AgentFailed",
    "AuthenticationFailed",
    "CommandFailed",
    "CommandKilled",
    "DiskFull",
    "Endpoint",
    "Host",
    "HostKeyChanged",
    "HostKeyNotPinned",
    "JumpCircle",
    "KeyPair",
    "NotThere",
    "Result",
    "SshError",
    "Talk",
    "Unreachable",
    "agent_keys",
    "connect",
    "fingerprint",
    "host_key",
    "import_identity",
    "make_identity",
]
