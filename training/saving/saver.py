"""Saving over all ranks: nothing counts before every rank has written, and all ranks learn of one's failure.

A save is entered by all ranks or by none: one that stays away is named after a time limit. Its agreements go
over a group of their own, so that they may run in a thread beside training and never meet its collectives.
"""

from __future__ import annotations

import gc
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from torch.distributed.checkpoint.api import CheckpointException

from ..endings import Ended, print_error, reason_for, sentence
from ..journal import Journal
from ..ranks import Ranks
from ..spec.events import Kind
from ..spec.faults import Reason
from ..spec.folder import checkpoint_name
from ..spec.retention import Verdict, judged
from ..spec.sections.checkpoints import Checkpoints
from . import checkpoints, disks, removal
from .failure import Failure, met
from .task import Task

Facts = dict[str, checkpoints.FileFacts]
Metrics = dict[str, checkpoints.Metric]
Write = Callable[[Path, Any], Facts]
MARGIN = 5.0  # seconds that the other ranks wait longer for the first one, which names who is missing
GRACE = 60.0  # seconds that a save in flight is given when training has failed


@dataclass(frozen=True)
class Saved:
    """A save that is complete, and the older checkpoints that went for it."""

    manifest: checkpoints.Manifest
    deleted: list[Verdict]


