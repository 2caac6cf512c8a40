"""Trying a run's models: who may be asked, what the page shows while they answer, the recipe's own prompts."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from training.spec.faults import Reason
from training.spec.lint import Refused
from webapp.deliveries.models import Delivery
from webapp.fleet.models import Claim
from webapp.runs import actions as run_actions
from webapp.runs.live import batch
from webapp.runs.models import Event, Export
from webapp.trials import actions, choice, queue
from webapp.trials.models import Answer, Trial

from .rows import HOSTILE, World
from .trials import Node0, exported, moved, succeeded

HI = [{"messages": [{"role": "user", "content": "hi"}]}]
FIXED = {"prompts": {"ask": ["one", [{"role": "user", "content": "two"}]], "max_new_tokens": 9}}


@pytest.fixture
def ready(world: World) -> Export:
    return exported(succeeded(world), world.nodes[0])


def ask(export: Export, *models: Export | None, **how: Any) -> Trial:
    return actions.ask(export.run, None, models or (None, export), **{"prompts": HI, "sampling": {}} | how)


def problems(call: Any, *args: Any, **how: Any) -> str:
    with pytest.raises(Refused) as refused:
        call(*args, **how)
    return str(refused.value)


def test_it_works(page: Client, world: World, ready: Export) -> None:
    run = ready.run
    text = page.get(f"/runs/{run.pk}/try/").content.decode()
    assert "step 4 · float32" in text
    form = {"prompt": "hi", "system": "Be short.", "models": ["base", str(ready.pk)], "max_new_tokens": "20"}
    answer = page.post(f"/runs/{run.pk}/try/ask", form)
    trial = Trial.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/runs/{run.pk}/try/{trial.pk}/")
    assert (trial.node, trial.requested_by, trial.sampling["max_new_tokens"]) == (world.nodes[0], world.user, 20)
    assert [turn["role"] for turn in trial.prompts[0]["messages"]] == ["system", "user"]
    assert [(a.model, a.export) for a in trial.answers.all()] == [(0, None), (1, ready)]
    told = Event.objects.get(source=f"trialstate@{trial.pk}")
    assert (told.kind, told.data["new"]) == ("trial", "queued")


def test_what_is_said_is_shown_as_it_comes_and_after_a_reload(page: Client, world: World, ready: Export) -> None:
    trial = moved(ask(ready), "preparing", "running")
    node, cursor = Node0(trial), trial.run.journal
    part = f"{trial.get_absolute_url()}part"
    assert page.get(part).content.decode().count("its turn comes") == 2
    node.write("model", model=0, state="loading")
    assert "loading the model" in page.get(part).content.decode()
    node.write("model", model=0, state="ready", device="cpu", why="", dtype="float32", bytes=9, seconds=1.5)
    node.token("Good ")
    node.token("day", tokens=2)
    for address in (part, trial.get_absolute_url()):
        text = page.get(address).content.decode()
        assert "Good day</div>" in text
        assert "float32 on cpu" in text
    assert {"trial", "answers"} == set(batch(trial.told_in.run_id, cursor)["changed"])
    node.answer("Good day.")
    node.token("too late")
    moved(trial, "answered", reason=Reason.COMPLETED)
    text = page.get(part).content.decode()
    assert "Good day.</div>" in text
    assert "2.5 tokens/s · first after 0.5 s" in text
    assert "came to its end" in text
    assert "cancel-trial" not in text


def test_hostile_words_are_only_words(page: Client, world: World, ready: Export) -> None:
    prompt = [{"messages": [{"role": "user", "content": HOSTILE}]}]
    trial = moved(ask(ready, prompts=prompt), "preparing", "running")
    node = Node0(trial)
    node.token(f"<script>alert(1)</script>{HOSTILE}\ud800\x00\x1b[31m")
    node.answer("</div><script>alert(2)</script>\u202e" + "x" * 9000, model=1)
    moved(trial, "failed", reason=Reason.RANK_FAILED, text=f"why {HOSTILE}")
    for address in (trial.get_absolute_url(), f"/runs/{trial.run.pk}/try/history", f"/runs/{trial.run.pk}/"):
        text = page.get(address).content.decode()
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    text = page.get(f"{trial.get_absolute_url()}part").content.decode()
    assert "\\ud800\\x00␛[31m" in text
    assert f"all {9000 + len('</div><script>alert(2)</script>') + 1} characters" in text


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("token", {"model": 0, "prompt": 0, "text": 5, "tokens": 1}),
        ("token", {"model": -1, "prompt": 0, "text": "x", "tokens": 1}),
        ("token", {"model": 0, "prompt": 0, "text": "x" * 100_001, "tokens": 1}),
        ("answer", {"model": 0, "prompt": 0, "text": "x", "tokens": 1, "stopped_by": "magic"}),
        ("answer", {"model": 0, "prompt": 0, "text": "x", "tokens": 1, "stopped_by": "eos", "seconds": "NaN"}),
        ("model", {"model": 0, "state": "ready", "device": ["x"]}),
        ("model", {"model": 70_000, "state": "ready"}),
    ],
)
def test_a_line_that_makes_no_sense_means_nothing(world: World, ready: Export, kind: str, data: Any) -> None:
    trial = ask(ready)
    Node0(trial).write(kind, **data)
    assert Event.objects.get(source=f"trial@{trial.pk}").data["problem"]
    trial.refresh_from_db()
    assert not any("state" in one for one in trial.asked)
    assert set(trial.answers.values_list("text", "stopped_by")) == {("", "")}


def test_it_rejects(world: World, ready: Export) -> None:
    run, other = ready.run, exported(succeeded(world), world.nodes[0])
    away = exported(succeeded(world), world.nodes[0])
    Export.objects.filter(pk=away.pk).update(checkpoint=ready.checkpoint, node=world.nodes[1])
    away.refresh_from_db()
    assert "none is chosen" in problems(actions.ask, run, None, [], HI, {})
    assert "export %d is no ready export" % other.pk in problems(ask, ready, other)  # noqa: UP031
    assert "one is named twice" in problems(ask, ready, None, None)
    assert "5 are chosen" in problems(ask, ready, *[None] * 5)
    assert f"export {ready.pk} is on alpha and export {away.pk} is on beta. Send one" in problems(
        ask, ready, ready, away
    )
    both = problems(ask, ready, sampling={"max_new_tokens": 5000}, prompts=[{"text": " "}], seconds=0.5)
    assert "sampling.max_new_tokens" in both
    assert "prompts.1" in both
    assert "seconds: 0.5 is not between" in both
    world.nodes[0].in_service = False
    world.nodes[0].save()
    ready.refresh_from_db()
    assert "node alpha is out of service" in problems(ask, ready)
    assert "never launched" in problems(actions.ask, world.draft(), None, [None], HI, {})
    assert not Trial.objects.exists()


def test_a_copy_that_was_sent_is_asked_beside_the_other(world: World, ready: Export) -> None:
    away = exported(ready.checkpoint, world.nodes[1])
    target = {"kind": "path", "folder": "/models/away"}
    sent = Delivery.objects.create(export=away, to_node=world.nodes[0], target=target, place="n0", state="running")
    assert "Send one" in problems(ask, ready, ready, away)
    Delivery.objects.filter(pk=sent.pk).update(state="done")
    trial = ask(ready, away, ready)
    assert trial.node == world.nodes[0]
    assert [one["folder"] for one in trial.asked] == ["/models/away", str(ready.folder.model)]


def test_a_mistake_is_shown_where_it_was_made(page: Client, world: World, ready: Export) -> None:
    form = {"prompt": "keep me", "models": ["base", "99999"], "seconds": "soon"}
    answer = page.post(f"/runs/{ready.run.pk}/try/ask", form)
    text = answer.content.decode()
    assert (answer.status_code, "keep me" in text, "&#x27;soon&#x27; is no number" in text) == (422, True, True)
    text = page.post(f"/runs/{ready.run.pk}/try/ask", form | {"seconds": "9"}).content.decode()
    assert "this run has no export &#x27;99999&#x27;" in text


def test_every_empty_page_says_what_to_do(page: Client, world: World) -> None:
    assert "Launch it" in page.get(f"/runs/{world.draft().pk}/try/").content.decode()
    feed = world.running()
    text = page.get(f"/runs/{feed.run.pk}/try/").content.decode()
    assert "No export is ready yet" in text
    assert "Nothing yet" in text
    assert "ask something now" in page.get(f"/runs/{feed.run.pk}/part/answers").content.decode()


def test_the_base_alone_is_asked_where_no_run_is(world: World) -> None:
    feed = world.running()
    Claim.objects.create(node=world.nodes[0], attempt=feed.run.attempt)
    trial = actions.ask(feed.run, None, [None], HI, {})
    assert (trial.node, trial.asked) == (world.nodes[1], [{"name": "base", "export": None}])


def test_the_form_says_who_holds_the_node(page: Client, world: World, ready: Export) -> None:
    Claim.objects.create(node=world.nodes[0], attempt=ready.attempt)
    text = page.get(f"/runs/{ready.run.pk}/try/").content.decode()
    assert f"alpha (run {ready.run.pk} holds it: on its CPU, slowly)" in text


def test_one_at_a_time_answers_on_a_node(page: Client, world: World, ready: Export) -> None:
    first, second = ask(ready), ask(ready)
    assert list(queue.ahead_of(first)) == []
    assert list(queue.ahead_of(second)) == [first]
    moved(first, "preparing")
    assert f">trial {first.pk}</a>" in page.get(f"{second.get_absolute_url()}part").content.decode()
    with pytest.raises(IntegrityError), transaction.atomic():
        moved(second, "preparing")
    second.refresh_from_db()
    moved(first, "running", "answered")
    moved(second, "preparing")


def test_a_trial_is_cancelled_by_its_button(page: Client, world: World, ready: Export) -> None:
    trial = ask(ready)
    page.post(f"{trial.get_absolute_url()}cancel")
    trial.refresh_from_db()
    assert trial.cancel_asked_at is not None
    assert "Ending…" in page.get(f"{trial.get_absolute_url()}part").content.decode()
    moved(trial, "cancelled")
    assert "has ended" in page.post(f"{trial.get_absolute_url()}cancel", follow=True).content.decode()


def test_a_run_of_texts_is_asked_with_a_text(world: World, ready: Export, page: Client) -> None:
    run = ready.run
    run.recipe["data"]["format"] = "text"
    run.save()
    page.post(f"/runs/{run.pk}/try/ask", {"prompt": "def ", "system": "x", "models": ["base"]})
    assert Trial.objects.get().prompts == [{"text": "def "}]
    assert "Text to go on with" in page.get(f"/runs/{run.pk}/try/").content.decode()


def test_fixed_prompts_are_put_to_each_export_and_once_to_the_base(page: Client, world: World) -> None:
    checkpoint = succeeded(world, **FIXED)
    first = exported(checkpoint, world.nodes[0])
    trial = Trial.objects.get()
    assert (trial.kind, trial.requested_by, trial.sampling["max_new_tokens"]) == ("fixed", world.user, 9)
    assert [p["messages"][0]["content"] for p in trial.prompts] == ["one", "two"]
    assert [one["export"] for one in trial.asked] == [None, first.pk]
    moved(trial, "preparing", "running")
    node = Node0(trial)
    for model, prompt in ((0, 0), (0, 1), (1, 0), (1, 1)):
        node.answer(f"said {model}{prompt}", model, prompt)
    moved(trial, "answered")
    second = exported(checkpoint, world.nodes[1], dtype="bfloat16")
    assert [one["export"] for one in Trial.objects.get(pk=trial.pk + 1).asked] == [second.pk]
    assert actions.fixed(first) is None
    text = page.get(f"/runs/{trial.run.pk}/part/answers").content.decode()
    assert text.index("said 00") < text.index("said 10") < text.index("said 01") < text.index("said 11")
    assert "bfloat16" in text
    assert choice.name_of(first) in text
    alone = page.get(first.get_absolute_url()).content.decode()
    assert "said 10" in alone
    assert choice.name_of(second) not in alone
    chosen = page.get(f"/runs/{first.run.pk}/try/?export={first.pk}").content.decode()
    assert f'value="{first.pk}" checked' in chosen
    assert f'value="{second.pk}" checked' not in chosen


def test_fixed_prompts_are_asked_again_where_they_failed(page: Client, world: World) -> None:
    checkpoint = succeeded(world, **FIXED)
    export = exported(checkpoint, world.nodes[0])
    moved(Trial.objects.get(), "failed", reason=Reason.LAUNCH)
    page.post(f"/runs/{export.run.pk}/try/fixed", {"export": str(export.pk)})
    assert [trial.state for trial in Trial.objects.order_by("pk")] == ["failed", "queued"]
    assert Answer.objects.filter(export=None).count() == 4


def test_a_run_without_prompts_asks_nobody(world: World, ready: Export) -> None:
    assert not Trial.objects.exists()
    assert actions.fixed(ready) is None


def test_a_cancel_of_a_trial_is_any_jobs(world: World, ready: Export) -> None:
    trial = ask(ready)
    run_actions.cancel(trial, "ada")
    told = Event.objects.filter(source=f"trialstate@{trial.pk}").order_by("number").last()
    assert told is not None
    assert told.data["asked"] == "cancel"
