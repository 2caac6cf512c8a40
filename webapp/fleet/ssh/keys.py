"""Key pairs of the service and host keys of nodes."""

from __future__ import annotations

from dataclasses import dataclass

import asyncssh

from training.spec.lint import Problem, Refused

from .errors import Unreachable, said


@dataclass(frozen=True)
class KeyPair:
    """Both in OpenSSH's text format."""

    private: str
    public: str


def make_identity(comment: str = "shardboard") -> KeyPair:
    """Return a new Ed25519 key pair."""
    return _pair(asyncssh.generate_private_key("ssh-ed25519", comment=comment))


def import_identity(pem: str) -> KeyPair:
    """Return the pair of a private key; raise Refused where it can't be used unattended."""
    try:
        return _pair(asyncssh.import_private_key(pem))
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
        raise Refused([_why_not(error)]) from None


def _why_not(error: ValueError) -> Problem:
    if "passphrase" in str(error).lower():
        return Problem("private_key", "it is protected by a passphrase", "Give one without, or let us make one.")
    return Problem("private_key", f"it is no private key: {error}", "Paste the whole file, first and last line too.")


def _pair(key: asyncssh.SSHKey) -> KeyPair:
    return KeyPair(key.export_private_key().decode(), key.export_public_key().decode().strip())


def fingerprint(public_key: str) -> str:
    """Return `SHA256:...` as `ssh-keygen -l` shows it; an empty string for no key."""
    return asyncssh.import_public_key(public_key).get_fingerprint() if public_key.strip() else ""


async def shown_key(address: str, port: int, like: str = "", tunnel: asyncssh.SSHClientConnection = ()) -> str:
    """Return the public key that a host shows, unverified. Raises Unreachable.

    `like`: a public key; only one of its type will do. `tunnel`: the connection that it is reached through.
    """
    algorithms = asyncssh.import_public_key(like).sig_algorithms if like else ()
    try:
        key = await asyncssh.get_server_host_key(
            address, port, tunnel=tunnel, config=None,
            server_host_key_algs=[name.decode() for name in algorithms] or (),
        )  # fmt: skip
    except (OSError, asyncssh.Error) as error:
        raise Unreachable(f"{address} port {port}", f"it shows no host key ({said(error)})") from error
    if key is None:
        raise Unreachable(f"{address} port {port}", "it shows no host key")
    return key.export_public_key().decode().strip()
