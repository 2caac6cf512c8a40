"""A driver library as NVIDIA's looks to pynvml: the same functions, which fill pynvml's own structures.

It stands in for libnvidia-ml.so.1 alone, which no test host has; all above it is the real pynvml.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pynvml

OK, NOT_SUPPORTED, TOO_SMALL = pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_SUPPORTED, 7


@dataclass
class Card:
    """One GPU. A figure that is None is answered with "not supported"."""

    used: int | None = 3 << 20
    total: int = 80 << 30
    load: int | None = 97
    temperature: int | None = 61
    milliwatts: int | None = 412_000
    clocks: dict[int, int] = field(default_factory=lambda: {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 2619})
    ecc: dict[int, int] = field(default_factory=lambda: {0: 5, 1: 0})
    throttle: int | None = 0x4
    pids: list[int] = field(default_factory=list)


class Driver:
    """What pynvml calls. `without`: names that this driver's version lacks."""

    def __init__(self, cards: list[Card], without: tuple[str, ...] = ()):
        self._cards = cards
        self._handles = [pynvml.struct_c_nvmlDevice_t() for _ in cards]
        for name in without:
            setattr(self, name, None)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if found is None:
            raise AttributeError(name)
        return found

    def _card(self, handle: Any) -> Card:
        where = ctypes.addressof(handle.contents)
        return next(c for c, h in zip(self._cards, self._handles, strict=True) if ctypes.addressof(h) == where)

    def nvmlInitWithFlags(self, _flags: int) -> int:
        return OK

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        return _put(count, len(self._cards))

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:
        handle._obj.contents = self._handles[index.value]
        return OK

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:
        card = self._card(handle)
        if card.used is None:
            return NOT_SUPPORTED
        memory._obj.used, memory._obj.total = card.used, card.total
        return OK

    def nvmlDeviceGetUtilizationRates(self, handle: Any, rates: Any) -> int:
        load = self._card(handle).load
        if load is None:
            return NOT_SUPPORTED
        rates._obj.gpu = load
        return OK

    def nvmlDeviceGetPowerUsage(self, handle: Any, power: Any) -> int:
        return _put(power, self._card(handle).milliwatts)

    def nvmlDeviceGetTemperature(self, handle: Any, _sensor: Any, found: Any) -> int:
        return _put(found, self._card(handle).temperature)

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: Any, clock: Any) -> int:
        return _put(clock, self._card(handle).clocks.get(kind.value))

    def nvmlDeviceGetTotalEccErrors(self, handle: Any, kind: Any, counter: Any, count: Any) -> int:
        assert counter.value == pynvml.NVML_VOLATILE_ECC
        return _put(count, self._card(handle).ecc.get(kind.value))

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any, reasons: Any) -> int:
        return _put(reasons, self._card(handle).throttle)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any, reasons: Any) -> int:
        return _put(reasons, self._card(handle).throttle)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, count: Any, processes: Any) -> int:
        pids = self._card(handle).pids
        room, count._obj.value = count._obj.value, len(pids)
        if room < len(pids):
            return TOO_SMALL
        for place, pid in zip(processes or (), pids, strict=False):
            place.pid, place.usedGpuMemory = pid, 1 << 30
        return OK


def _put(place: Any, value: int | None) -> int:
    if value is None:
        return NOT_SUPPORTED
    place._obj.value = value
    return OK


@contextmanager
def installed(driver: Driver) -> Iterator[None]:
    """Let pynvml find `driver` until the block ends."""
    before = pynvml.nvmlLib
    pynvml.nvmlLib = driver
    pynvml._nvmlGetFunctionPointer_cache.clear()
    try:
        yield
    finally:
        pynvml.nvmlLib = before
        pynvml._nvmlGetFunctionPointer_cache.clear()


def described(path: Path) -> Driver:
    """Return the driver of a host whose cards a file describes: [{used, pids, ...}]."""
    return Driver([Card(**card) for card in json.loads(path.read_text("utf-8"))])
