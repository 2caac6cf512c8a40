"""Ask something that may hang, a driver or a dead disk, without hanging oneself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Patient(Generic[T]):
    """`ask` runs in a thread of its own, one at a time: while one hangs, no second is begun."""

    def __init__(self, ask: Callable[[], T]):
        self._ask = ask
        self._asking: threading.Thread | None = None
        self._answers: list[T] = []
        self._errors: list[Exception] = []

    def get(self, seconds: float) -> T | None:
        """Return the answer, or None where it isn't there in `seconds`; raise what asking raised."""
        if self._asking is None:
            self._asking = threading.Thread(target=self._run, daemon=True)
            self._asking.start()
        self._asking.join(seconds)
        if self._asking.is_alive():
            return None
        self._asking = None
        if self._errors:
            raise self._errors.pop()
        return self._answers.pop()

    def _run(self) -> None:
        try:
            self._answers.append(self._ask())
        except Exception as error:  # noqa: BLE001  raised where it is asked for
            self._errors.append(error)
