"""GET /runs, /runs/{id}, events, log."""

from __future__ import annotations

import pytest

from webapp.runs import actions
from webapp.runs.models import Event, Export, Run

from .conftest import Caller, Feed, World, checkpoint, metrics, refused, strictly


def test_a_list_is_newest_first_and_paged(call: Caller, world: World) -> None:
    made = [world.run().pk for _ in range(5)]
    seen, cursor, pages = [], "", 0
    while cursor is not None:
        page = strictly(call.get(f"/runs?limit=2&cursor={cursor}"))
        seen += [row["id"] for row in page["items"]]
        cursor, pages = page["next"], pages + 1
        world.run()  # what is new meanwhile does not shift the pages behind
    assert seen == made[::-1]
    assert pages == 3


def test_a_list_by_state_and_name(call: Caller, world: World) -> None:
    world.run(name="Llama one", state="failed")
    world.run(name="llama two")
    world.run(name="other")
    assert [r["name"] for r in strictly(call.get("/runs?q=LLAMA"))["items"]] == ["llama two", "Llama one"]
    assert [r["name"] for r in strictly(call.get("/runs?q=llama&state=failed"))["items"]] == ["Llama one"]
    assert strictly(call.get("/runs?q=%00"))["items"] == []


def test_a_list_by_tag_owner_model_data_set_and_archive(call: Caller, world: World) -> None:
    kept, old = world.run(name="kept"), world.run(name="old", state="stopped")
    assert strictly(call.patch(f"/runs/{kept.pk}", {"tags": [" Sweep ", "a  b", "sweep"]}))["tags"] == ["a b", "sweep"]
    assert strictly(call.patch(f"/runs/{old.pk}", {"archived": True}))["archived_at"]
    for query, names in (
        ("", ["kept"]),
        ("archived=all", ["old", "kept"]),
        ("archived=only", ["old"]),
        ("tag=sweep&owner=ada&model=tiny&dataset=chat", ["kept"]),
        ("tag=none", []),
        ("owner=bob&archived=all", []),
    ):
        assert [row["name"] for row in strictly(call.get(f"/runs?{query}"))["items"]] == names


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("archived=some", "archived"),
        ("tag=" + "x" * 201, "tag"),
        ("state=asleep", "state"),
        ("cursor=nonsense", "cursor"),
        ("cursor=eyJhIjoxfQ:x:y", "cursor"),
        ("limit=0", "limit"),
    ],
)
def test_a_list_that_can_not_be(call: Caller, world: World, query: str, field: str) -> None:
    refused(call.get(f"/runs?{query}"), 422, field)


def test_a_cursor_of_another_make_is_refused(call: Caller, world: World) -> None:
    for _ in range(2):
        world.run()
    cursor = strictly(call.get("/runs?limit=1"))["next"]
    refused(call.get(f"/runs?cursor={cursor[:-1]}{'A' if cursor[-1] != 'A' else 'B'}"), 422, "cursor")


def test_a_list_costs_the_same_for_many(call: Caller, world: World, django_assert_max_num_queries: object) -> None:
    for _ in range(20):
        actions.set_tags(world.run(), ["one", "two"])
    call.get("/runs")  # marks the token as used
    with django_assert_max_num_queries(3):  # type: ignore[operator]
        assert len(strictly(call.get("/runs"))["items"]) == 20


def test_a_run_whole(call: Caller, world: World, feed: Feed) -> None:
    run = world.run()
    attempt = actions.launch(run, "ada")
    feed(attempt, metrics((1, 2.5), (2, "NaN"), (3, 2.25)))
    feed(attempt, [("sample", None, {"ram_used": 7})], "node@0")
    made = checkpoint(attempt, 2)
    actions.export(run, world.user, made, "float16")
    body = strictly(call.get(f"/runs/{run.pk}"))
    assert (body["state"], body["step"], body["total_steps"]) == ("queued", 3, 12)
    assert (body["last_loss"], body["tags"], body["notes"], body["archived_at"]) == (2.25, [], "", None)
    assert body["metrics"] == {"loss": 2.25, "node0/ram_used": 7.0}
    assert [(c["step"], c["usable"]) for c in body["checkpoints"]] == [(2, True)]
    assert [(e["dtype"], e["state"], e["step"], e["files"]) for e in body["exports"]] == [("float16", "queued", 2, [])]
    assert [a["number"] for a in body["attempts"]] == [1]


def test_a_failed_run_says_why(call: Caller, world: World) -> None:
    run = world.run(state="failed", reason="disk_full", reason_text="the disk is full on n1")
    body = strictly(call.get(f"/runs/{run.pk}"))
    assert (body["reason"], body["reason_text"]) == ("disk_full", "the disk is full on n1")


@pytest.mark.parametrize("key", ["7", "9" * 30, "0"])
def test_a_run_that_is_none(call: Caller, world: World, key: str) -> None:
    for path in ("", "/events", "/series/loss", "/log"):
        refused(call.get(f"/runs/{key}{path}"), 404, "id")


