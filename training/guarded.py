"""Call what must not end its caller, whatever it meets; say once what it met."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
told: set[str] = set()


def guarded(call: Callable[[], T], otherwise: T) -> T:
    """Return what `call` returns, or `otherwise` where it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  a full disk, a lost GPU, a bug of ours: the caller goes on
        say(f"{type(error).__name__}: {error}; going on")
        return otherwise


def say(text: str) -> None:
    """Print `text` into the job's log, once; a log on a full disk, or closed, hears nothing."""
    if text not in told:
        told.add(text)
        with suppress(OSError, ValueError):
            print(f"supervisor: {text}", file=sys.stderr, flush=True)
