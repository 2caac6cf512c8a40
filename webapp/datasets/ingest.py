"""Take in a data set: read, check, store by content, register. All of it or nothing.

Rows are stored as our schema has them, one JSON object a line. The folder's name is the hash of that content, so
the same rows are stored once, and workers and nodes can tell what they hold.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from training.spec.lint import Problem, Refused

from .files import Copy
from .models import Dataset, Version
from .rows import CHAT, PAIR

MAX_NAME = 100
FORMATS = ("messages", "prompt-completion", "text")


@dataclass(frozen=True)
class Registered:
    """What came of it. `created`: false where the newest version holds these rows already."""

    version: Version
    created: bool
    dropped: dict[str, int]
    blank_lines: int
    roles: dict[str, int]


def register(
    name: str, train: Path, test: Path | None = None, owner: User | None = None, format: str = ""
) -> Registered:
    """Register the JSON Lines files `train` and `test` as the newest version of the data set `name`."""
    with train.open("rb") as train_file:
        if test is None:
            return take(name, train_file, None, owner, format)
        with test.open("rb") as test_file:
            return take(name, train_file, test_file, owner, format)


def take(
    name: str, train: BinaryIO, test: BinaryIO | None = None, owner: User | None = None, format: str = ""
) -> Registered:
    """The same from open files, such as an upload's. Raises Refused; stores nothing then."""
    name = name.strip()
    _check(name, format, [file for file in (train, test) if file])
    with _workshop() as folder:
        copies = _copy(folder, train, test, format)
        digest = _digest(copies)
        _keep(folder, digest)
    version, created = _row(name, owner, digest, copies)
    dropped: Counter[str] = sum((copy.tally.dropped for copy in copies), Counter())
    roles: Counter[str] = sum((copy.tally.roles for copy in copies), Counter())
    return Registered(version, created, dict(dropped), sum(copy.tally.blank for copy in copies), dict(roles))


def _check(name: str, format: str, files: list[BinaryIO]) -> None:
    problems = []
    if not name or len(name) > MAX_NAME or not name.isprintable():
        problems.append(Problem("name", f"it needs 1 to {MAX_NAME} printable characters", "Choose another name."))
    if format and format not in FORMATS:
        problems.append(Problem("format", f"{format[:30]!r} is none", f"Choose {', '.join(FORMATS)}, or leave it out."))
    size = sum(_size(file) for file in files)
    if size > settings.DATASET_MAX_BYTES:
        most = settings.DATASET_MAX_BYTES
        problems.append(Problem("train", f"{size} bytes are more than the {most} that fit", "Upload less."))
    if problems:
        raise Refused(problems)


def _size(file: BinaryIO) -> int:
    file.seek(0, os.SEEK_END)
    size = file.tell()
    file.seek(0)
    return size


@contextmanager
def _workshop() -> Iterator[Path]:
    """A folder beside the data sets, so that what is good can be renamed into place; gone afterwards."""
    root = Path(settings.DATASETS_DIR)
    root.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy(folder: Path, train: BinaryIO, test: BinaryIO | None, format: str) -> list[Copy]:
    asked = next((shape for shape in (CHAT, PAIR) if shape.format == format), None)
    copies = [Copy("train", asked)]
    _write(copies[0], train, folder / "train.jsonl")
    if format and copies[0].shape and copies[0].shape.format != format:
        raise Refused([Problem("format", f"rows are {copies[0].shape.format}, not {format}", "Leave `format` out.")])
    if test is not None:
        copies.append(Copy("test", copies[0].shape))
        _write(copies[1], test, folder / "test.jsonl")
    return copies


def _write(copy: Copy, source: BinaryIO, path: Path) -> None:
    with path.open("wb") as target:
        copy.run(source, target)
        target.flush()
        os.fsync(target.fileno())


def _digest(copies: list[Copy]) -> str:
    """Hash of the files' names and hashes."""
    lines = "".join(f"{copy.digest}  {copy.name}.jsonl\n" for copy in copies)
    return hashlib.sha256(lines.encode()).hexdigest()


def _keep(folder: Path, digest: str) -> None:
    target = Path(settings.DATASETS_DIR) / digest
    folder.chmod(0o755)  # mkdtemp's 700 would hide it from workers that run as another user
    try:
        folder.rename(target)
    except OSError:
        if not target.is_dir():  # else the same content is there already
            raise


@transaction.atomic
def _row(name: str, owner: User | None, digest: str, copies: list[Copy]) -> tuple[Version, bool]:
    dataset, _ = Dataset.objects.get_or_create(name=name, defaults={"owner": owner})
    dataset = Dataset.objects.select_for_update().get(pk=dataset.pk)  # numbers are given one at a time
    latest = dataset.latest
    if latest and latest.digest == digest:
        return latest, False
    train, *rest = copies
    assert train.shape is not None
    return Version.objects.create(
        dataset=dataset,
        number=latest.number + 1 if latest else 1,
        digest=digest,
        format=train.shape.format,
        rows=train.tally.rows,
        test_rows=rest[0].tally.rows if rest else 0,
        bytes=sum(copy.size for copy in copies),
    ), True
