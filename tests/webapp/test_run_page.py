"""The run page and its buttons."""

from __future__ import annotations

import json
import math
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from training.spec.faults import Reason
from webapp.fleet.models import Claim
from webapp.runs import actions, proof
from webapp.runs.models import Export
from webapp.runs.page import PARTS
from webapp.runs.states import RunState

from .rows import HOSTILE, World


def test_it_works(page: Client, world: World) -> None:
    feed = world.running(HOSTILE)
    feed.started()
    feed.metrics(2.314, 1.94)
    feed.write("log@0", ("log", None, {"text": "\x1b[31mred\x1b[0m\n 50%|##\r100%|####\n"}))
    feed.checkpoint(2)
    text = page.get(f"/runs/{feed.run.pk}/").content.decode()
    assert '<span data-testid="first-loss" data-live="first-loss">2.314</span>' in text
    assert '<span data-testid="last-loss" data-live="last-loss">1.94</span>' in text
    assert "<img src=x" not in text
    assert "red\n100%|####" in text
    assert "\x1b" not in text
    assert "1 kB" in text  # two nodes of 500 bytes
    assert 'data-testid="stop"' in text
    assert 'data-testid="resume"' not in text


def test_each_part_is_the_same_on_the_page_and_alone(page: Client, world: World) -> None:
    feed = world.running()
    feed.started()
    feed.metrics(2.0)
    feed.checkpoint(1)
    feed.run.transitions.update(at=timezone.now() - timedelta(hours=36))  # "just now" is soon "5 s ago"
    whole = page.get(f"/runs/{feed.run.pk}/").content.decode()

    def without_token(html: str) -> str:
        return "".join(line for line in html.splitlines() if "csrfmiddlewaretoken" not in line).strip()

    for name in PARTS:
        part = page.get(f"/runs/{feed.run.pk}/part/{name}").content.decode()
        assert without_token(part) in without_token(whole), name
    assert page.get(f"/runs/{feed.run.pk}/part/nothing").status_code == 404
    missing = page.get(f"/runs/{feed.run.pk + 1}/")
    assert missing.status_code == 404
    assert "There is nothing at this address" in missing.content.decode()


def test_a_queued_run_names_what_it_waits_for(page: Client, world: World) -> None:
    ahead = world.draft("ahead")
    actions.launch(ahead, world.user.username)
    waiting = world.draft("waiting")
    actions.launch(waiting, world.user.username)
    text = page.get(f"/runs/{waiting.pk}/").content.decode()
    assert """Number 2 of 2 in the <a href="/queue/">queue</a> of pair.""" in text
    kept = f"alpha kept for run {ahead.pk}, beta kept for run {ahead.pk}"
    assert f"It waits for all ranks of 2 nodes: {kept}." in text
    world.started(ahead)
    Claim.objects.create(node=world.nodes[0], attempt=ahead.attempt)
    text = page.get(f"/runs/{waiting.pk}/").content.decode()
    assert f"waits for all ranks of 2 nodes: alpha held by run {ahead.pk} (0 s)." in text
    assert f'<a href="/runs/{ahead.pk}/">Run #{ahead.pk}</a>' in text
    assert "waits-for" not in page.get(f"/runs/{ahead.pk}/").content.decode()


def test_it_carries_the_cursor_that_it_was_made_at(page: Client, world: World) -> None:
    feed = world.running()
    feed.metrics(2.0)
    text = page.get(f"/runs/{feed.run.pk}/").content.decode()
    live = json.loads(text.split('id="live" type="application/json">')[1].partition("</script>")[0])
    feed.run.refresh_from_db()
    assert live["cursor"] == feed.run.journal > 0


def test_a_failed_run_says_why(page: Client, world: World) -> None:
    feed = world.running()
    feed.write("node@1", ("exit", None, {"code": 1, "signal": 9, "reason": "killed_by_host", "text": "rank 1"}))
    feed.end(RunState.FAILED, reason=Reason.KILLED_BY_HOST, text="killed by the host: rank 1 on beta")
    text = page.get(f"/runs/{feed.run.pk}/").content.decode()
    assert "killed by the host: rank 1 on beta".capitalize() in text
    assert "killed by a signal that Shardboard did not send, signal 9" in text


