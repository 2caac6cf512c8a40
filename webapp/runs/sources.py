"""PURE: the names under which the files and the moves of a job of one node stand in the journal."""

from __future__ import annotations

from training.spec.folder import NODEJOBS


def events(kind: str, number: int) -> str:
    """What the job's command writes."""
    return f"{kind}@{number}"


def node(kind: str, number: int) -> str:
    """What its supervisor writes."""
    return f"{kind}node@{number}"


def log(kind: str, number: int) -> str:
    """What it prints."""
    return f"{kind}log@{number}"


def state(kind: str, number: int) -> str:
    """How the service moved it."""
    return f"{kind}state@{number}"


def is_log(source: str) -> bool:
    """Tell whether the source is a text without structure, an attempt's (`log@0`) or a job's (`exportlog@5`)."""
    return source.partition("@")[0].endswith("log")


def kind_of(source: str) -> str:
    """Return the kind of job that `source` belongs to; empty where it is an attempt's or the service's own."""
    head = source.partition("@")[0]
    return next((kind for kind in NODEJOBS if head in (kind, f"{kind}node", f"{kind}log", f"{kind}state")), "")
