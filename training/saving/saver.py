"""Saving over all ranks: nothing counts before every rank has written, and all ranks learn of one's failure."""

from __future__ import annotations

import gc
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from torch.distributed.checkpoint.api import CheckpointException

from ..endings import Ended, print_error, reason_for, sentence
from ..journal import Journal
from ..ranks import Ranks
from ..spec.events import Kind
from ..spec.faults import Reason
from ..spec.folder import checkpoint_name
from . import checkpoints


class Saver:
    """Saves into `root` on each node and deletes what is over `keep`. Make it on every rank at once."""

    def __init__(self, root: str, keep: int, ranks: Ranks, journal: Journal):
        self.root = Path(root)
        self.keep = keep
        self.ranks = ranks
        self.journal = journal
        shared = self._shared_with_main()  # asked by all ranks, whatever they are
        self.owner = ranks.is_main or (ranks.is_local_main and not shared)
        """Whether this rank deletes on its disk: one rank a disk."""

    def _shared_with_main(self) -> bool:
        """Tell whether this node sees the first node's folder: a shared disk, where the first rank deletes for all."""
        name = self.ranks.gather(f".seen-{uuid.uuid4().hex}")[0]
        if self.ranks.is_main:
            self.root.mkdir(parents=True, exist_ok=True)
            (self.root / name).touch()
        self.ranks.gather(None)
        seen = (self.root / name).exists()
        self.ranks.gather(None)
        if self.ranks.is_main:
            (self.root / name).unlink()
        return seen

    def save(self, step: int, write: Callable[[], None]) -> None:
        """Run `write` on every rank and complete the checkpoint of `step`. Raises Ended on all ranks alike."""
        folder = self.root / checkpoint_name(step)
        self._together(folder, lambda: checkpoints.delete(folder) if self.owner else None)
        self._together(folder, write)
        facts: dict[str, checkpoints.FileFacts] = {}
        self._together(folder, lambda: facts.update(checkpoints.measure(folder, self._own_files(folder))))
        manifest = self._manifest(step, facts)
        self._together(
            folder, lambda: checkpoints.write_manifest(folder, manifest) if self.ranks.is_local_main else None
        )
        self._tell(manifest)
        self._rotate()

    def _together(self, folder: Path, act: Callable[[], object]) -> None:
        failed = self.ranks.gather(self._caught(act))
        first = next((failure for failure in failed if failure), None)
        if first:
            self._discard(folder)
            raise Ended(*first)

    def _discard(self, folder: Path) -> None:
        """Delete the torn checkpoint: its space may be what the last events lack."""
        gc.collect()  # the failed writers still hold their files open, which keeps the space taken
        self.ranks.gather(None)
        if self.owner:
            checkpoints.delete(folder)
        self.ranks.gather(None)

    def _caught(self, act: Callable[[], object]) -> tuple[Reason, str] | None:
        # Whatever happened on this rank, the others are told: they would wait for it until the time limit.
        try:
            act()
        except (Exception, CheckpointException) as error:  # noqa: BLE001
            print_error(error)
            return reason_for(error), self._sentence(error)
        return None

    def _sentence(self, error: BaseException) -> str:
        free = shutil.disk_usage(self.root).free if self.root.exists() else 0
        place = f"rank {self.ranks.rank} could not save into {self.root} ({free / 1e6:.1f} MB free)"
        return f"{place}: {sentence(error)}"

    def _own_files(self, folder: Path) -> list[str]:
        """Name the files this rank answers for: its own shards, and as the first rank the common ones."""
        mine = {self.ranks.rank, None} if self.ranks.is_main else {self.ranks.rank}
        return [name for name in checkpoints.file_names(folder) if checkpoints.shard_rank(name) in mine]

    def _manifest(self, step: int, facts: dict[str, checkpoints.FileFacts]) -> checkpoints.Manifest:
        parts = self.ranks.gather((self.ranks.node_rank, facts, uuid.uuid4().hex))
        files = {name: fact for node, part, _ in parts if node == self.ranks.node_rank for name, fact in part.items()}
        return checkpoints.Manifest(
            step=step,
            node_rank=self.ranks.node_rank,
            nodes=self.ranks.nodes,
            world_size=self.ranks.world_size,
            save=parts[0][2],
            files=dict(sorted(files.items())),
        )

    def _tell(self, manifest: checkpoints.Manifest) -> None:
        if self.ranks.is_local_main:
            self.journal.emit(
                Kind.CHECKPOINT,
                manifest.step,
                name=checkpoint_name(manifest.step),
                node_rank=manifest.node_rank,
                nodes=manifest.nodes,
                world_size=manifest.world_size,
                bytes=manifest.bytes,
                files=[{"name": name, **facts.model_dump()} for name, facts in manifest.files.items()],
            )

    def _rotate(self) -> None:
        node = self.ranks.node_rank
        doomed = checkpoints.to_delete(self.root, node, self.keep) if self.ranks.is_local_main else []
        self.ranks.gather(None)  # all nodes have looked before the first file goes
        for step in doomed:
            if self.owner:
                checkpoints.delete(self.root / checkpoint_name(step))
            self.journal.emit(Kind.CHECKPOINT_DELETED, step, name=checkpoint_name(step), node_rank=node)
