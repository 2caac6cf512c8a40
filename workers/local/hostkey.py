"""A loopback host's key, made before the host starts so that it can be pinned first-hand."""

from __future__ import annotations

from pathlib import Path

import asyncssh

FILE = "ssh_host_ed25519_key"


def public_host_key(folder: Path) -> str:
    """Return the public half in OpenSSH format, of the key in `folder`; make one on first use, mode 600."""
    path = folder / FILE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_suffix(".new")
        new.touch(mode=0o600)
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(new)
        new.chmod(0o600)
        new.replace(path)
    return asyncssh.read_private_key(path).export_public_key("openssh").decode().strip()
