"""What can go wrong between the service and a node: which node, why, and the way out."""

from __future__ import annotations

import os
import signal
from typing import Self

from training.spec.faults import Reason
from training.spec.lint import Problem

SIGNALS = 128  # a shell's status of a command that signal N ended is this and N


def said(error: Exception) -> str:
    """Return what a failed connection says, without the number of its kind."""
    number = getattr(error, "errno", None) or 0
    return os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error) or type(error).__name__


class SshError(RuntimeError):
    """`reason` is how a job ends that meets it."""

    reason = Reason.NODE_UNREACHABLE
    field = "address"

    def __init__(self, node: str, why: str, fix: str):
        self.node, self.why, self.fix = node, why, fix
        super().__init__(f"{node}: {why}. {fix}")

    @property
    def problem(self) -> Problem:
        return Problem(self.field, self.why, self.fix)

    def again(self) -> Self:
        """Return another error that says the same: one that is raised twice collects the traces of both."""
        other = self.__class__.__new__(self.__class__, *self.args)
        other.__dict__.update(self.__dict__)
        return other

    def on_the_way(self, node: str) -> Self:
        """Return what this error of a jump host means for a `node` behind it."""
        other = self.again()
        other.node, other.why = node, f"jump host {self.node}: {self.why}"
        other.args = (f"{other.node}: {other.why}. {other.fix}",)
        return other


class Unreachable(SshError):
    """No connection, or the one there was has gone."""

    def __init__(
        self, node: str, why: str, fix: str = "Check that the host is up, and its address, port and firewall."
    ):
        super().__init__(node, why, fix)


class AgentFailed(Unreachable):
    """The SSH agent that holds the identity's key is away, or does not hold it now."""

    field = "identity"


class LoginCutOff(Unreachable):
    """The host ended the connection, or said nothing, where it should have let us in or refused the key."""

    field = "user"

    def __init__(self, node: str, user: str, key: str, why: str):
        super().__init__(
            node,
            f"the connection ended while user {user} logged in with the key {key} ({why})",
            "Check that it is the right user, and the identity whose key that user has. The host's sshd log says why.",
        )


class JumpCircle(SshError):
    """The way to a node leads through a host twice. `hops`: names, the node's own first."""

    reason = Reason.CONFIGURATION
    field = "jump"

    def __init__(self, node: str, hops: list[str]):
        super().__init__(
            node, f"its way is a circle: {', '.join(hops)}", "Give one of them another jump host, or none."
        )


class HostKeyNotPinned(SshError):
    """Nobody has confirmed the node's host key yet."""

    reason = Reason.PREFLIGHT
    field = "host_key"

    def __init__(self, node: str):
        super().__init__(node, "its host key has not been confirmed", "Compare and confirm its fingerprint first.")


class HostKeyChanged(SshError):
    """The host shows another key than the pinned one. `pinned` and `shown` are fingerprints."""

    reason = Reason.HOST_KEY_CHANGED
    field = "host_key"

    def __init__(self, node: str, pinned: str, shown: str):
        self.pinned, self.shown = pinned, shown
        super().__init__(
            node,
            f"its host key is {shown}, the pinned one is {pinned}",
            "If the host was set up anew, confirm the new fingerprint; if not, somebody may sit in between.",
        )


class AuthenticationFailed(SshError):
    """The host does not let the service's key in."""

    field = "user"

    def __init__(self, node: str, user: str, key: str):
        super().__init__(
            node,
            f"it does not accept the key {key} for user {user}",
            "Add the identity's public key to that user's authorized_keys. If it is there: is the account locked "
            "(`!` in /etc/shadow), or may others write to its home? The host's sshd log says which.",
        )


class CommandFailed(SshError):
    """A command or a file operation on the node failed."""

    reason = Reason.LAUNCH
    field = "scratch"
    fix = "See the reason given by the node."

    def __init__(self, node: str, what: str, detail: str):
        self.detail = detail.strip()
        super().__init__(node, f"{what} failed: {self.detail[-1500:]}", self.fix)


class CommandKilled(CommandFailed):
    """A signal ended a command on the node; none was sent from here."""

    reason = Reason.KILLED_BY_HOST
    fix = "Try again; where it happens once more, look into the node's log for what ended it."

    @classmethod
    def of(cls, node: str, what: str, code: int, detail: str) -> CommandFailed:
        """Return what `code`, as a shell says it, means for a command that should have succeeded."""
        number = code - SIGNALS
        if number not in signal.valid_signals():
            return CommandFailed(node, what, detail or f"status {code}")
        return cls(node, what, f"signal {number} ended it. {detail}")


class NotThere(CommandFailed):
    """A file on the node is missing."""


class DiskFull(CommandFailed):
    """There is no room for a file on the node."""

    reason = Reason.DISK_FULL
    fix = "Free space there, then try again."
