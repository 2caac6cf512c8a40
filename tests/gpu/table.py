"""A check is a name and a verdict: ok, failed, or left out, each with what was seen."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


class Failed(Exception):
    """A check's claim does not hold; the text says what was seen instead."""


class LeftOut(Exception):
    """A check can't be made here; the text says what is missing. Not a failure."""


@dataclass(frozen=True)
class Row:
    name: str
    verdict: str
    seen: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name:<28} {self.verdict:<8} {self.seconds:5.0f} s  {self.seen}"


def checked(checks: Iterable[tuple[str, Callable[[], str]]]) -> Iterable[Row]:
    """Make one check after the other; yield each one's row when it is done."""
    for name, check in checks:
        begun = time.monotonic()
        verdict, seen = _judged(check)
        yield Row(name, verdict, seen, time.monotonic() - begun)


def _judged(check: Callable[[], str]) -> tuple[str, str]:
    try:
        return "ok", check()
    except Failed as failed:
        return "failed", str(failed)
    except LeftOut as missing:
        return "left out", str(missing)
    # One check that breaks must not hide what the others see.
    except Exception as error:  # noqa: BLE001
        return "failed", traceback.format_exception_only(error)[-1].strip()


def status(rows: Sequence[Row]) -> int:
    """Return the exit status: 0 where something was checked and nothing failed."""
    verdicts = {row.verdict for row in rows}
    return 0 if "ok" in verdicts and "failed" not in verdicts else 1
