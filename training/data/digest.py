"""The name of an artefact: the hash of the data, the tokenizer with its template, the settings and this code."""

from __future__ import annotations

import hashlib
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..spec import tokens
from ..spec.job import TrainJob
from .rows import bad

SETTINGS = ("format", "text_field", "train_on", "template", "max_length", "on_long", "packing", "packing_strategy")
LIBRARIES = ("transformers", "tokenizers", "trl")  # by their metadata: trl alone takes seconds to import


def digest_of(job: TrainJob, tokenizer: Any, content: str) -> str:
    """Return the name of the job's artefact, 32 hex digits. Raises BadData where a file can't be read.

    `content`: the hash of the file that is trained on.
    """
    data = job.recipe.data
    memos = Path(job.tokens_folder)
    share = data.test_share if not job.test else 0.0
    parts = {
        "train": content,
        "test": content_of(job.test, memos) if job.test else "",
        "settings": {name: getattr(data, name) for name in SETTINGS},
        "held_out": [share, job.recipe.optimisation.seed] if share else None,
        "tokenizer": tokenizer_of(tokenizer),
        "code": code(),
        "versions": [version(name) for name in LIBRARIES],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def content_of(path: str, memos: Path) -> str:
    """Return the hash of the file's content.

    Remembered in `memos` with the file's size and time, so that a hundred ranks need not read it all.
    """
    try:
        found = Path(path).stat()
        stamp = [found.st_size, found.st_mtime_ns, found.st_ino]
        name = hashlib.sha256(os.path.abspath(path).encode()).hexdigest()[:32]
        memo = memos / f".{name}.sha256"
        if (known := _remembered(memo)) and known["stamp"] == stamp:
            return str(known["sha256"])
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise bad(path, 0, error.strerror or str(error), "Put the data set on this node again.") from None
    _remember(memo, {"stamp": stamp, "sha256": digest})
    return digest


def _remembered(memo: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(memo.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.keys() >= {"stamp", "sha256"} else None


def _remember(memo: Path, what: dict[str, Any]) -> None:
    """Write the memo, or leave it: it only saves time."""
    new = memo.with_name(f"{memo.name}.{os.getpid()}")
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(what), "utf-8")
        new.replace(memo)
    except OSError:
        return


def tokenizer_of(tokenizer: Any) -> str:
    """Return the hash of what the tokenizer does, wherever its files lie."""
    if tokenizer.is_fast:
        what = json.loads(tokenizer.backend_tokenizer.to_str())
        what |= {"truncation": None, "padding": None}  # state of the last call, not of the files
    else:
        what = tokenizer.get_vocab() | {"": type(tokenizer).__name__}
    parts = [what, tokenizer.special_tokens_map, tokenizer.chat_template]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def code() -> str:
    """Return the hash of the code that makes artefacts, so that no version has to be raised by hand."""
    folders = [Path(__file__).parent, Path(tokens.__file__).parent]
    files = sorted(path for folder in folders for path in folder.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
