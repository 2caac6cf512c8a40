"""Rows to sequences of tokens: encoded, cut or dropped, what isn't trained masked, packed, written as Arrow.

A sequence is what one place of a batch holds:
input_ids    its tokens
labels       the same, -100 where not trained
rows         the lines (from 1) of the file whose rows are in it
seq_lengths  tokens of each sample in it, in the order of `rows`; where samples are packed apart
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..spec.sections.data import Data
from ..spec.tokens.encode import Encoded, Encoder, Unencodable
from .counts import Counts
from .rows import Row, bad

IGNORED = -100
BATCH_ROWS = 1000
BATCH_CHARACTERS = 4_000_000  # a megabyte a row must not become a gigabyte a batch
PACKED_ROWS = 1000  # rows that are packed among themselves: TRL's own window
TOKENS = pa.list_(pa.int32())


@dataclass(frozen=True)
class Sample:
    """One kept row: its line, its tokens and labels, of one length."""

    line: int
    ids: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Source:
    """Where rows come from: the file that errors name. `pause` is called between batches and may raise."""

    path: str
    pause: Callable[[], None] = lambda: None


def write(path: Path, rows: Iterable[tuple[int, Row]], encoder: Encoder, source: Source) -> Counts:
    """Write the sequences of `rows` to `path` as an Arrow stream; return what became of them. Raises BadData."""
    counts, data = Counts(), encoder.data
    schema = pa.schema(
        {"input_ids": TOKENS, "labels": TOKENS, "rows": pa.list_(pa.int64())}
        | ({"seq_lengths": TOKENS} if apart(data) else {})
    )
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as out:
        for block in _blocks(samples(rows, encoder, counts, source), PACKED_ROWS if data.packing else BATCH_ROWS):
            table = _table(block, data)
            counts.sequences += table.num_rows
            counts.trained_tokens += _trained(table, data)
            out.write_table(table.select(schema.names).cast(schema))
    return counts


def apart(data: Data) -> bool:
    """Tell whether several samples stand in one sequence without seeing each other."""
    return data.packing and data.packing_strategy == "bfd"


def samples(rows: Iterable[tuple[int, Row]], encoder: Encoder, counts: Counts, source: Source) -> Iterator[Sample]:
    """Yield the rows that are kept, counting all."""
    for batch in _batches(rows):
        source.pause()
        for (line, _), encoded in zip(batch, _encoded(encoder, batch, source.path), strict=True):
            if sample := _sample(line, encoded, encoder.data, counts):
                yield sample


def _batches(rows: Iterable[tuple[int, Row]]) -> Iterator[list[tuple[int, Row]]]:
    batch: list[tuple[int, Row]] = []
    size = 0
    for line, row in rows:
        batch.append((line, row))
        size += _characters(row)
        if len(batch) == BATCH_ROWS or size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _characters(row: Row) -> int:
    turns = row.get("messages")
    return sum(len(turn["content"]) for turn in turns) if turns else sum(len(text) for text in row.values())


def _encoded(encoder: Encoder, batch: list[tuple[int, Row]], path: str) -> list[Encoded]:
    try:
        return encoder([row for _, row in batch])
    except Unencodable as error:
        raise bad(path, batch[error.index][0], error.reason, error.fix) from None


def _sample(line: int, encoded: Encoded, data: Data, counts: Counts) -> Sample | None:
    """Return the row as it is trained, None where it isn't."""
    ids = np.asarray(encoded.ids, np.int32)
    labels = np.where(np.asarray(encoded.trained, bool), ids, np.int32(IGNORED))
    counts.rows += 1
    counts.longest = max(counts.longest, len(ids))
    if len(ids) > data.max_length and data.on_long == "drop":
        counts.dropped += 1
        return None
    if len(ids) > data.max_length and not wrapped(data):
        counts.cut += 1
        ids, labels = ids[: data.max_length], labels[: data.max_length]
    if not (labels[1:] != IGNORED).any():
        counts.untrained += 1
        return None
    counts.kept += 1
    counts.tokens += len(ids)
    return Sample(line, ids, labels)


def wrapped(data: Data) -> bool:
    """Tell whether rows are joined to one text that is cut anywhere, so that a long row loses nothing."""
    return data.packing and data.packing_strategy == "wrapped"


def _blocks(samples: Iterable[Sample], size: int) -> Iterator[list[Sample]]:
    block: list[Sample] = []
    for sample in samples:
        block.append(sample)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block


def _table(block: list[Sample], data: Data) -> pa.Table:
    table = pa.table(
        {
            "input_ids": pa.array([sample.ids for sample in block], TOKENS),
            "labels": pa.array([sample.labels for sample in block], TOKENS),
        }
    )
    if not data.packing:
        return table.append_column("rows", pa.array([[sample.line] for sample in block]))
    return _packed(table, block, data)


def _packed(table: pa.Table, block: list[Sample], data: Data) -> pa.Table:
    """Return the block packed by TRL. A token's line goes along with it, since TRL does not say what went where."""
    from datasets import Dataset  # these two take seconds to import
    from trl import pack_dataset

    lines = pa.array([np.full(len(sample.ids), sample.line, np.int64) for sample in block])
    whole = Dataset(table.append_column("lines", lines))
    packed = pack_dataset(whole, data.max_length, data.packing_strategy).with_format("arrow")[:]
    packed = packed.filter(pc.greater(pc.list_value_length(packed["labels"]), 1))  # nothing to learn from one token
    rows = pa.array([_runs(np.asarray(line)) for line in packed["lines"]], pa.list_(pa.int64()))
    return packed.drop_columns(["lines"]).append_column("rows", rows)


def _trained(table: pa.Table, data: Data) -> int:
    """Return how many tokens of the table a loss is taken of: those with a label, and with one before to foretell it.

    The first of each sample has none before it, unless all are joined to one text.
    """
    labels = table["labels"].combine_chunks()
    trained = np.asarray(labels.flatten()) != IGNORED
    starts = np.asarray(labels.offsets)[:-1] - labels.offsets[0].as_py()
    if apart(data):
        lengths = np.asarray(table["seq_lengths"].combine_chunks().flatten())
        starts = np.cumsum(lengths) - lengths
    return int(trained.sum() - trained[starts].sum())


def _runs(lines: np.ndarray) -> np.ndarray:
    """Return each value of `lines` once, in the order in which they first stand there."""
    return lines[np.r_[True, lines[1:] != lines[:-1]]]
