"""Mounts of a test's own."""

from __future__ import annotations

from pathlib import Path


def own_mounts(mountinfo: str | None = None) -> list[str]:
    """Return the command that gives what follows it mounts of its own, unseen by all others.

    Below a chroot whose folder is no mount, the kernel can't change the root's propagation; there it stays as it is.
    """
    lines = (mountinfo or Path("/proc/self/mountinfo").read_text()).splitlines()
    root_is_mount = any(line.split()[4] == "/" for line in lines)
    return ["unshare", "--mount", "--propagation", "private" if root_is_mount else "unchanged"]
