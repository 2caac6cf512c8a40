"""The Range header, as a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.ranges import Span, Unsatisfiable, entity_tag, requested

TAG = '"abc"'


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=10-", 10, 100),
        ("bytes=99-", 99, 100),
        ("bytes=5-1000000000000000000000", 5, 100),
        ("bytes=-1", 99, 100),
        ("bytes=-100", 0, 100),
        ("bytes=-500", 0, 100),
        ("Bytes=1-2", 1, 3),
        ("  bytes= 1-2 ", 1, 3),
    ],
)
def test_it_works(header, start, end):
    assert requested(header, 100, etag=TAG) == Span(start, end, 100)


@pytest.mark.parametrize(
    "header",
    [
        None, "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=2-1", "bytes=1-2,4-5", "lines=1-2", "bytes=+1-2",
        "bytes=1.0-2", "bytes=--1", "bytes=1 -2", "bytes=\u0661-\u0662", "bytes=0-" + "9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_single_range_gets_the_whole(header):
    assert requested(header, 100, etag=TAG) is None


@pytest.mark.parametrize(
    ("header", "total"), [("bytes=100-", 100), ("bytes=100-200", 100), ("bytes=-0", 100), ("bytes=0-", 0)]
)
def test_a_range_behind_the_end_is_unsatisfiable(header, total):
    with pytest.raises(Unsatisfiable) as caught:
        requested(header, total, etag=TAG)
    assert caught.value.content_range == f"bytes */{total}"


def test_the_last_bytes_of_nothing_are_the_whole_of_it():
    assert requested("bytes=-5", 0, etag=TAG) is None


@pytest.mark.parametrize(
    ("if_range", "etag", "partial"),
    [
        (None, TAG, True),
        (TAG, TAG, True),
        (f" {TAG} ", TAG, True),
        ('"other"', TAG, False),
        ("W/" + TAG, TAG, False),
        ("W/" + TAG, "W/" + TAG, False),
        ("Wed, 21 Oct 2015 07:28:00 GMT", TAG, False),
        ("", TAG, False),
    ],
)
def test_only_the_same_version_goes_on(if_range, etag, partial):
    assert (requested("bytes=1-2", 100, etag=etag, if_range=if_range) is not None) is partial


def test_another_version_gets_the_whole_even_where_the_range_is_behind_its_end():
    assert requested("bytes=100-", 100, etag=TAG, if_range='"older"') is None


@given(st.integers(1, 500), st.integers(0, 600), st.integers(0, 600))
def test_every_span_lies_within(total, first, last):
    try:
        span = requested(f"bytes={first}-{last}", total, etag=TAG)
    except Unsatisfiable:
        assert first >= total
        return
    if span is None:
        assert last < first
    else:
        assert 0 <= span.start < span.end <= total
        assert span.content_range == f"bytes {first}-{min(last, total - 1)}/{total}"
        assert span.length == span.end - span.start


def test_a_tag_changes_with_any_fact_and_their_borders():
    tags = {entity_tag("a", "b"), entity_tag("ab"), entity_tag("a", "c"), entity_tag("", "ab"), entity_tag()}
    assert len(tags) == 5
    assert entity_tag("a", "b") == entity_tag("a", "b")
    assert all(tag.startswith('"') and tag.endswith('"') for tag in tags)


@given(st.text(max_size=120))
def test_no_header_breaks_it(header):
    try:
        span = requested(header, 100, etag=TAG)
    except Unsatisfiable:
        return
    assert span is None or 0 <= span.start < span.end <= 100
