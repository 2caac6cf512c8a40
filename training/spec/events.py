"""Numbered lines: how a node says what happened.

A line is one JSON object: {"seq": 1, "at": 1700000000.5, "kind": "metrics", "step": 3, "data": {...}}.
`seq` starts at 1 and rises by 1 in each file. `at` is the node's clock in seconds since the epoch.
JSON has no NaN: a non-finite number is written as the string "NaN", "Infinity" or "-Infinity".
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What a line is about; the fields of `data` are named behind each."""

    # training, in events.jsonl
    PHASE = "phase"  # name: loading | tokenising | training | saving
    # data of what is trained: rows = kept + dropped (longer than max_length) + untrained (no trained token left); cut;
    # sequences, tokens, trained_tokens, longest; test: the same of what is evaluated on, or null; sha256 of the file
    # trained on, artefact (its hash), made (now, or found), seconds
    DATA = "data"
    # world_size, nodes, total_steps, parameters, trainable, attention, resumed_from; master_dtype, compute_dtype,
    # reduce_dtype; units, wrapped: {class: count}; loading: slices | broadcast | accelerate, loading_seconds,
    # peak_ram: [bytes of each rank's host memory]; on GPUs also chip, chip_flops (its peak in 16-bit products, where
    # known); of an adapter's run also method and base_dtype
    STARTED = "started"
    RESUMED = "resumed"  # step; name, saved_on, world_size (ranks), parts: {spec.parts.StatePart: Fate}, rows_again,
    #   skipped: [{name, node_rank, fault}]: newer checkpoints that are torn; changed: [data, model] as far as they are
    #   other ones than the checkpoint was made with, each told by a warning as well
    METRICS = "metrics"  # step; loss, learning_rate, grad_norm, and COSTS (all numbers)
    EVALUATION = "evaluation"  # step; loss, ...
    # step; name, node_rank, nodes, world_size, bytes, files: one line per node; metrics: {loss | eval_loss: {value,
    # step at which it was measured}}, as far as known
    CHECKPOINT = "checkpoint"
    CHECKPOINT_DELETED = "checkpoint_deleted"  # step; name, node_rank, why
    WARNING = "warning"  # text; of a rank without progress also: rank, part, idle_seconds
    FINISHED = "finished"  # step; reason (see faults.Reason)
    START = "start"  # number: the job was readied for this start; what stands above is of an earlier one
    # the supervisor, in samples.jsonl
    SAMPLE = (
        "sample"  # the figures of SAMPLED, each a number or null; gpus: [{index, GPU_SAMPLED}], ranks: [{rank, rss}]
    )
    EXIT = "exit"  # code, signal, reason, text: the last line of a job; from its second start on also start: n
    # an export, in events.jsonl of its own folder
    PROGRESS = "progress"  # phase: check | stream | prove; done, total (bytes)
    # bytes, dtype, files: [{name, size, sha256}], proof: what proof.json holds but for its files, passport: what
    # passport.json holds (see spec.passport)
    EXPORTED = "exported"
    # a delivery, in events.jsonl of its own folder; PROGRESS of it has the phases check | send | verify
    DELIVERED = "delivered"  # where, url, files: [{name, size, sha256}], bytes_sent, bytes_skipped (they were there
    #   already, and are the same), already (all of them), replaced (other content went), revision (of a hub), note
    # a trial, in events.jsonl of its own folder; model, prompt: which of them, by index
    MODEL = "model"  # model, state: loading | ready; of one ready device, why (no better one), dtype, bytes, seconds
    TOKEN = "token"  # noqa: S105  model, prompt, text (what is new), tokens (so far)
    # model, prompt, text (whole), tokens, seconds, tokens_per_second, first_token_seconds,
    # stopped_by: eos | tokens | time | stop
    ANSWER = "answer"


# In a metrics line, of the steps since the line before. Seconds are wall time per step on rank 0: step_seconds is the
# sum of data (waiting for the loader), forward_backward, optimizer (with clipping), save, evaluation (the last two
# where there was one) and other. Tokens are over all ranks, padding left out, by that same wall time; mfu is the
# model's own FLOPs (see flops.Work) by the chips' peak, where it is known. Bytes are of the rank with the most.
COSTS = (
    *("step_seconds", "data_seconds", "forward_backward_seconds", "optimizer_seconds", "save_seconds"),
    *("evaluation_seconds", "other_seconds", "tokens_per_second", "trained_tokens_per_second", "mfu"),
    *("memory_allocated", "memory_reserved", "memory_peak", "host_memory", "host_memory_peak"),
)