def test_memory_is_the_hosts_where_there_is_no_gpu(page: Client, world: World) -> None:
    feed = world.running()
    sample = {"ram_used": 3e9, "ram_total": 24e9, "disk_free": 1e9, "disk_total": 2e9, "cpu": 0.5, "gpus": []}
    card = {"index": 0, "used": 70e9, "total": 85e9, "load": 0.97, "temperature": 61, "power": None, "throttle": 0x24}
    feed.write("node@0", ("sample", None, sample))
    feed.write("node@1", ("sample", None, sample | {"gpus": [card]}))
    text = page.get(f"/runs/{feed.run.pk}/part/memory").content.decode()
    assert "host memory, no GPU" in text
    assert "3 GB of 24 GB" in text
    assert "70 GB of 85 GB" in text
    assert "97% busy, 61 °C, slowed by power cap and heat<" in text


def test_it_launches_a_draft(page: Client, world: World) -> None:
    run = world.draft()
    assert 'data-testid="launch"' in page.get(f"/runs/{run.pk}/").content.decode()
    page.post(f"/runs/{run.pk}/launch")
    run.refresh_from_db()
    assert run.state == "queued"


def test_it_stops_and_resumes(page: Client, world: World) -> None:
    feed = world.running()
    feed.metrics(2.0)
    saved = feed.checkpoint(1)
    page.post(f"/runs/{feed.run.pk}/stop")
    feed.run.refresh_from_db()
    assert feed.run.state == "stopping"
    assert 'data-testid="end-now"' in page.get(f"/runs/{feed.run.pk}/part/actions").content.decode()
    page.post(f"/runs/{feed.run.pk}/stop", {"how": "now"})
    assert feed.run.attempt.stop_now_at
    assert 'data-testid="end-now"' not in page.get(f"/runs/{feed.run.pk}/part/actions").content.decode()
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    assert "Resume from step 1" in page.get(f"/runs/{feed.run.pk}/").content.decode()
    page.post(f"/runs/{feed.run.pk}/resume", {"checkpoint": saved.pk})
    feed.run.refresh_from_db()
    assert (feed.run.state, feed.run.attempt.resume_from) == ("queued", saved)


def test_the_end_is_shown_node_by_node(page: Client, world: World) -> None:
    feed = world.running()
    address = f"/runs/{feed.run.pk}/part/ending"
    assert "node-proof" not in page.get(address).content.decode()
    rows = feed.run.attempt.placements
    rows.update(prepared_at=timezone.now())
    actions.stop(feed.run, "ada")
    assert "not told to stop yet" in page.get(address).content.decode()
    made = proof.made({"processes": [], "gpus": [{"index": 0, "before": 3, "now": 4, "others": 0}]}, 3.0, 1.8)
    rows.filter(rank=0).update(proof=made, proven_gone_at=timezone.now())
    rows.exclude(rank=0).update(unreachable_since=timezone.now())
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    text = page.get(address).content.decode()
    assert "no process left, GPU memory 4 B as before, 1.2 s after the request" in text
    assert ("Nothing of it is left" in text) == (rows.count() == 1)


@pytest.mark.parametrize(
    ("seconds", "words"), [(600, "10 minutes"), (60, "1 minute"), (5400, "1 hour 30 minutes"), (45, "45 seconds")]
)
def test_the_stop_dialog_says_how_long_it_may_take(page: Client, world: World, seconds: int, words: str) -> None:
    feed = world.running(limits={"stop_seconds": seconds})
    text = page.get(f"/runs/{feed.run.pk}/part/actions").content.decode()
    assert f"at most {words}, then it is ended by force" in text


def test_an_adapters_run_says_how_it_is_exported(page: Client, world: World) -> None:
    whole, feed = world.running(), world.running(name="lora", method={"kind": "lora"}, export={"adapter": "adapter"})
    whole.checkpoint(1)
    assert "export-adapter" not in page.get(f"/runs/{whole.run.pk}/part/actions").content.decode()
    saved = feed.checkpoint(1)
    text = page.get(f"/runs/{feed.run.pk}/part/actions").content.decode()
    assert '<option value="adapter" selected>adapter alone</option>' in text
    page.post(f"/runs/{feed.run.pk}/export", {"checkpoint": saved.pk, "dtype": "float32", "adapter": "merged"})
    assert Export.objects.get().adapter == "merged"
    assert "float32 · merged into the base" in page.get(f"/runs/{feed.run.pk}/part/exports").content.decode()


