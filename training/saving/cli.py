"""Look after an attempt's checkpoints on this node: python -m training checkpoint list|pin|unpin|delete ...

    python -m training checkpoint list RUN/ATTEMPT/checkpoints [--verify] [--if-there]
    python -m training checkpoint pin CHECKPOINT...
    python -m training checkpoint unpin CHECKPOINT...
    python -m training checkpoint delete CHECKPOINT... [--ended]

The last line is one JSON object: {"checkpoints": [shelf.Entry]} of a list; else {"done": [names], "absent": [names],
"refused": [{name, reason, fix}], "freed": bytes}; the exit status is 3 where some was refused. What is gone already,
or never was, counts as done when it is deleted and is named in absent, too. Without --ended the newest complete
checkpoint, and what is newer, is refused: a training may need it. Needs no torch, and may run while training saves.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..spec.lint import REFUSED, Problem, Refused
from . import checkpoints, shelf


def main(argv: list[str]) -> int:
    """Do it and print the answer; return 0, 3 where some was refused, 1 where a folder can't be worked on."""
    options = _parser().parse_args(argv)
    try:
        answer = _answer(options)
    except (OSError, Refused) as error:
        print(f"checkpoint: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return REFUSED if answer.get("refused") else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training checkpoint", description="Look after checkpoints.")
    words = parser.add_subparsers(dest="word", required=True)
    listing = words.add_parser("list", help="say what is there, what is whole, and what is kept by what")
    listing.add_argument("root", type=Path, help="the folder in which an attempt's checkpoints lie")
    listing.add_argument("--verify", action="store_true", help="read every byte and compare it with its hash")
    listing.add_argument("--if-there", action="store_true", help="a folder that is not there holds no checkpoint")
    for word, text in (("pin", "keep them from being deleted"), ("unpin", "let go of them")):
        words.add_parser(word, help=text).add_argument("folders", type=Path, nargs="+")
    deleting = words.add_parser("delete", help="delete what is neither pinned nor held by an export")
    deleting.add_argument("folders", type=Path, nargs="+")
    deleting.add_argument("--ended", action="store_true", help="training is over, so even the newest may go")
    return parser


def _answer(options: argparse.Namespace) -> dict[str, Any]:
    if options.word == "list":
        _check_root(options.root, may_lack=options.if_there)
        return {"checkpoints": [asdict(entry) for entry in shelf.listed(options.root, verify=options.verify)]}
    folders = _checked(options.folders)
    if options.word == "delete":
        absent = [folder.name for folder in folders if not os.path.lexists(folder)]
        freed, done, refused = shelf.delete(folders, ended=options.ended)
        return _done(done, refused, freed, absent)
    answers = [(shelf.pin if options.word == "pin" else shelf.unpin)(folder) for folder in folders]
    refused = [refusal for refusal in answers if refusal]
    return _done([f.name for f, refusal in zip(folders, answers, strict=True) if not refusal], refused, 0)


def _done(names: list[str], refused: Sequence[shelf.Refusal], freed: int, absent: Sequence[str] = ()) -> dict[str, Any]:
    return {"done": names, "absent": list(absent), "refused": [asdict(refusal) for refusal in refused], "freed": freed}


def _check_root(root: Path, *, may_lack: bool) -> None:
    if not (root.is_dir() or (may_lack and not os.path.lexists(root))):
        why = "is no folder" if os.path.lexists(root) else "is not there"
        raise Refused([Problem("folder", f"{root} {why}", "Give the folder in which an attempt's checkpoints lie.")])


def _checked(folders: Sequence[Path]) -> list[Path]:
    """Return the folders; raise Refused, having touched none, where one is no checkpoint's."""
    # the folder itself may be a link, which is told later; what is above it is where it really lies
    found = [folder.absolute().parent.resolve() / folder.name for folder in folders]
    if wrong := [folder for folder in found if not checkpoints.NAME.fullmatch(folder.name)]:
        raise Refused([Problem("folder", f"{wrong[0]} is no checkpoint", "Give folders named checkpoint-<step>.")])
    return found
