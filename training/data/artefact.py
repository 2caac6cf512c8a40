"""The artefact: a data set's sequences, made once and only read afterwards, mapped into memory.

The digest is the hash of all that the sequences depend on, so that a folder of this name is never stale. It is
made under another name by whoever holds its lock, and renamed when whole: a killed maker leaves nothing that
could be taken for it, and those who waited read what the first one made. Where a file system knows no locks
several may make it; the last rename changes nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from datasets import Dataset

from ..spec.folder import Tokens
from ..spec.job import TrainJob
from ..spec.sections.data import Data
from ..spec.tokens.encode import Encoder
from .counts import Counts
from .digest import content_of, digest_of
from .rows import Row, read_rows
from .sequences import Source, write
from .split import held_out
from .workshop import workshop


@dataclass(frozen=True)
class Prepared:
    """An artefact that is there. `content`: the hash of the file trained on, as it was when the artefact was named.

    `made`: by this call. `seconds`: what the call took, waiting included.
    """

    tokens: Tokens
    content: str
    counts: dict[str, Counts]
    made: bool
    seconds: float

    def train(self) -> Dataset:
        """Return the sequences to train on; see sequences.py for their columns."""
        return Dataset.from_file(str(self.tokens.rows("train")))

    def test(self) -> Dataset | None:
        """Return the sequences to evaluate on, if there are any."""
        return Dataset.from_file(str(self.tokens.rows("test"))) if "test" in self.counts else None

    def facts(self) -> dict[str, Any]:
        """Return what the event of kind `data` says."""
        test = self.counts.get("test")
        return {
            **self.counts["train"].as_dict(),
            "test": test.as_dict() if test else None,
            "sha256": self.content,
            "artefact": self.tokens.path.name,
            "made": self.made,
            "seconds": round(self.seconds, 3),
        }


def prepare(
    job: TrainJob, tokenizer: Any, pause: Callable[[], None] = lambda: None, on_make: Callable[[], None] = lambda: None
) -> Prepared:
    """Return the job's artefact, made now where it isn't there: `on_make` is called before that.

    `pause` is called while this waits or works, and may raise to end it. Raises BadData, Refused, OSError.
    """
    begun = time.monotonic()
    made = False
    content = content_of(job.train, Path(job.tokens_folder))
    tokens = Tokens(job.tokens_folder / digest_of(job, tokenizer, content))
    if not Path(tokens.counts).is_file():
        on_make()
        with workshop(tokens, pause) as place:
            if made := place is not None:
                _make(Tokens(PurePosixPath(place)), job, tokenizer, pause)
    found = json.loads(Path(tokens.counts).read_text("utf-8"))
    counts = {name: Counts(**values) for name, values in found.items()}
    for name, path in (("train", job.train), ("test", job.test or job.train)):
        if name in counts:
            counts[name].check(Path(path).name, job.recipe.data)
    return Prepared(tokens, content, counts, made, time.monotonic() - begun)


def _make(place: Tokens, job: TrainJob, tokenizer: Any, pause: Callable[[], None]) -> None:
    encoder = Encoder(tokenizer, job.recipe.data)
    counts = {}
    for name, path, rows in _sources(job):
        counts[name] = write(Path(place.rows(name)), rows, encoder, Source(path, pause))
    Path(place.counts).write_text(json.dumps({name: found.as_dict() for name, found in counts.items()}), "utf-8")


def _sources(job: TrainJob) -> Iterator[tuple[str, str, Iterator[tuple[int, Row]]]]:
    """Yield (name, file, rows) of what is trained and evaluated on."""
    recipe = job.recipe
    if job.test or not recipe.data.test_share:
        yield "train", job.train, read_rows(job.train, recipe.data)
        if job.test:
            yield "test", job.test, read_rows(job.test, recipe.data)
        return
    flags = held_out(job.train, recipe.data.test_share, recipe.optimisation.seed)
    yield "train", job.train, _chosen(job.train, recipe.data, ~flags)
    yield "test", job.train, _chosen(job.train, recipe.data, flags)


def _chosen(path: str, data: Data, flags: Any) -> Iterator[tuple[int, Row]]:
    return (row for row, flag in zip(read_rows(path, data), flags, strict=True) if flag)
