"""Hold what the service stored against what the nodes wrote: nothing lost, nothing twice."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .stack import Stack

FILES = {"events.jsonl": "train", "samples.jsonl": "node"}


def stored(stack: Stack, run: int) -> list[dict[str, Any]]:
    """Return every event of the run, in the order of the journal."""
    found: list[dict[str, Any]] = []
    after = 0
    while page := stack.api("GET", f"/runs/{run}/events?after={after}&limit=1000")["items"]:
        found += page
        after = page[-1]["seq"]
    return found


def written(scratches: Iterable[Path], run: int) -> dict[tuple[int, str], list[int]]:
    """Return {(attempt, source): [seq, ...]} of every line of the run on the nodes' disks."""
    lines: dict[tuple[int, str], list[int]] = {}
    for scratch in scratches:
        for path in sorted(scratch.glob(f"runs/{run}/[0-9]*/node*/*.jsonl")):
            attempt, rank = int(path.parts[-3]), path.parts[-2].removeprefix("node")
            seqs = [json.loads(line)["seq"] for line in path.read_text().splitlines()]
            lines[attempt, f"{FILES[path.name]}@{rank}"] = seqs
    return lines


def check(stack: Stack, run: int, scratches: Iterable[Path]) -> int:
    """Compare; return the number of lines. Raises AssertionError naming the first difference."""
    events = stored(stack, run)
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1)), "the journal has a gap"
    by_source: dict[tuple[int, str], list[int]] = defaultdict(list)
    for event in events:
        by_source[event["attempt"], event["source"]].append(event["source_seq"])
    lines = written(scratches, run)
    assert lines, "the nodes hold no files of this run"
    for key, seqs in lines.items():
        assert seqs == list(range(1, len(seqs) + 1)), f"{key}: the node's own numbers have a gap"
        assert by_source[key] == seqs, f"{key}: {len(seqs)} lines written, {len(by_source[key])} stored"
    return sum(map(len, lines.values()))