class Saver:
    """Saves into `root` on each node and deletes what `rule` has no reason to keep. Make it on every rank at once.

    Use as a context around training: a save in flight is let end, or fail, before it is left.
    """

    def __init__(
        self,
        root: str,
        rule: Checkpoints,
        ranks: Ranks,
        journal: Journal,
        *,
        asynchronous: bool = False,
        timeout_seconds: float = 1800,
    ):
        self.root = Path(root)
        self.rule = rule
        self.ranks = ranks
        self.journal = journal
        self.asynchronous = asynchronous
        self.timeout_seconds = timeout_seconds
        self._apart = ranks.apart()
        self._door = ranks.apart(timeout_seconds + MARGIN)
        self._task: Task[Saved] | None = None
        shared = ranks.gather(disks.shared_with_main(self.root, ranks))  # asked by all ranks, whatever they are
        self.owner = ranks.is_main or (ranks.is_local_main and not shared[ranks.rank])
        """Whether this rank deletes on its disk: one rank a disk."""
        self.on_disk = sum(shared) if shared[ranks.rank] else len(ranks.neighbours)
        """How many ranks save on this rank's disk."""

    def __enter__(self) -> Saver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.settle(wait=True)
        elif self._task:
            self._task.wait(GRACE)

    def enter(self, step: int) -> None:
        """Come to the save of `step` with all ranks, the one before having ended.

        Raises Ended on all ranks alike: because that one failed, or naming the ranks that did not come in time.
        """
        self.settle(wait=True)
        if missing := self._door.missing(self.timeout_seconds):
            text = _absent(missing, self._apart, step, self.timeout_seconds)
            self.journal.emit(Kind.WARNING, step, text=text)
            raise Ended(Reason.RANK_FAILED, text)
        steps = self._apart.gather(step)
        assert len(set(steps)) == 1, f"ranks came to save different steps: {steps}"

    def save(self, step: int, write: Write, metrics: Metrics | None = None) -> None:
        """Run `write` on every rank, each for its own files, and complete the checkpoint of `step`. Enter it first.

        `write` gets the folder and a group to agree over. `metrics`: what is known then; the first rank's counts.
        Asynchronous: in a thread, so that this returns at once and settle() raises; else Ended is raised here, on all
        ranks alike.
        """
        if self.asynchronous:
            self._task = Task(lambda: self._write(step, write, metrics or {}))
        else:
            self._tell(self._write(step, write, metrics or {}))

    def settle(self, *, wait: bool = False) -> None:
        """Take note of a save in flight that has ended, or `wait` for it. All ranks must call, at the same step.

        Raises Ended on all ranks alike where it failed.
        """
        if self._task is None:
            return
        if not wait and self.ranks.any([not self._task.ended])[0]:
            return
        task, self._task = self._task, None
        self._tell(task.result())

    def _write(self, step: int, write: Write, metrics: Metrics) -> Saved:
        folder = self.root / checkpoint_name(step)
        self._together(folder, lambda: removal.delete(folder, whatever_keeps_it=True) if self.owner else None)
        facts: Facts = {}
        self._together(folder, lambda: facts.update(write(folder, self._apart.group)))
        manifest = self._manifest(step, facts, metrics)
        self._together(
            folder, lambda: checkpoints.write_manifest(folder, manifest) if self._apart.is_local_main else None
        )
        return Saved(manifest, self._rotate())

    def _together(self, folder: Path, act: Callable[[], object]) -> None:
        """Raise Ended on every rank where one failed; see failure.met."""
        failed = self._apart.gather(self._caught(act))
        told = [failure for failure in failed if failure]
        if not told:
            return
        self._discard(folder)
        raise met(told, self.ranks.rank, self.ranks.node_rank)

    def _discard(self, folder: Path) -> None:
        """Delete the torn checkpoint: its space may be what the last events lack."""
        gc.collect()  # the failed writers still hold their files open, which keeps the space taken
        self._apart.gather(None)
        if self.owner:
            removal.delete(folder, whatever_keeps_it=True)
        self._apart.gather(None)

    def _caught(self, act: Callable[[], object]) -> Failure | None:
        # Whatever happened on this rank, the others are told: they would wait for it until the time limit.
        try:
            act()
        except (Exception, CheckpointException) as error:  # noqa: BLE001
            print_error(error)
            # A distributed save raises the same on every rank, and knows which of them failed.
            own = not isinstance(error, CheckpointException) or self.ranks.rank in error.failures
            return Failure(self.ranks.rank, self.ranks.node_rank, reason_for(error), self._sentence(error), own)
        return None

    def _sentence(self, error: BaseException) -> str:
        free = shutil.disk_usage(self.root).free if self.root.exists() else 0
        place = f"rank {self.ranks.rank} could not save into {self.root} ({free / 1e6:.1f} MB free)"
        return f"{place}: {sentence(error)}"

    def _manifest(self, step: int, facts: Facts, metrics: Metrics) -> checkpoints.Manifest:
        parts = self._apart.gather((self.ranks.node_rank, facts, uuid.uuid4().hex, metrics))
        files = {name: fact for node, part, *_ in parts if node == self.ranks.node_rank for name, fact in part.items()}
        return checkpoints.Manifest(
            step=step,
            node_rank=self.ranks.node_rank,
            nodes=self.ranks.nodes,
            world_size=self.ranks.world_size,
            save=parts[0][2],
            metrics=parts[0][3],
            files=dict(sorted(files.items())),
        )

    def _rotate(self) -> list[Verdict]:
        mine = None
        if self._apart.is_local_main:
            mine = checkpoints.seen(self.root, self.ranks.node_rank, self.rule.best_metric)
        nodes = self._apart.gather(mine)  # all nodes have looked before the first file goes
        verdicts = judged(checkpoints.agreed([node for node in nodes if node is not None]), self.rule)
        doomed = [(self.root / checkpoint_name(verdict.step), verdict) for verdict in verdicts if not verdict.kept]
        for folder, _ in doomed:
            if self.owner:
                removal.delete(folder)
        self._apart.gather(None)
        return [verdict for folder, verdict in doomed if not folder.is_dir()]  # one may be held since the look

    def _tell(self, saved: Saved) -> None:
        """Tell of it from the thread that trains: the journal is no other's."""
        if not self.ranks.is_local_main:
            return
        manifest = saved.manifest
        self.journal.emit(
            Kind.CHECKPOINT,
            manifest.step,
            name=checkpoint_name(manifest.step),
            node_rank=manifest.node_rank,
            nodes=manifest.nodes,
            world_size=manifest.world_size,
            bytes=manifest.bytes,
            metrics={name: metric.model_dump() for name, metric in manifest.metrics.items()},
            files=[{"name": name, **facts.model_dump()} for name, facts in manifest.files.items()],
        )
        for gone in saved.deleted:
            name = checkpoint_name(gone.step)
            self.journal.emit(Kind.CHECKPOINT_DELETED, gone.step, name=name, node_rank=manifest.node_rank, why=gone.why)


def _absent(missing: list[int], ranks: Ranks, step: int, seconds: float) -> str:
    """Name the ranks that did not come to a save."""
    if not ranks.is_main:
        return f"rank 0 did not answer in the save of step {step} within {seconds:g} s, or it names a rank that did not"
    names = ", ".join(f"rank {rank} (node {ranks.node_ranks[rank]})" for rank in missing)
    return f"{names} did not enter the save of step {step} within {seconds:g} s"
