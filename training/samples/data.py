"""Build a sample data set: python -m training sample-data code-chat DIR

Each row asks what a function of the standard library does and answers with its docstring. Writes train.jsonl and
test.jsonl; the same interpreter gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from .place import make
from .stdlib import functions, sources

COMPLETE = ("train.jsonl", "test.jsonl")
QUESTION = "Explain what this function does:\n\n```python\n{code}\n```"
CODE = range(60, 1600)  # characters a question's code may have: neither a stub nor longer than small contexts
ANSWER = range(20, 1000)
TEST_SHARE = 0.05


def main(argv: list[str]) -> int:
    """Build the named data set into a folder; 1 with the reason where it can't be."""
    parser = argparse.ArgumentParser(prog="python -m training sample-data", description="Build a sample data set.")
    parser.add_argument("name", choices=["code-chat"])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(argv)
    try:
        made = make(options.folder, build, complete=COMPLETE)
    except OSError as error:
        print(f"sample-data {options.name}: {error}", file=sys.stderr)
        return 1
    print(f"{options.folder}: {'built' if made else 'there already'}")
    return 0


def build(folder: Path) -> None:
    """Write both files, and how many rows they have to stdout as it goes."""
    counts = {True: 0, False: 0}
    with (
        (folder / "test.jsonl").open("w", encoding="utf-8") as test,
        (folder / "train.jsonl").open("w", encoding="utf-8") as train,
    ):
        for line in _shuffled(rows()):
            held_out = _draw("split:" + line) < TEST_SHARE
            (test if held_out else train).write(line + "\n")
            counts[held_out] += 1
            if sum(counts.values()) % 1000 == 0:
                print(f"{sum(counts.values())} rows", flush=True)
    print(f"train.jsonl {counts[False]} rows, test.jsonl {counts[True]} rows")


def rows() -> Iterator[str]:
    """Yield each row's JSON once: neither its code nor its docstring occurred in an earlier row."""
    seen: set[str] = set()
    for module, text in sources():
        for function in functions(module, text):
            if len(function.code) not in CODE or len(function.docstring) not in ANSWER:
                continue
            if function.code in seen or function.docstring in seen:
                continue
            seen |= {function.code, function.docstring}
            question = QUESTION.format(code=function.code)
            turns = [{"role": "user", "content": question}, {"role": "assistant", "content": function.docstring}]
            yield json.dumps({"messages": turns}, ensure_ascii=False)


def _shuffled(lines: Iterator[str]) -> list[str]:
    """Return the rows mixed over modules, by their hash: the same on every machine, without a seed."""
    return sorted(lines, key=lambda line: hashlib.sha256(line.encode()).digest())


def _draw(text: str) -> float:
    """Return a number in [0, 1) that depends on `text` alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
