"""Rows as training reads them, and what is said of rows that it can't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from training.data.rows import BadData, read_rows
from training.spec.sections.data import Data

CHAT = Data()
PAIRS = Data(format="prompt-completion")
TEXT = Data(format="text", text_field="content")
GOOD = '{"messages": [{"role": "user", "content": "é"}, {"role": "assistant", "content": "b"}], "n": 1}\n'


def rows(tmp_path: Path, text: str | bytes, data: Data = CHAT) -> list[Any]:
    path = tmp_path / "train.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [row for _, row in read_rows(str(path), data)]


def test_messages_keep_role_and_content_only(tmp_path: Path) -> None:
    expected = [{"messages": [{"role": "user", "content": "é"}, {"role": "assistant", "content": "b"}]}]
    assert rows(tmp_path, GOOD) == expected


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    with_mark = rows(tmp_path, b"\xef\xbb\xbf" + GOOD.encode())
    assert with_mark == rows(tmp_path, GOOD)


def test_text_reads_the_named_column(tmp_path: Path) -> None:
    assert rows(tmp_path, '{"content": "hello", "other": null}\n\n{"content": "x"}', TEXT) == [
        {"text": "hello"},
        {"text": "x"},
    ]


def test_lines_are_counted_as_they_stand_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(f"\n{GOOD}\n\n{GOOD}")
    assert [line for line, _ in read_rows(str(path), CHAT)] == [2, 5]


def test_no_key_appears_that_the_file_did_not_have(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="line 1: `role` should be text, found nothing"):
        rows(tmp_path, '{"messages": [{"a": 1}, {"b": 2}]}')


def test_a_prompt_and_its_completion_are_read(tmp_path: Path) -> None:
    line = '{"prompt": "2+2=", "completion": " 4", "system": null}\n'
    assert rows(tmp_path, line, PAIRS) == [{"prompt": "2+2=", "completion": " 4"}]
    with pytest.raises(BadData, match="line 2: `completion` should be text, found int"):
        rows(tmp_path, line + '{"prompt": "2+2=", "completion": 4}', PAIRS)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "train.jsonl, line 2: it is not JSON"),
        ("[1]", "line 2: expected an object, found list"),
        ('{"text": "x"}', "line 2: it has no list `messages`"),
        ('{"messages": []}', "line 2: it has no list `messages`"),
        ('{"messages": ["x"]}', "line 2: a turn in `messages` is no object"),
        ('{"messages": [{"role": "user", "content": 42}]}', "line 2: `content` should be text, found int"),
        ('{"messages": ' + "[" * 100_000, "line 2: it is nested too deeply"),
        ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "line 2: `content` holds half of a character"),
        ('{"messages": [{"content": "x"}]}', "line 2: `role` should be text, found nothing"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(BadData, match="data: ") as caught:
        rows(tmp_path, GOOD + line)
    assert reason in str(caught.value)


def test_other_encodings_are_not_replaced_in_silence(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="line 2: byte 14 is not UTF-8"):
        rows(tmp_path, GOOD.encode() + '{"content": "é"}'.encode("latin-1"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="No such file"):
        list(read_rows(str(tmp_path / "none.jsonl"), CHAT))
