"""The NVIDIA GPUs of this node, through the driver's own library (NVML); none where there is no driver.

Every figure is asked for by itself: what one driver, card or MIG slice doesn't know is None, the rest is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

DEVICES = Path("/dev")


class Gpus:
    """`problem`: why there may be GPUs that can't be asked; "" where they answer, or where there is none."""

    def __init__(self) -> None:
        self.problem = ""
        self._nvml: Any = None
        self._handles: list[Any] = []
        try:
            import pynvml
        except ImportError:
            self.problem = "nvidia-ml-py is not installed" if any(DEVICES.glob("nvidia[0-9]*")) else ""
            return
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        except pynvml.NVMLError as error:
            without = isinstance(error, pynvml.NVMLError_LibraryNotFound)
            self.problem = "" if without else f"NVML: {error}"

    def take(self) -> list[dict[str, Any]]:
        """Return one entry a GPU, as spec.events says of SAMPLE; what isn't known is None."""
        return [self._one(index, handle) for index, handle in enumerate(self._handles)]

    def memory(self) -> list[dict[str, Any]]:
        """Return [{index, used: bytes, pids: [processes that compute there]}]; what isn't known is None."""
        return [
            {
                "index": index,
                "used": self._memory(handle)[0],
                "pids": self._pids(handle),
            }
            for index, handle in enumerate(self._handles)
        ]

    def _one(self, index: int, handle: Any) -> dict[str, Any]:
        nvml = self._nvml
        used, total = self._memory(handle)
        load = self._ask("nvmlDeviceGetUtilizationRates", handle)
        power = self._ask("nvmlDeviceGetPowerUsage", handle)
        return {
            "index": index,
            "used": used,
            "total": total,
            "load": load.gpu / 100 if load else None,
            "temperature": self._ask("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU),
            "power": power / 1000 if power is not None else None,
            "clock_sm": self._ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM),
            "clock_memory": self._ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_MEM),
            "ecc_uncorrected": self._ecc(handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
            "ecc_corrected": self._ecc(handle, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
            "throttle": self._throttle(handle),
        }

    def _memory(self, handle: Any) -> tuple[int | None, int | None]:
        found = self._ask("nvmlDeviceGetMemoryInfo", handle)
        return (found.used, found.total) if found else (None, None)

    def _pids(self, handle: Any) -> list[int] | None:
        found = self._ask("nvmlDeviceGetComputeRunningProcesses", handle)
        return None if found is None else sorted({int(process.pid) for process in found})

    def _ecc(self, handle: Any, kind: int) -> int | None:
        """Return the errors since the driver was loaded: what was there years ago is no news of this run."""
        found: int | None = self._ask("nvmlDeviceGetTotalEccErrors", handle, kind, self._nvml.NVML_VOLATILE_ECC)
        return found

    def _throttle(self, handle: Any) -> int | None:
        """Return the bits of why its clocks are low (spec.throttle); older drivers have another name for it."""
        for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            if (found := self._ask(name, handle)) is not None:
                return int(found)
        return None

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Return the answer; None where this GPU, its driver or the library doesn't know (a slice has no power)."""
        try:
            return getattr(self._nvml, name)(*arguments)
        except (self._nvml.NVMLError, AttributeError, ValueError):
            return None