# In a sample. Bytes: ram_*, disk_used, disk_free, disk_total (of the scratch), rss (a rank's resident memory). Bytes a
# second since the sample before, null in the first: disk_read, disk_write (of the scratch's block device), net_* (of
# the ranks' interface, else of the default route's), rdma_* (all InfiniBand, RoCE and EFA ports). cpu: share 0..1;
# load: of the last minute. Null where the host doesn't know; a part that gave no answer is left out.
SAMPLED = (
    *("ram_used", "ram_total", "cpu", "load", "disk_used", "disk_free", "disk_total", "disk_read", "disk_write"),
    *("net_received", "net_sent", "rdma_received", "rdma_sent"),
)
# Of each GPU: used and total in bytes, load 0..1, temperature in degrees C, power in W, clocks in MHz, memory errors
# since the driver was loaded, throttle: bits, see spec.throttle. Null where the card or its driver doesn't know.
GPU_SAMPLED = (
    *("used", "total", "load", "temperature", "power", "clock_sm", "clock_memory"),
    *("ecc_uncorrected", "ecc_corrected", "throttle"),
)

ODD = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
STRICT = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class BadLine(ValueError):
    """A complete line that is no event."""


@dataclass(frozen=True)
class Event:
    """One line. `step` is the optimizer step it belongs to, if any.

    `text`: the data as the line has it, where that is strict JSON and may be kept as it is; else empty.
    """

    seq: int
    at: float
    kind: str
    step: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    text: str = field(default="", compare=False, repr=False)

    def line(self) -> str:
        """Return the line, newline included; strict JSON."""
        return line_of(self.seq, self.at, self.kind, self.step, self.data)


def line_of(seq: int, at: float, kind: str, step: int | None, data: dict[str, Any]) -> str:
    """Return the line of such an event, newline included; strict JSON. Raises what json raises."""
    body = {"seq": seq, "at": at, "kind": str(kind), "step": step, "data": data}
    try:  # nearly always all is finite: looking at each value first took half the time of a line
        return STRICT.encode(body) + "\n"
    except ValueError:
        return STRICT.encode(body | {"data": strict(data)}) + "\n"


def strict(value: Any) -> Any:
    """Return `value` with every non-finite float as its string."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(k): strict(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(v) for v in value]
    return value


def number(value: Any) -> float | None:
    """Return the float that `value` stands for ("NaN" included), or None where it is no number."""
    if isinstance(value, str):
        return ODD.get(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return None


def parse(line: str | bytes) -> Event:
    """Read one line; raise BadLine where it isn't an event."""
    if isinstance(line, bytes) and (found := _usual(line)):
        return found
    try:
        raw = json.loads(line)
        step = raw.get("step")
        event = Event(
            int(raw["seq"]), float(raw["at"]), str(raw["kind"]), None if step is None else int(step), raw["data"]
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BadLine(
            f"not an event: {bytes(line[:200], 'utf-8') if isinstance(line, str) else line[:200]!r}"
        ) from error
    if event.seq < 1 or not isinstance(event.data, dict):
        raise BadLine(f"not an event: seq {event.seq}")
    return event


# A line as `Event.line` writes it. What is in there need not be made into text again: numbers are the most of it.
USUAL = re.compile(
    rb'\{"seq":([1-9]\d{0,17}),"at":(\d{1,17}(?:\.\d{1,9})?),"kind":"(\w{1,30})","step":(\d{1,18}|null),"data":(\{.*\})\}'
)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_decode = json.JSONDecoder(parse_constant=_refuse).raw_decode


def _usual(line: bytes) -> Event | None:
    """Read a line as our own writers write them; None where it is otherwise, or has in it what needs a closer look."""
    found = USUAL.fullmatch(line)
    if found is None or b"\\u" in line:
        return None
    seq, at, kind, step, raw = found.groups()
    try:
        text = raw.decode()
        data, end = _decode(text)
        if end < len(text) or not _finite(data):
            return None
    except ValueError:
        return None
    except RecursionError as error:
        raise BadLine("not an event: it is nested too deeply") from error
    return Event(int(seq), float(at), kind.decode(), None if step == b"null" else int(step), data, text)


def _finite(value: Any) -> bool:
    """Tell whether no number in there is too large for a float: 1e999 is read as infinity."""
    if value.__class__ is float:
        return math.isfinite(value)
    if value.__class__ is not dict and value.__class__ is not list:
        return True
    values = value.values() if value.__class__ is dict else value
    try:
        return all(map(math.isfinite, values))  # nearly all are numbers
    except (TypeError, OverflowError):  # there is something else, or an integer of hundreds of digits
        return all(map(_finite, values))
