"""The log of a run as pages and as one text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from tests.webapp.rows import HOSTILE, Feed, World
from training.spec.faults import Reason
from webapp.runs import actions, logs
from webapp.runs.states import RunState

Lines = list[str]


def printed(feed: Feed, rank: int, *texts: str) -> None:
    feed.write(f"log@{rank}", *(("log", None, {"text": text}) for text in texts))


def asked(page: Client, feed: Feed, **question: Any) -> tuple[Lines, int | None]:
    """Return the texts of a page of the log, and what it reached."""
    answer = page.get(f"/runs/{feed.run.pk}/log.json", question)
    assert answer.status_code == 200, answer.content
    found = json.loads(answer.content, parse_constant=pytest.fail)
    return [entry["text"] for entry in found["entries"]], found["reached"]


@pytest.fixture
def page(world: World, client: Client) -> Client:
    client.force_login(world.user)
    return client


def test_pages_backwards_and_forwards_are_the_whole(
    page: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PAGE", 3)
    feed = world.running()
    for i in range(11):
        printed(feed, i % 2, f"line {i}")
        feed.metrics(1.0, after=i)
    whole = [f"line {i}" for i in range(11)]
    texts, reached = asked(page, feed)
    assert texts == whole[-3:]
    back = texts
    while reached:
        texts, reached = asked(page, feed, before=reached)
        back = texts + back
    assert back == whole
    assert asked(page, feed, before=0) == ([], None)
    texts, reached = asked(page, feed, after=0)
    on = texts
    while reached:
        texts, reached = asked(page, feed, after=reached)
        on += texts
    assert on == whole


def test_it_is_found_by_node_and_text(page: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = world.running()
    printed(feed, 0, "50%_done", "\x1b[31mLoss\x1b[0m is NaN", "GRÖSSE 5")
    printed(feed, 1, "50 percent", "größe 6", HOSTILE, "a [31m of no colour")
    assert asked(page, feed, text="loss IS")[0] == ["Loss is NaN"]
    assert asked(page, feed, text="%_")[0] == ["50%_done"], "no wildcards"
    assert asked(page, feed, text="[31m")[0] == ["a [31m of no colour"], "what is seen is looked through"
    assert asked(page, feed, text="RÖ")[0] == ["GRÖSSE 5", "größe 6"], "also where SQLite knows no upper case"
    assert asked(page, feed, text="Ö", node=1)[0] == ["größe 6"]
    assert asked(page, feed, text=HOSTILE)[0] == [HOSTILE]
    assert asked(page, feed, node=0)[0][0] == "50%_done"
    assert asked(page, feed, node=7) == ([], None)
    monkeypatch.setattr(logs, "PAGE", 1)
    texts, reached = asked(page, feed, text="ö")
    assert texts + asked(page, feed, text="ö", before=reached)[0] == ["größe 6", "GRÖSSE 5"], "each once"


def test_a_rare_text_is_looked_for_piece_by_piece(page: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SPAN", 10)
    feed = world.running()
    printed(feed, 0, "needle", *("hay" for _ in range(35)))
    found, reached = asked(page, feed, text="needle")
    answers = 1
    while not found:
        assert reached, "there is more to look through"
        found, reached = asked(page, feed, text="needle", before=reached)
        answers += 1
    assert found == ["needle"]
    assert answers >= 4
    assert asked(page, feed, text="needle", after=0)[0] == ["needle"]


@pytest.mark.parametrize(
    ("question", "named"),
    [("before=x", "before"), ("after=-1", "after"), ("node=1e3", "node"), ("before=1&after=1", "before, after"),
     ("text=%00", "text"), (f"text={'x' * 201}", "text")],
)  # fmt: skip
def test_it_refuses_a_bad_question(page: Client, world: World, question: str, named: str) -> None:
    answer = page.get(f"/runs/{world.draft().pk}/log.json?{question}")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(f"{named}: ")


def test_a_long_piece_is_cut_on_the_page_alone(page: Client, world: World) -> None:
    feed = world.running()
    printed(feed, 0, "x" * 5000)
    (text,), _ = asked(page, feed)
    assert text == "x" * 4000 + "… (1000 more characters in the download)"
    assert b"x" * 5000 in whole(page, feed)


def whole(page: Client, feed: Feed, question: str = "") -> bytes:
    answer: Any = page.get(f"/runs/{feed.run.pk}/log.txt{question}")

    async def gathered() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    return async_to_sync(gathered)()


def test_all_of_it_is_downloaded_with_the_names_of_nodes(
    page: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "AT_ONCE", 2)
    feed = world.running(HOSTILE)
    for i in range(5):
        printed(feed, i % 2, f"\x1b[1mline\x1b[0m {i}\nand more")
    feed.checkpoint(1)
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    actions.resume(feed.run, "ada")
    world.nodes.reverse()
    printed(world.started(feed.run), 0, "again")
    ends = [f"{('alpha', 'beta')[i % 2]}: {line}" for i in range(5) for line in (f"line {i}", "and more")]
    assert whole(page, feed).decode().splitlines() == [*ends, "beta: again"]
    assert whole(page, feed, "?node=1").decode().splitlines() == ["line 1", "and more", "line 3", "and more"]
    answer = page.get(f"/runs/{feed.run.pk}/log.txt?node=1")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["Content-Disposition"].startswith('attachment; filename="run-')
    assert page.get(f"/runs/{feed.run.pk}/log.txt?node=x").status_code == 400


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\x1b[31mb\x1b[0mc\n", "abc"),
        (" 10%|#\r 20%|##\r\n", " 20%|##"),
        ("\x1b]0;title\x07x\x1b[2K\x1b[1Gy", "xy"),
        ("tab\tstays, bell\x07 goes\x00", "tab\tstays, bell goes"),
        ("one\ntwo\n\n", "one\ntwo"),
        ("no newline", "no newline"),
    ],
)
def test_a_log_is_plain_text(raw: str, shown: str) -> None:
    assert logs.plain(raw) == shown
