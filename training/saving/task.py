"""One thing done beside training: started, asked whether it has ended, its error raised where it is waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Task(Generic[T]):
    """Runs `act` in a thread of its own, which never keeps the process from ending."""

    def __init__(self, act: Callable[[], T]):
        self._act = act
        self._value: T | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="save", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._act()
        # Handed over, whatever it is: a distributed save raises no Exception.
        except BaseException as error:  # noqa: BLE001
            self._error = error

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def wait(self, limit: float | None = None) -> bool:
        """Wait at most `limit` seconds; tell whether it has ended."""
        self._thread.join(limit)
        return self.ended

    def result(self) -> T:
        """Wait for the end; return what it returned or raise what it raised."""
        self._thread.join()
        if self._error:
            raise self._error
        return cast(T, self._value)