def test_it_exports(page: Client, world: World) -> None:
    feed = world.running()
    saved = feed.checkpoint(1)
    page.post(f"/runs/{feed.run.pk}/export", {"checkpoint": saved.pk, "dtype": "float32"})
    export = Export.objects.get()
    assert (export.checkpoint, export.dtype, export.requested_by) == (saved, "float32", world.user)
    files = [{"name": "model.safetensors", "size": 10, "sha256": "ab" * 32}]
    Export.objects.update(state="ready", files=files, proof={"missing": 0}, bytes=10)
    text = page.get(f"/runs/{feed.run.pk}/part/exports").content.decode()
    assert f'href="/exports/{export.pk}/"' in text
    assert f'href="/api/v1/exports/{export.pk}/archive"' in text


@pytest.mark.parametrize(
    ("act", "data", "reason"),
    [
        ("stop", {}, "There is nothing to stop"),
        ("resume", {}, "Only a stopped or failed run"),
        ("export", {}, "no complete checkpoint yet"),
        ("export", {"checkpoint": "x'; --"}, "this run has no checkpoint"),
        ("resume", {"checkpoint": "99"}, "this run has no checkpoint '99'"),
        ("resume", {"checkpoint": "9" * 5000}, "this run has no checkpoint '999"),
        ("export", {"checkpoint": "9" * 30}, "this run has no checkpoint '999"),
    ],
)
def test_it_rejects_what_can_not_be_done(
    page: Client, world: World, act: str, data: dict[str, str], reason: str
) -> None:
    run = world.draft()
    answer = page.post(f"/runs/{run.pk}/{act}", data, follow=True)
    said = " ".join(str(message) for message in answer.context["messages"])
    assert reason in said
    run.refresh_from_db()
    assert (run.state, Export.objects.count()) == ("draft", 0)


def test_a_get_changes_nothing(page: Client, world: World) -> None:
    run = world.draft()
    for act in ("launch", "stop", "resume", "export"):
        assert page.get(f"/runs/{run.pk}/{act}").status_code == 405


def test_foreign_forms_are_refused(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.user)
    run = world.draft()
    assert client.post(f"/runs/{run.pk}/launch").status_code == 403
    run.refresh_from_db()
    assert run.state == "draft"


def test_series_are_strict_json_with_gaps_named(page: Client, world: World) -> None:
    feed = world.running()
    feed.metrics(1.2, math.nan, math.inf, 0.9)
    answer = page.get(f"/runs/{feed.run.pk}/series.json")
    found = json.loads(answer.content, parse_constant=pytest.fail)
    assert found["series"]["loss"]["points"] == [[1, 1.2], [2, "NaN"], [3, "Infinity"], [4, 0.9]]
    feed.run.refresh_from_db()
    assert found["cursor"] == feed.run.journal


def test_the_newer_attempt_wins_and_the_old_tail_stays(page: Client, world: World) -> None:
    feed = world.running()
    feed.metrics(5.0, 4.0, 3.0, 2.0)
    saved = feed.checkpoint(2)
    feed.end(RunState.FAILED, reason=Reason.RANK_FAILED)
    page.post(f"/runs/{feed.run.pk}/resume", {"checkpoint": saved.pk})
    feed.run.refresh_from_db()
    world.started(feed.run).metrics(2.5, 2.4, after=2)
    loss = page.get(f"/runs/{feed.run.pk}/series.json").json()["series"]["loss"]
    assert loss["points"] == [[1, 5.0], [2, 4.0], [3, 2.5], [4, 2.4]]
    assert loss["tail"] == [[3, 3.0], [4, 2.0]]


@pytest.mark.parametrize("query", ["points=1", "points=x", "points=99999999"])
def test_series_reject_a_bad_number_of_points(page: Client, world: World, query: str) -> None:
    assert page.get(f"/runs/{world.draft().pk}/series.json?{query}").status_code == 400


def test_a_restart_is_told_with_its_cause_and_when_it_begins(page: Client, world: World) -> None:
    feed = world.running(limits={"restarts": 3})
    feed.checkpoint(4)
    feed.end(RunState.FAILED, reason=Reason.RANK_FAILED, text="node beta: boom")
    made = actions.restart(feed.run, feed.run.attempt)
    assert made is not None
    text = page.get(f"/runs/{feed.run.pk}/").content.decode()
    assert "<strong>Restarted 1 of 3</strong> by itself, from step 4. It begins " in text
    assert "(restart 1)" in text
    assert "Shardboard" in page.get(f"/runs/{feed.run.pk}/part/history").content.decode()
