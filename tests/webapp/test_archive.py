"""The archive that is never made, against the tar that Python's own library reads."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.runs.archive import Archive, Literal, Segment, Slice

NAMES = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="/\\"), min_size=1, max_size=60)
CONTENTS = st.dictionaries(NAMES.filter(lambda n: n not in (".", "..")), st.binary(max_size=1500), max_size=5)


def archive(contents: dict[str, bytes], top: str = "model", mtime: int = 1_700_000_000) -> Archive:
    return Archive(top, tuple((name, len(data)) for name, data in contents.items()), mtime)


def joined(segments: list[Segment], contents: dict[str, bytes]) -> bytes:
    return b"".join(
        s.data if isinstance(s, Literal) else contents[s.name][s.offset : s.offset + s.length] for s in segments
    )


def whole(contents: dict[str, bytes]) -> bytes:
    return joined(list(archive(contents).segments()), contents)


def test_it_works():
    contents = {"config.json": b"{}", "model.safetensors": bytes(range(256)) * 5, "empty": b""}
    with tarfile.open(fileobj=io.BytesIO(whole(contents))) as tar:
        members = tar.getmembers()
        assert {m.name: tar.extractfile(m).read() for m in members} == {f"model/{n}": d for n, d in contents.items()}
        assert {(m.mode, m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {
            (0o644, 1_700_000_000, 0, 0, "", "")
        }


@given(CONTENTS)
def test_tarfile_reads_what_was_listed(contents):
    data = whole(contents)
    assert len(data) == archive(contents).size
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        read = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
    assert read == {f"model/{name}": body for name, body in contents.items()}


@given(CONTENTS, st.data())
def test_every_range_is_a_slice_of_the_whole(contents, draw):
    data = whole(contents)
    start = draw.draw(st.integers(0, len(data)))
    end = draw.draw(st.integers(start, len(data)))
    assert joined(list(archive(contents).segments(start, end)), contents) == data[start:end]


def test_a_shard_beyond_8_gib_keeps_its_size():
    size = 9 << 30
    big = Archive("model", (("model.safetensors", size), ("z", 1)))
    header = next(big.segments())
    assert isinstance(header, Literal)
    with tarfile.open(fileobj=io.BytesIO(header.data + bytes(1024)), mode="r:") as tar:
        assert tar.next().size == size
    at = len(header.data) + size - 3
    assert list(big.segments(at, at + 3)) == [Slice("model.safetensors", size - 3, 3)]


def test_a_long_name_is_kept():
    contents = {f"{'long/' * 60}file": b"x"}
    with tarfile.open(fileobj=io.BytesIO(whole(contents))) as tar:
        assert tar.getnames() == [f"model/{'long/' * 60}file"]


def test_the_same_list_gives_the_same_bytes():
    contents = {"b": b"2", "ä" * 120: b"1"}
    assert whole(contents) == whole(contents)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.", "a\nb", "a\\b", "\ud800"])
def test_it_rejects_a_name_that_leaves_the_folder(name):
    with pytest.raises(ValueError, match="would not stay under"):
        Archive("model", ((name, 1),))


@pytest.mark.parametrize("top", ["", ".", "..", "/", "a/b", "/a", "a\0"])
def test_it_rejects_a_folder_that_is_no_plain_name(top):
    with pytest.raises(ValueError, match="one plain name"):
        Archive(top, ())


def test_it_rejects_a_repeated_name_and_a_negative_size():
    with pytest.raises(ValueError, match="twice"):
        Archive("model", (("a", 1), ("a", 1)))
    with pytest.raises(ValueError, match="negative"):
        Archive("model", (("a", -1),))


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (5, 4), (0, 10**9)])
def test_it_rejects_bytes_that_are_not_there(start, end):
    with pytest.raises(ValueError, match="not all within"):
        list(Archive("model", (("a", 1),)).segments(start, end))
