"""Taking in a data set: what is kept, what is refused and how it is said, what is stored."""

from __future__ import annotations

import io
import json
import threading
import tracemalloc
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from django.db import connection

from training.spec.lint import Refused
from webapp.datasets import files
from webapp.datasets.ingest import register, take
from webapp.datasets.models import Dataset, Version

pytestmark = pytest.mark.django_db


def row(*turns: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": content} for role, content in turns]} | more


GOOD = row(("user", "Hello?"), ("assistant", "Héllo ☃"))


def file(*rows: Any) -> BinaryIO:
    """Each row is bytes as they are, or an object for a line of JSON."""
    return io.BytesIO(b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in rows))


def problems(*rows: Any, **options: Any) -> list[str]:
    """Return what is refused; check that nothing is stored then."""
    with pytest.raises(Refused) as caught:
        take("chat", file(*rows), **options)
    assert not Dataset.objects.exists()
    return [str(problem) for problem in caught.value.problems]


def empty(store: Path) -> bool:
    return not store.exists() or not list(store.iterdir())


def stored(version: Version, name: str = "train") -> list[Any]:
    return [json.loads(line) for line in (version.folder / f"{name}.jsonl").read_text("utf-8").splitlines()]


def test_it_works(store: Path) -> None:
    done = take("chat", file(GOOD, GOOD), file(GOOD))
    assert stored(done.version) == [GOOD, GOOD]
    assert stored(done.version, "test") == [GOOD]
    assert (done.created, done.version.number, done.version.rows, done.version.test_rows) == (True, 1, 2, 1)
    assert done.version.bytes == sum(p.stat().st_size for p in done.version.folder.iterdir())
    assert done.roles == {"user": 3, "assistant": 3}
    assert [p.name for p in store.iterdir()] == [done.version.digest]


def test_text_under_either_key() -> None:
    assert stored(take("a", file({"text": "x"}, {"text": "y"})).version) == [{"text": "x"}, {"text": "y"}]
    version = take("b", file({"content": "x"})).version
    assert (stored(version), version.format) == ([{"content": "x"}], "text")


def test_a_prompt_and_its_completion() -> None:
    rows = [{"prompt": "2+2=", "completion": " 4"}, {"prompt": "", "completion": "x"}]
    done = take("pairs", file(rows[0] | {"id": 1}, rows[1]), file(rows[0]))
    assert (done.version.format, done.dropped, stored(done.version)) == ("prompt-completion", {"id": 1}, rows)
    assert (
        take("asked", file(rows[0] | {"text": "x"}), format="prompt-completion").version.format == "prompt-completion"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"prompt": "x"}, "train, line 2, completion: expected text, found no such key"),
        ({"prompt": None, "completion": "x"}, "train, line 2, prompt: expected text, found null"),
        ({"prompt": "x", "completion": 42}, "train, line 2, completion: expected text, found a number"),
        (
            {"prompt": "x", "completion": ""},
            "train, line 2, completion: expected text to be learnt, found an empty one",
        ),
        ({"messages": []}, "train, line 2, prompt: expected text, found no such key"),
    ],
)
def test_a_broken_pair_is_named(line: Any, said: str) -> None:
    (problem,) = problems({"prompt": "2+2=", "completion": " 4"}, line)
    assert problem.startswith(said)


def test_the_same_rows_are_the_same_version(store: Path) -> None:
    first = take("chat", file(GOOD))
    again = take("chat", file(json.dumps(GOOD, indent=None, separators=(", ", ": ")).encode() + b"\r\n"))
    other = take("copy", file(GOOD))
    assert (again.created, again.version) == (False, first.version)
    assert (other.created, other.version.digest) == (True, first.version.digest)
    assert len(list(store.iterdir())) == 1


def test_other_rows_are_a_new_version_and_so_is_going_back() -> None:
    first = take("chat", file(GOOD)).version
    assert take("chat", file(GOOD, GOOD)).version.number == 2
    back = take("chat", file(GOOD)).version
    assert (back.number, back.digest) == (3, first.digest)


def test_train_and_test_are_not_the_same_place() -> None:
    assert take("a", file(GOOD, GOOD)).version.digest != take("b", file(GOOD), file(GOOD)).version.digest


def test_a_byte_order_mark_changes_nothing() -> None:
    line = json.dumps(GOOD).encode()
    assert take("a", file(b"\xef\xbb\xbf" + line)).version.digest == take("b", file(line)).version.digest


def test_blank_lines_are_counted() -> None:
    done = take("chat", file(GOOD, b"\n", b"  \r\n", GOOD, b"\n"))
    assert (done.version.rows, done.blank_lines) == (2, 3)


