"""An export's plan as a table for people."""

from __future__ import annotations

from collections.abc import Iterator

from ..spec.exportplan import ExportPlan

UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def text(plan: ExportPlan) -> str:
    """Return the plan, a fact a line; what keeps it from working comes first."""
    rows = list(_rows(plan))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def size(count: float) -> str:
    """Return bytes as a person reads them, in powers of ten."""
    unit, step = next(((u, s) for u, s in UNITS if count >= s), ("bytes", 1))
    return f"{count / step:.3g} {unit}" if step > 1 else f"{count:.0f} bytes"


def _rows(plan: ExportPlan) -> Iterator[tuple[str, str]]:
    yield "can it work", "yes" if plan.works else "no"
    yield from (("  why not", str(finding)) for finding in plan.problems)
    yield from (("  note", str(finding)) for finding in plan.notes)
    if plan.writing.folder:
        yield from _figures(plan)


def _figures(plan: ExportPlan) -> Iterator[tuple[str, str]]:
    reading, writing, memory, disk = plan.reading, plan.writing, plan.memory, plan.disk
    yield "reads", f"{size(reading.bytes)} in {reading.files} files of {reading.checkpoint}"
    if reading.brought:
        yield "  from other nodes", size(reading.brought)
    if reading.base:
        yield "  of the base", size(reading.base)
    asked = " (as the base model)" if writing.asked == "base" else ""
    yield "writes", f"{size(writing.bytes)} in {writing.dtype}{asked}: {writing.tensors} tensors"
    yield from (("  file", f"{file.name} {size(file.size)}") for file in writing.files)
    yield "  in other formats", ", ".join(f"{n} {size(b)}" for n, b in writing.sizes.items() if n != writing.dtype)
    yield "lands in", writing.folder
    yield "disk", f"{size(disk.free)} free, {size(disk.needed)} needed, {size(max(0, disk.after))} free after"
    yield (
        "memory",
        f"{size(memory.stream)} to stream, {size(memory.prove)} to prove, {size(memory.available)} available",
    )
    yield "proof", "loads the whole model and compares" if memory.whole else "tensor by tensor: the model is larger"
    yield "time", _time(plan)


def _time(plan: ExportPlan) -> str:
    if not plan.seconds.total:
        return "not measured"
    parts = plan.seconds
    return (
        f"about {parts.total:.0f} s: start {parts.start:.0f}, check {parts.check:.0f}, stream {parts.stream:.0f},"
        f" prove {parts.prove:.0f} (reads {size(plan.rates.read)}/s and writes {size(plan.rates.write)}/s here, hashed)"
    )
