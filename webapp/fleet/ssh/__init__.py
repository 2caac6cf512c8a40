"""SSH to nodes: one small contract for a host (run, put, read, follow), pinned host keys only."""

from .endpoint import Endpoint
from .errors import (
    AuthenticationFailed,
    CommandFailed,
    CommandKilled,
    DiskFull,
    HostKeyChanged,
    HostKeyNotPinned,
    NotThere,
    SshError,
    Unreachable,
)
from .host import Host, connect
from .keys import KeyPair, fingerprint, host_key, import_identity, make_identity
from .lease import Result
from .talk import Talk

__all__ = [
    "AuthenticationFailed",
    "CommandFailed",
    "CommandKilled",
    "DiskFull",
    "Endpoint",
    "Host",
    "HostKeyChanged",
    "HostKeyNotPinned",
    "KeyPair",
    "NotThere",
    "Result",
    "SshError",
    "Talk",
    "Unreachable",
    "connect",
    "fingerprint",
    "host_key",
    "import_identity",
    "make_identity",
]