def test_events_page_by_page(call: Caller, world: World, feed: Feed) -> None:
    run = world.run()
    feed(actions.launch(run, "ada"), metrics(*[(i, 1.0) for i in range(1, 10)]))
    seen, after = [], 0
    while after is not None:
        page = strictly(call.get(f"/runs/{run.pk}/events?limit=4&after={after}"))
        seen += [event["seq"] for event in page["items"]]
        after = page["next"]
    assert seen == list(range(1, 11))
    assert strictly(call.get(f"/runs/{run.pk}/events?after=10")) == {"items": [], "next": None}
    first = strictly(call.get(f"/runs/{run.pk}/events?limit=2"))["items"]
    assert [(e["kind"], e["source"], e["source_seq"], e["step"]) for e in first][1] == ("metrics", "train@0", 1, 1)


@pytest.mark.parametrize("query", ["after=-1", "after=x", f"after={10**30}", "limit=0", "limit=5001"])
def test_events_that_can_not_be(call: Caller, world: World, query: str) -> None:
    refused(call.get(f"/runs/{world.run().pk}/events?{query}"), 422, query.partition("=")[0])


def test_the_end_of_the_log(call: Caller, world: World) -> None:
    run = world.run()
    attempt = actions.launch(run, "ada")
    assert strictly(call.get(f"/runs/{run.pk}/log")) == {"items": [], "next": None}
    for i in range(1, 5):
        Event.objects.create(
            run=run, number=run.journal + i + 1, attempt=attempt, source=f"log@{i % 2}", seq=i, kind="log",
            at=attempt.created_at, data={"text": f"line {i}\nmore {i}\n"},
        )  # fmt: skip
    found = strictly(call.get(f"/runs/{run.pk}/log?tail=3"))["items"]
    assert [(row["node"], row["line"]) for row in found] == [(1, "more 3"), (0, "line 4"), (0, "more 4")]


def test_an_export_that_is_none(call: Caller, world: World) -> None:
    assert not Export.objects.exists()
    refused(call.get("/exports/1"), 404, "id")
    assert not Run.objects.exists()


def test_a_stop_asked_for_again_is_the_same_stop(call: Caller, world: World) -> None:
    run = world.run()
    actions.launch(run, "ada")
    refused(call.post(f"/runs/{run.pk}/stop", {"how": "softly"}), 422, "how")
    first, again = (strictly(call.post(f"/runs/{run.pk}/stop", {"how": how})) for how in ("graceful", "now"))
    assert first["state"] == again["state"] == "stopped"
    assert first["history"] == again["history"]


def test_a_change_is_made_whole_or_not_at_all(call: Caller, world: World) -> None:
    run = world.run()
    refused(call.patch(f"/runs/{run.pk}", {"notes": "lost", "archived": True}), 422, "archived")
    refused(call.patch(f"/runs/{run.pk}", {"notes": "x" * 10_001}), 422, "notes")
    refused(call.patch(f"/runs/{run.pk}", {"notes": "a\u001bb"}), 422, "notes")
    refused(call.patch(f"/runs/{run.pk}", {"tags": [f"t{i}" for i in range(21)]}), 422, "tags")
    refused(call.patch(f"/runs/{run.pk}", {"tags": ["one, two"]}), 422, "tags")
    refused(call.patch(f"/runs/{run.pk}", {"state": "stopped"}), 422, "state")
    body = strictly(call.patch(f"/runs/{run.pk}", {"notes": " <b>good</b>\r\n "}))
    assert (body["notes"], body["tags"], body["archived_at"]) == ("<b>good</b>", [], None)


def test_an_archived_run_that_goes_on_is_in_lists_again(call: Caller, world: World) -> None:
    run = world.run()
    checkpoint(actions.launch(run, "ada"), 2)
    call.post(f"/runs/{run.pk}/stop")
    assert strictly(call.patch(f"/runs/{run.pk}", {"archived": True}))["archived_at"]
    assert strictly(call.post(f"/runs/{run.pk}/resume"))["archived_at"] is None


def test_an_adapters_run_is_exported_as_asked(call: Caller, world: World) -> None:
    run = world.run()
    Run.objects.filter(pk=run.pk).update(recipe=run.recipe | {"method": {"kind": "lora"}})
    checkpoint(actions.launch(run, "ada"), 2)
    asked = {"checkpoint": 2, "dtype": "float32", "adapter": "adapter"}
    made = strictly(call.post(f"/runs/{run.pk}/exports", asked))
    assert (made["dtype"], made["adapter"], made["step"]) == ("float32", "adapter", 2)
    assert strictly(call.post(f"/runs/{run.pk}/exports", {}))["adapter"] == "merged"
    refused(call.post(f"/runs/{run.pk}/exports", {"adapter": "half"}), 422, "adapter")
    whole = world.run()
    checkpoint(actions.launch(whole, "ada"), 2)
    assert strictly(call.post(f"/runs/{whole.pk}/exports", {}))["adapter"] == "none"
    refused(call.post(f"/runs/{whole.pk}/exports", {"adapter": "merged"}), 422, "adapter")