def test_other_keys_are_left_out_and_counted() -> None:
    turn = {"role": "assistant", "content": "x", "name": "bot"}
    done = take("chat", file({"messages": [turn, turn], "id": 1}, GOOD | {"id": 2}))
    assert done.dropped == {"id": 2, "messages[].name": 2}
    assert set(stored(done.version)[0]) == {"messages"}
    assert stored(done.version)[0]["messages"][0] == {"role": "assistant", "content": "x"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{\n", "train, line 2, column 2: expected one JSON object, found the end of the line"),
        (b'{"messages": [}\n', "train, line 2, column 15: expected one JSON object, found '}'"),
        (b"[1]\n", "train, line 2: expected one JSON object, found a list"),
        (b"prompt,response\n", "train, line 2, column 1: expected one JSON object, found 'prompt,response"),
        ('{"messages": "é"}\n'.encode("latin-1"), "train, line 2, column 15: expected UTF-8, found the bytes e9"),
        (b'{"a": NaN}\n', "train, line 2: expected strict JSON, found NaN"),
        (b'{"text": "x"}\n', "train, line 2, messages: expected a list, found no such key"),
        (b'{"messages": [], "messages": []}\n', "train, line 2, messages: expected each key once, found it twice"),
        ({"messages": "x"}, "train, line 2, messages: expected a list of turns, found text"),
        ({"messages": []}, "train, line 2, messages: expected an assistant turn with content, found no turn"),
        (row(("user", "x")), "train, line 2, messages: expected an assistant turn with content, found user"),
        (row(("user", "x"), ("assistant", "")), "expected an assistant turn with content, found user, assistant"),
        ({"messages": ["x"]}, "train, line 2, messages[0]: expected an object with role and content, found text"),
        ({"messages": [{"a": 1}, {"b": 2}]}, "messages[0].role: expected text, found no such key among 'a'"),
        ({"messages": [{"role": "user"}]}, "messages[0].content: expected text, found no such key among 'role'"),
        (row(("bot", "x")), "messages[0].role: expected one of system, user, assistant, tool, found 'bot'"),
        (row(("user", 42)), "messages[0].content: expected text, found a number"),  # type: ignore[arg-type]
        (row(("user", None)), "messages[0].content: expected text, found null"),  # type: ignore[arg-type]
        ({"messages": [{"role": ["user"], "content": "x"}]}, "messages[0].role: expected one of"),
        (b'{"messages": [{"role": "user", "content": "\\ud83d"}]}\n', "found half a surrogate pair"),
        (b"[" * 100_000, "train, line 2: expected one JSON object, found nesting without end"),
        (b'{"messages": ' + b"9" * 5000 + b"}\n", "train, line 2: expected numbers of a usual length, found one of"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(store: Path, line: Any, said: str) -> None:
    found = problems(GOOD, line)
    assert len(found) == 1
    assert said in found[0]
    assert empty(store)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "train: it has no rows"),
        (b"\n\n", "train: it has no rows"),
        (b"\x1f\x8b\x08\x00", "train, line 1, column 1: it is gzip (bytes 1f 8b), not JSON Lines. Unpack it first"),
        (b"PAR1....", "it is Parquet"),
        ("{}".encode("utf-16"), "it is UTF-16 text"),
        (b'[\n {"text": "x"}\n]\n', "it is one JSON list, not JSON Lines"),
        (b'{"prompt": "x"}\n', "or the keys `prompt` and `completion`, found the keys 'prompt'"),
        (b"{}\n", "found the keys none"),
    ],
)
def test_a_file_that_is_no_data_set(store: Path, raw: bytes, said: str) -> None:
    assert said in problems(raw)[0]
    assert empty(store)


def test_a_good_file_with_a_bad_test_file_stores_nothing(store: Path) -> None:
    assert problems(GOOD, test=file(b"x\n"))[0].startswith("test, line 1")
    assert problems(GOOD, test=file({"text": "x"}))[0].startswith("test, line 1, messages")
    assert empty(store)


def test_many_broken_lines_are_listed_up_to_twenty_and_counted() -> None:
    found = problems(*[GOOD, row(("bot", "x"))] * 132)
    assert len(found) == 21
    assert found[-1].startswith("train: 132 of 264 rows are bad, the first 20 are listed")


def test_an_error_that_comes_late_is_found() -> None:
    assert "line 50001, messages[0].content" in problems(*[GOOD] * 50_000, row(("system", 42)))[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb", "a\0b"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(Refused, match="name"):
        take(name, file(GOOD))


def test_a_name_is_only_text(store: Path) -> None:
    done = take("../../x; rm -rf /", file(GOOD))
    assert done.version.folder.parent == store


def test_a_format_that_the_rows_are_not() -> None:
    assert problems({"text": "x"}, format="messages")[0].startswith("train, line 1, messages")
    assert problems(GOOD, format="text")[0].startswith("format: rows are messages, not text")
    assert problems(GOOD, format="csv")[0].startswith("format")


def test_a_row_of_a_megabyte() -> None:
    assert take("chat", file(row(("user", "x" * 2**20), ("assistant", "y")))).version.rows == 1


def test_a_line_without_end_is_refused_without_reading_it_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    assert "train, line 2: it is longer than 1 MiB" in problems(GOOD, b"x" * (1 << 22))[0]


def test_more_bytes_than_fit(settings: Any) -> None:
    settings.DATASET_MAX_BYTES = 100
    assert "more than the 100 that fit" in problems(GOOD, GOOD)[0]


def test_memory_stays_flat(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    line = json.dumps(row(("user", "x" * 1000), ("assistant", "y" * 1000))).encode() + b"\n"
    with path.open("wb") as out:
        for _ in range(20_000):
            out.write(line)
    tracemalloc.start()
    try:
        assert register("big", path).version.rows == 20_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 40_000_000
    assert peak < 4_000_000


@pytest.mark.django_db(transaction=True)
def test_two_uploads_of_the_same_rows_at_once_are_one_version(store: Path) -> None:
    done = []

    def upload() -> None:
        done.append(take("chat", file(GOOD)).version.pk)
        connection.close()

    threads = [threading.Thread(target=upload) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
    assert Version.objects.count() == 1
    assert [p.name for p in store.iterdir()] == [Version.objects.get().digest]
