"""A checkpoint's folder on one node: looked at, pinned, let go of or deleted by the node's own command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from training.spec.folder import JobFolder, Scratch
from training.spec.lint import REFUSED
from training.spec.plan import training_argv
from webapp.fleet.ssh import CommandFailed, CommandKilled, Endpoint, Host, SshError
from webapp.runs.models import Checkpoint, CheckpointCopy

from .. import group
from ..group import Member
from ..launch import prepare, release

DELETE_SECONDS = 900.0


@dataclass(frozen=True)
class Found:
    """What a node answered. `bytes` 0: nothing is there. `refused`: why it did not do what was asked, and the way out.

    `freed`: bytes that this very call freed.
    """

    bytes: int = 0
    parts: list[int] = field(default_factory=list)
    pinned: bool = False
    refused: str = ""
    freed: int = 0


def member_of(copy: CheckpointCopy) -> Member:
    slot = copy.node_slot()
    nowhere = JobFolder(PurePosixPath(slot.scratch))
    return Member(0, copy.node_id, slot, Endpoint.of(copy.node), nowhere, release.current().digest)


def ask(checkpoint: Checkpoint, copy: CheckpointCopy, word: str = "", *more: str, without: Sequence[str] = ()) -> Found:
    """Do `word` (pin, unpin, delete; empty: nothing) and look what is there then. Raises SshError.

    `without`: names of files in its folder to take away before.
    """
    attempt = checkpoint.attempt
    member = member_of(copy)
    folder = member.scratch.checkpoint(attempt.run_id, attempt.number, checkpoint.step)
    root = Scratch(member.scratch.root).checkpoints(attempt.run_id, attempt.number)

    async def one(member: Member, host: Host) -> Found:
        await prepare.put_release(member, host)
        for name in without:
            await host.remove(str(folder / name))
        done = await _command(member, host, [word, str(folder), *more]) if word else {}
        listed = await _command(member, host, ["list", str(root), "--if-there"])
        return found(member, folder.name, listed, done)

    answer = group.on_each([member], one)[member.rank]
    if isinstance(answer, SshError):
        raise answer
    return answer


async def _command(member: Member, host: Host, words: Sequence[str]) -> dict[str, Any]:
    argv = training_argv(member.slot, member.release, "checkpoint", *words)
    result = await host.run(argv, seconds=DELETE_SECONDS)
    if result.code not in (0, REFUSED):
        raise CommandKilled.of(member.name, f"checkpoint {words[0]}", result.code, result.err or result.out)
    return group.answer(member, result.out)


def found(member: Member, name: str, listed: dict[str, Any], done: dict[str, Any]) -> Found:
    """Return what the two answers say of the checkpoint called `name`; raise CommandFailed where they are none."""
    try:
        entry = next((row for row in listed["checkpoints"] if row["name"] == name), None)
        refused = [f"{row['reason']}. {row['fix']}" for row in done.get("refused", []) if row["name"] == name]
        freed = int(done.get("freed", 0))
        if entry is None:
            return Found(refused=" ".join(refused), freed=freed)
        parts = sorted(int(rank) for rank in entry["parts"])
        # an empty folder is there all the same
        return Found(max(1, int(entry["bytes"])), parts, bool(entry["pinned"]), " ".join(refused), freed)
    except (KeyError, TypeError, ValueError) as error:
        raise CommandFailed(member.name, "reading what `checkpoint` said", repr(error)) from error
