"""Rows become the sequences that TRL's own preparation makes, and every row is accounted for."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from transformers import AutoTokenizer
from trl import SFTConfig, SFTTrainer
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from tests.training.attempts import Attempts
from tests.training.tokens import BRACKETS, chat, job
from training.data.artefact import prepare
from training.data.rows import BadData
from training.data.sequences import IGNORED

LENGTH = 64


@pytest.fixture
def tokenizer(attempts: Attempts) -> Any:
    return AutoTokenizer.from_pretrained(attempts.model)


def some(format: str, count: int) -> list[dict[str, Any]]:
    """Return rows of uneven length, some too long."""
    draw = random.Random(7)
    size = lambda most: draw.randint(1, most)  # noqa: E731
    if format == "messages":
        return [{"messages": chat("why " * size(40), " thus" * size(30))} for _ in range(count)]
    if format == "text":
        return [{"content": "def f(x): return x " * size(20)} for _ in range(count)]
    return [{"prompt": "What is it? " * size(8), "completion": " It is so" * size(10)} for _ in range(count)]


def as_trl_does(tokenizer: Any, rows: list[dict[str, Any]], **settings: Any) -> Dataset:
    """Return what SFTTrainer would have made of `rows` by itself."""
    trainer = SFTTrainer.__new__(SFTTrainer)
    trainer._tokenizer, trainer.chat_template = tokenizer, None
    trainer.completion_only_loss = "prompt" in rows[0]
    args = SFTConfig("out", use_cpu=True, bf16=False, max_length=LENGTH, report_to="none", **settings)
    renamed = [{"text": row["content"]} if "content" in row else row for row in rows]
    return trainer._prepare_dataset(Dataset.from_list(renamed), tokenizer, args, args.packing, None, "train")


@pytest.mark.parametrize(
    ("format", "packing"),
    [("messages", ""), ("messages", "bfd"), ("text", "bfd"), ("text", "wrapped"), ("prompt-completion", "bfd")],
)
def test_sequences_equal_trls_own(
    attempts: Attempts, tokenizer: Any, tmp_path: Path, format: str, packing: str
) -> None:
    rows = some(format, 1200)  # more than TRL packs at a time
    how = {"packing": True, "packing_strategy": packing} if packing else {"packing": False}
    only = "completion" if format == "prompt-completion" else "everything"
    prepared = prepare(
        job(tmp_path, attempts.model, rows, format=format, max_length=LENGTH, train_on=only, **how), tokenizer
    )
    theirs = as_trl_does(tokenizer, rows, **how)
    columns = ["input_ids", "labels", *(["seq_lengths"] if packing == "bfd" else [])]
    found = prepared.train()
    assert found.column_names == [*columns[:2], "rows", *columns[2:]]
    for name in columns:
        assert list(found[name]) == list(theirs[name])
    if packing != "bfd":  # else a sequence has several firsts: below
        trained = sum(label != IGNORED for labels in found["labels"] for label in labels[1:])
        assert prepared.counts["train"].trained_tokens == trained


def test_every_row_is_accounted_for(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    rows = [
        {"prompt": "Say four. ", "completion": "4"},
        {"prompt": "long " * 200, "completion": "4"},  # the answer is cut off
        {"prompt": "Say: ", "completion": "four " * 200},  # a part of it
    ]
    about = {"format": "prompt-completion", "train_on": "completion", "max_length": LENGTH, "untrained_rows": 0.5}
    prepared = prepare(job(tmp_path, attempts.model, rows, **about), tokenizer)
    counts = prepared.counts["train"]
    assert (counts.rows, counts.kept, counts.cut, counts.dropped, counts.untrained) == (3, 2, 2, 0, 1)
    sequences = prepared.train()
    assert list(sequences["rows"]) == [[1], [3]]
    assert counts.sequences == 2
    assert counts.tokens == sum(map(len, sequences["input_ids"]))
    assert counts.trained_tokens == sum(label != IGNORED for labels in sequences["labels"] for label in labels[1:])
    assert counts.longest > 400
    dropping = prepare(job(tmp_path, attempts.model, rows, on_long="drop", **about), tokenizer).counts["train"]
    assert (dropping.kept, dropping.cut, dropping.dropped, dropping.untrained) == (1, 0, 2, 0)


def test_too_many_rows_without_a_trained_token_are_refused(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    rows = [{"prompt": "Say four. ", "completion": " 4"}] * 3 + [{"prompt": "long " * 200, "completion": " 4"}]
    about = {"format": "prompt-completion", "train_on": "completion", "max_length": LENGTH}
    with pytest.raises(BadData, match=r"25% of rows keep no trained token \(1 of 4\).*allows 10%"):
        prepare(job(tmp_path, attempts.model, rows, **about), tokenizer)
    # the same artefact under a higher limit is read, not made again
    allowed = prepare(job(tmp_path, attempts.model, rows, untrained_rows=0.25, **about), tokenizer)
    assert not allowed.made
    assert allowed.counts["train"].untrained == 1


def test_a_mask_of_everything_is_refused(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    rows = [{"messages": chat("", "yes")[1:]}]
    with pytest.raises(BadData, match="every token would be trained"):
        prepare(job(tmp_path, attempts.model, rows, train_on="assistant", template=BRACKETS), tokenizer)


def test_rows_that_are_all_too_long_are_refused(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    rows = [{"messages": chat("why " * 200, "yes")}]
    with pytest.raises(BadData, match="every row has more than max_length tokens"):
        prepare(job(tmp_path, attempts.model, rows, on_long="drop"), tokenizer)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_is_refused(attempts: Attempts, tokenizer: Any, tmp_path: Path, text: str) -> None:
    described = job(tmp_path, attempts.model, [])
    Path(described.train).write_text(text)
    with pytest.raises(BadData, match="has no rows"):
        prepare(described, tokenizer)


def test_a_row_that_cant_be_rendered_is_named(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    template = "{% if messages | length > 2 %}{{ raise_exception('too long') }}{% endif %}x"
    rows = [{"messages": chat("a", "b")}, {"messages": chat("a", "b", "c", "d")}]
    with pytest.raises(BadData, match=r"train.jsonl, line 2: the chat template refuses it: too long"):
        prepare(job(tmp_path, attempts.model, rows, template=template), tokenizer)


def test_the_end_token_is_trained_where_it_is_also_the_padding(
    attempts: Attempts, tokenizer: Any, tmp_path: Path
) -> None:
    tokenizer.pad_token = tokenizer.eos_token
    rows = [{"messages": chat("a", "b")}, {"messages": chat("a much longer question", "b and so on")}]
    sequences = prepare(job(tmp_path, attempts.model, rows, train_on="assistant"), tokenizer).train()
    batch = DataCollatorForLanguageModeling(pad_token_id=tokenizer.pad_token_id)(
        [{name: row[name] for name in ("input_ids", "labels")} for row in sequences]
    )
    end = tokenizer.eos_token_id
    for ids, labels, mask in zip(batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True):
        assert (labels == end).sum() == 1  # the answer's own end: not the question's, not the padding's
        assert (labels[mask == 0] == IGNORED).all()
        assert (ids[mask == 0] == end).all()


def test_no_sample_learns_from_the_one_before_it(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    rows = [{"messages": chat("why " * n, " thus" * n)} for n in range(1, 13)]
    prepared = prepare(job(tmp_path, attempts.model, rows, packing=True, max_length=128), tokenizer)
    sequences = prepared.train()
    collate = DataCollatorForLanguageModeling(pad_token_id=3, padding_free=True)
    assert prepared.counts["train"].trained_tokens == int((collate(list(sequences))["labels"] != IGNORED).sum())
    row = max(sequences, key=lambda row: len(row["seq_lengths"]))
    assert len(row["seq_lengths"]) > 2
    batch = collate([row, row])
    starts = batch["cu_seq_lens_q"][:-1].tolist()
    assert len(starts) == 2 * len(row["seq_lengths"]) == 2 * len(row["rows"])
    assert [n for n, label in enumerate(batch["labels"][0].tolist()) if label == IGNORED] == starts
    assert batch["position_ids"][0, starts].tolist() == [0] * len(starts)
    for line, start, length in zip(row["rows"], starts, row["seq_lengths"], strict=False):
        whole = tokenizer.apply_chat_template(rows[line - 1]["messages"])["input_ids"]
        assert row["input_ids"][start : start + length] == whole[:length]


def test_rows_are_held_out_by_seed(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    rows = some("messages", 40)

    def split(**data: Any) -> tuple[list[int], list[int]]:
        prepared = prepare(job(tmp_path, attempts.model, rows, **data), tokenizer)
        held = prepared.test()
        return [line for (line,) in prepared.train()["rows"]], [line for (line,) in held["rows"]] if held else []

    train, held = split(test_share=0.25)
    assert len(held) == 10
    assert sorted(train + held) == list(range(1, 41))
    assert split(test_share=0.25, max_length=32) == (train, held)  # whatever else changes
    assert split()[1] == []
    with pytest.raises(BadData, match=r"data.test_share: train.jsonl has 1 rows"):
        prepare(job(tmp_path, attempts.model, rows[:1], test_share=0.25), tokenizer)
