"""Rows as training reads them, and what is said of rows that it can't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from training.data import BadData, load
from training.spec.sections.data import Data

CHAT = Data()
TEXT = Data(format="text", text_field="content")
GOOD = '{"messages": [{"role": "user", "content": "é"}, {"role": "assistant", "content": "b"}], "n": 1}\n'


def rows(tmp_path: Path, text: str | bytes, data: Data = CHAT) -> list[Any]:
    path = tmp_path / "train.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(load(str(path), data))


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


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    assert len(rows(tmp_path, GOOD)) == 1
    assert len(rows(tmp_path, GOOD * 3)) == 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "train.jsonl, line 2: it is not JSON"),
        ("[1]", "line 2: expected an object, found list"),
        ('{"text": "x"}', "line 2: it has no list `messages`"),
        ('{"messages": []}', "line 2: it has no list `messages`"),
        ('{"messages": ["x"]}', "line 2: a turn in `messages` is no object"),
        ('{"messages": [{"role": "user", "content": 42}]}', "line 2: `content` should be text, found int"),
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


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadData, match="has no rows"):
        rows(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="No such file"):
        load(str(tmp_path / "none.jsonl"), CHAT)
