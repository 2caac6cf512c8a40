"""The real training on one rank, which writes down the rows of each batch and may be killed at an exact place.

Nothing of training is replaced: its trainer's step is wrapped to look at the batch, and Python's own audit
events tell when a file is about to be opened or renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Kill:
    """`kill -9` of one rank: in the forward pass of `step`, or as it opens or renames `file` in the save of `step`."""

    rank: int
    step: int
    file: str = ""

    def __str__(self) -> str:
        where = f"at {self.file} of its save" if self.file else "in its forward pass"
        return f"rank {self.rank} at step {self.step}, {where}"


def main(argv: list[str], kill: Kill | None = None) -> int:
    """Be training.sft.main, watched."""
    from training import assembly, sft

    rank = int(os.environ["RANK"])
    mine = kill if kill and kill.rank == rank else None
    if mine and mine.file:
        sys.addaudithook(lambda event, args: _at_file(mine, event, args))
    assembly.Sft = watching(assembly.Sft, Path(f"rows-{rank}.jsonl"), mine)  # type: ignore[misc]
    return sft.main(argv)


def watching(trainer: Any, rows: Path, kill: Kill | None) -> Any:
    """Return the trainer's class with a step that appends [step, hash of each row's tokens] to `rows`."""

    class Watching(trainer):  # type: ignore[misc]
        def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            step = self.state.global_step + 1
            if kill and not kill.file and step == kill.step:
                os.kill(os.getpid(), signal.SIGKILL)
            with open(rows, "a") as file:
                file.write(json.dumps([step, list(_ids(inputs))]) + "\n")
            return super().training_step(model, inputs, *args, **kwargs)

    return Watching


def _ids(inputs: Any) -> Iterator[str]:
    """Yield a name for each row, of its tokens without the padding."""
    for tokens, mask in zip(inputs["input_ids"].tolist(), inputs["attention_mask"].tolist(), strict=True):
        kept = [token for token, there in zip(tokens, mask, strict=True) if there]
        yield hashlib.sha256(repr(kept).encode()).hexdigest()[:16]


def _at_file(kill: Kill, event: str, args: tuple[Any, ...]) -> None:
    if event not in ("open", "os.rename"):
        return
    path = str(args[0])
    if f"/checkpoint-{kill.step}/" in path and path.endswith(kill.file):
        os.kill(os.getpid(), signal.SIGKILL)


def rows_of(folder: Path) -> dict[tuple[int, int], list[str]]:
    """Return the rows of each (step, rank) that the ranks of a job wrote down, in order."""
    found: dict[tuple[int, int], list[str]] = {}
    for path in sorted(folder.glob("rows-*.jsonl")):
        rank = int(path.stem.removeprefix("rows-"))
        for line in path.read_text().splitlines():
            step, ids = json.loads(line)
            found.setdefault((step, rank), []).extend(ids)
    return found
