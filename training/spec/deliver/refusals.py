"""PURE: why a folder can't be delivered to, in the same words from the node's own step and from the worker's."""

from __future__ import annotations

from ..lint import Problem
from .folder import WORKING

FIELD = "target.folder"


def no_parent(parent: str) -> Problem:
    return Problem(FIELD, f"{parent} is not there", "Make that folder, or mount the storage.")


def no_folder(folder: str) -> Problem:
    return Problem(FIELD, f"{folder} is a file or a link", "Choose another folder, or delete it first.")


def in_the_way(folder: str) -> Problem:
    return Problem(FIELD, f"{folder}{WORKING} is in the way and no delivery made it", "Move or delete it.")


def takes_none(parent: str) -> Problem:
    return Problem(FIELD, f"no folder can be made in {parent}", "Choose a folder on a disk.")


def other_content(folder: str) -> Problem:
    fix = "Choose another folder or name, or let it be replaced (replace: true)."
    return Problem(FIELD, f"{folder} is there and holds other content", fix)


def no_room(parent: str, needed: int, free: int) -> Problem:
    why = f"{needed:,} bytes are needed in {parent} and {free:,} are free"
    return Problem(FIELD, why, "Free space there, or choose another folder.")


def read_back(name: str) -> Problem:
    return Problem(FIELD, f"{name} was read back with other contents", "Look at that disk.")
