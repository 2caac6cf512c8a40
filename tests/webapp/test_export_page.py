"""An export's page, and its plan under the question whether to export."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone

from tests.webapp.rows import HOSTILE, START, Feed, World
from training.spec.events import Event as Line
from training.spec.exportplan import ExportPlan, Finding, PlannedFile, Reading, Seconds, Writing
from training.spec.faults import Reason
from webapp.runs import actions, expected, journal, lifecycle
from webapp.runs.models import Event, Export, Stream
from webapp.runs.states import ExportState

HASH = "0123456789abcdef" * 4
PLAN = ExportPlan(
    reading=Reading(checkpoint="checkpoint-2", step=2, files=5, bytes=2_200_000_000),
    writing=Writing(
        folder="/scratch/alpha/x", asked="base", dtype="bfloat16", tensors=9, bytes=1_100_000_000,
        files=(PlannedFile(name="model.safetensors", size=1_100_000_000),),
        sizes={"bfloat16": 1_100_000_000, "float16": 1_100_000_000, "float32": 2_200_000_000},
    ),
    seconds=Seconds(start=5, check=0, stream=20, prove=15),
)  # fmt: skip
NO_ROOM = Finding(field="out", why="2 bytes are needed and 1 is free", fix="Free space there.", reason="disk_full")


@pytest.fixture
def feed(world: World) -> Feed:
    feed = world.running()
    feed.checkpoint(2)
    return feed


def exporting(world: World, feed: Feed, plan: ExportPlan | None = PLAN, *states: ExportState, **more: Any) -> Export:
    """Return an export of the run that has gone through `states`, its node having said `plan`."""
    export = actions.export(feed.run, world.user)
    told = {"plan": plan.model_dump(mode="json"), "planned_at": timezone.now()} if plan else {}
    node = {"node": world.nodes[0], "slot": vars(world.nodes[0].slot())}
    Export.objects.filter(pk=export.pk).update(expected_seconds=40, **node, **told, **more)
    export.refresh_from_db()
    for state in states:
        assert lifecycle.move_job(export, state)
    return export


def begun(export: Export) -> None:
    """Have something of it put on its node."""
    Stream.objects.create(
        attempt=export.attempt, node=export.node, source=f"export@{export.pk}", path="/x",
        job_kind=export.KIND, job_id=export.pk,
    )  # fmt: skip


def waiting(world: World, feed: Feed, plan: ExportPlan) -> Export:
    return exporting(world, feed, plan, ExportState.PLANNING, ExportState.PLANNED, waits=True)


ON_THE_WAY = (ExportState.PLANNING, ExportState.GATHERING, ExportState.RUNNING)


def body(page: Client, address: str) -> str:
    answer = page.get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_it_works(page: Client, world: World, feed: Feed) -> None:
    began = timezone.now() - timedelta(seconds=100)
    export = exporting(world, feed, PLAN, *ON_THE_WAY, running_at=began, made_dtype="bfloat16")
    files = [
        {"name": name, "size": size, "sha256": HASH}
        for name, size in (("model.safetensors", 1_100_000_123), ("README.md", 9))
    ]
    proof = {"checks": [{"name": "compare", "passed": True, "detail": HOSTILE}], "largest_difference": 0.25,
             "to_masters": {"difference": 2.25, "largest": 33.5, "same": 23, "places": 24}}  # fmt: skip
    Export.objects.filter(pk=export.pk).update(files=files, bytes=1_100_000_132, proof=proof)
    assert lifecycle.move_job(export, ExportState.READY)
    Export.objects.filter(pk=export.pk).update(ended_at=began + timedelta(seconds=38))
    text = body(page, f"/exports/{export.pk}/")
    assert "made in 38 s (foretold: 40 s)" in text
    assert f'href="/api/v1/exports/{export.pk}/files/model.safetensors"' in text
    assert f"curl -fC - -o export-{export.pk}.tar" in text, "a refusal is not saved as bytes"
    assert "0.25 to the checkpoint in bfloat16, 2.25 to its own numbers in fp32" in text
    assert "at 23 of 24 places" in text
    assert HASH in text
    assert "bfloat16, as the base model" in text
    assert HOSTILE not in text
    assert f'hx-get="/exports/{export.pk}/card"' in text
    export.refresh_from_db()
    assert f"vllm serve {export.folder.model} --dtype bfloat16 --served-model-name export-{export.pk}" in text
    assert f"FROM {export.folder.model}" in text
    assert f'hx-get="/exports/{export.pk}/part"' not in text, "what has ended is not asked for again"


def test_one_that_runs_shows_bytes_of_its_phase_and_time_left(page: Client, world: World, feed: Feed) -> None:
    export = exporting(world, feed, PLAN, *ON_THE_WAY, running_at=timezone.now() - timedelta(seconds=10))
    assert "time left" not in body(page, f"/exports/{export.pk}/"), "before its first word there is nothing to tell"
    Export.objects.filter(pk=export.pk).update(phase="stream", done=550_000_000, total=1_100_000_000)
    text = body(page, f"/exports/{export.pk}/part")
    assert "550 MB of 1.1 GB" in text
    assert 'aria-valuemax="2200000000" aria-valuenow="550000000"' in text, "the bar is of all phases"
    assert "left" in text
    assert f'hx-get="/exports/{export.pk}/part"' in text
    assert "550 MB of 1.1 GB" in body(page, f"/runs/{feed.run.pk}/part/exports")


def test_why_it_can_not_work_is_told_with_the_way_out(page: Client, world: World, feed: Feed) -> None:
    broken = PLAN.model_copy(update={"problems": (NO_ROOM,)})
    export = exporting(world, feed, broken, ExportState.PLANNING, ExportState.FAILED)
    text = body(page, f"/exports/{export.pk}/")
    assert "2 bytes are needed and 1 is free. Free space there." in text
    assert "Plan again" in text
    page.post(f"/exports/{export.pk}/resume")
    export.refresh_from_db()
    assert (export.state, export.start) == ("queued", 1), "never started, it is planned once more"


def test_a_killed_one_is_resumed_in_its_folder(page: Client, world: World, feed: Feed) -> None:
    """Its worker died right after starting it, and had not said so: nothing but the streams tells that it began."""
    export = exporting(world, feed, PLAN, ExportState.PLANNING, ExportState.GATHERING, ExportState.FAILED)
    begun(export)
    page.post(f"/exports/{export.pk}/resume")
    export.refresh_from_db()
    assert (export.state, export.start) == ("queued", 2)
    answer = page.post(f"/exports/{export.pk}/resume")
    assert "Only one that failed can be resumed" in str(list(get_messages(answer.wsgi_request))[-1])


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (12_300_000_000, "12.3 GB stay on the disk of"),
        (0, "Resume starts over"),
        (None, "has not said what is left there"),
    ],
)
def test_what_a_resume_will_do_is_said(page: Client, world: World, feed: Feed, kept: int | None, said: str) -> None:
    export = exporting(world, feed, PLAN, ExportState.PLANNING, ExportState.GATHERING, ExportState.FAILED, kept=kept)
    begun(export)
    assert said in body(page, f"/exports/{export.pk}/")


def test_one_that_its_node_stopped_goes_on_by_itself(world: World, feed: Feed) -> None:
    """As a reboot does. What a person cancelled does not."""
    export = exporting(world, feed, PLAN, *ON_THE_WAY)
    begun(export)
    lifecycle.move_job(export, ExportState.FAILED, reason=Reason.STOPPED_UNSAVED)
    Export.objects.update(cancel_asked_at=timezone.now())
    assert actions.retry(export) is None
    Export.objects.update(cancel_asked_at=None)
    again = actions.retry(export)
    assert again
    assert (again.state, again.start, again.retried) == ("queued", 2, 1)


def test_what_a_failed_one_left_can_be_discarded(page: Client, world: World, feed: Feed) -> None:
    export = exporting(world, feed, PLAN, *ON_THE_WAY, ExportState.FAILED)
    assert 'data-testid="discard"' not in body(page, f"/exports/{export.pk}/"), "nothing of it was ever there"
    begun(export)
    assert 'data-testid="discard"' in body(page, f"/exports/{export.pk}/")
    page.post(f"/exports/{export.pk}/cancel")
    export.refresh_from_db()
    assert (export.state, export.cancel_asked_at is not None, export.start) == ("queued", True, 1)


def test_it_is_cancelled_once(page: Client, world: World, feed: Feed) -> None:
    export = exporting(world, feed, PLAN, *ON_THE_WAY)
    assert page.post(f"/exports/{export.pk}/cancel").url == f"/exports/{export.pk}/"  # type: ignore[attr-defined]
    export.refresh_from_db()
    assert export.cancel_asked_at
    Export.objects.update(phase="stream", done=1, total=2)
    text = body(page, f"/exports/{export.pk}/part")
    assert "Cancelling: it has ended when alpha has confirmed it." in text
    assert "time-left" not in text
    Export.objects.update(state="cancelled", ended_at=timezone.now(), reason_text="cancelled on request")
    assert "Cancelling" not in body(page, f"/exports/{export.pk}/"), "no message of the click outlives what it says"


def test_the_plan_is_asked_for_shown_in_place_and_started_by_the_same_button(
    page: Client, world: World, feed: Feed
) -> None:
    asked = {"dtype": "base", "adapter": "", "checkpoint": ""}
    text = page.post(f"/runs/{feed.run.pk}/export/plan", asked).content.decode()
    export = Export.objects.get()
    assert (export.waits, f'hx-get="/exports/{export.pk}/plan"' in text, "Asking" in text) == (True, True, True)
    assert "export-row" not in body(page, f"/runs/{feed.run.pk}/part/exports"), "it is none yet"
    page.post(f"/runs/{feed.run.pk}/export/plan", asked)
    assert Export.objects.count() == 1, "the same question has the same answer"
    page.post(f"/runs/{feed.run.pk}/export/plan", asked | {"dtype": "float32"})
    page.post(f"/runs/{feed.run.pk}/export/plan", asked)
    gone = Export.objects.exclude(cancel_asked_at=None).order_by("pk")
    assert [row.dtype for row in gone] == ["base", "float32"], "one question at a time"
    gone.delete()
    export = Export.objects.get()
    Export.objects.update(
        state="planned", plan=PLAN.model_dump(mode="json"), planned_at=timezone.now(), node=world.nodes[0]
    )
    text = body(page, f"/exports/{export.pk}/plan")
    assert "it can work" in text
    assert "<strong>bfloat16 1.1 GB</strong> · float16 1.1 GB · float32 2.2 GB" in text
    assert "every 1s" not in text
    page.post(f"/runs/{feed.run.pk}/export", asked)
    export.refresh_from_db()
    assert (Export.objects.count(), export.waits, export.state) == (1, False, "gathering")


def test_a_button_that_is_pressed_twice_makes_one_export(page: Client, world: World, feed: Feed) -> None:
    asked = {"checkpoint": feed.run.attempt.checkpoints.get().pk, "dtype": "float32"}
    for _ in range(2):
        page.post(f"/runs/{feed.run.pk}/export", asked)
    only = Export.objects.get()
    page.post(f"/runs/{feed.run.pk}/export", asked | {"dtype": "float16"})
    actions.cancel(only, "ada")
    page.post(f"/runs/{feed.run.pk}/export", asked)
    assert list(Export.objects.order_by("pk").values_list("dtype", flat=True)) == ["float32", "float16", "float32"]


def test_of_a_plan_that_waits_no_step_is_called_done_that_is_not(page: Client, world: World, feed: Feed) -> None:
    text = body(page, f"/exports/{waiting(world, feed, PLAN).pk}/")
    assert (text.count('class="step-done"'), text.count('class="step-come"')) == (2, 4)
    assert 'data-testid="start"' in text


def test_a_plan_that_can_not_work_is_not_started(page: Client, world: World, feed: Feed) -> None:
    export = waiting(world, feed, PLAN.model_copy(update={"problems": (NO_ROOM,)}))
    assert 'data-testid="start"' not in body(page, f"/exports/{export.pk}/")
    answer = page.post(f"/exports/{export.pk}/start")
    assert "Free space there" in str(next(iter(get_messages(answer.wsgi_request))))
    export.refresh_from_db()
    assert (export.state, export.waits) == ("planned", True)


def test_an_old_plan_is_made_again_before_it_starts(page: Client, world: World, feed: Feed) -> None:
    export = waiting(world, feed, PLAN)
    Export.objects.update(planned_at=timezone.now() - 2 * actions.exports.FRESH)
    page.post(f"/exports/{export.pk}/start")
    export.refresh_from_db()
    assert (export.state, export.waits) == ("queued", False)
    page.post(f"/exports/{export.pk}/start")
    assert Export.objects.count() == 1


def test_a_wrong_question_is_answered_in_place(page: Client, world: World, feed: Feed) -> None:
    text = page.post(f"/runs/{feed.run.pk}/export/plan", {"dtype": "int3"}).content.decode()
    assert "&#x27;int3&#x27; is not a number format of ours" in text


def test_the_passport_says_what_differs_from_the_preset(page: Client, world: World, feed: Feed) -> None:
    recipe = feed.run.recipe | {"precision": "bf16"}
    passport = {
        "composed_of": "rows", "run": {"id": 1, "name": HOSTILE, "preset": "tiny"}, "recipe": recipe,
        "model": {"location": "/models/tiny"}, "losses": {"last": {"step": 2, "loss": 1.25}},
        "checkpoint": {"name": "checkpoint-2", "step": 2, "nodes": 2, "world_size": 2},
        "attempts": [{"number": 1, "nodes": [{"rank": 0, "name": "alpha", "variables": ["HF_TOKEN"]}]}],
    }  # fmt: skip
    export = exporting(world, feed, PLAN, passport=passport)
    text = body(page, f"/exports/{export.pk}/")
    assert "bf16 (preset: fp32)" in text
    assert "1.25 at step 2" in text
    assert "HF_TOKEN (values hidden)" in text
    assert HOSTILE not in text
    Export.objects.update(passport={"format": 7})
    assert "are not as expected" in body(page, f"/exports/{export.pk}/")


def test_its_history_says_who_asked_for_what(page: Client, world: World, feed: Feed) -> None:
    export = waiting(world, feed, PLAN)
    page.post(f"/exports/{export.pk}/start")
    text = body(page, f"/exports/{export.pk}/")
    assert "started by ada" in text


def test_pages_of_none_are_404(page: Client, world: World) -> None:
    for address in ("", "part", "plan"):
        assert page.get(f"/exports/7/{address}").status_code == 404


class TestTimeLeft:
    """Of a plan of 5 s to start, 20 to write, 15 to prove."""

    def left(self, world: World, feed: Feed, *, ran: float, done: float, phase: str = "stream") -> float | None:
        now = timezone.now()
        export = exporting(
            world, feed, PLAN, *ON_THE_WAY, running_at=now - timedelta(seconds=ran), phase=phase,
            done=round(done * 1000), total=1000,
        )  # fmt: skip
        source = f"export@{export.pk}"
        stream = Stream.objects.create(attempt=export.attempt, node=world.nodes[0], source=source, path="/x")
        journal.record(stream, [Line(1, START, "warning", None, {})], 1)
        Event.objects.filter(source=source).update(received_at=now)
        found = expected.progress(export, now)
        assert found
        return found.left

    def test_on_time_it_is_what_was_foretold(self, world: World, feed: Feed) -> None:
        assert self.left(world, feed, ran=15, done=0.5) == pytest.approx(25)

    def test_shards_that_are_brought_are_counted_and_the_whole_time_is_told(self, world: World, feed: Feed) -> None:
        export = exporting(world, feed, PLAN, ExportState.PLANNING, ExportState.GATHERING)
        assert expected.progress(export) is None
        export.phase, export.done, export.total, export.expected_seconds = expected.GATHER, 250, 1000, 40
        source, at = f"exportstate@{export.pk}", timezone.now()
        Event.objects.filter(source=source).update(at=at - timedelta(seconds=10))
        found = expected.progress(export, at)
        assert found
        assert (found.word, found.here, found.whole, found.left) == ("bringing shards", 250, 1000, 70)

    def test_half_way_half_of_what_was_seen_is_believed(self, world: World, feed: Feed) -> None:
        # 37.5 % of the work took 30 s in place of 15: 80 s by what was seen, 40 by the plan
        assert self.left(world, feed, ran=30, done=0.5) == pytest.approx(40 * 0.625 + 80 * 0.375 - 30)

    def test_nothing_is_told_once_the_time_is_over(self, world: World, feed: Feed) -> None:
        assert self.left(world, feed, ran=100, done=0.0, phase="check") is None


def test_a_node_is_foretold_by_how_right_its_last_plans_were(world: World, feed: Feed) -> None:
    new = exporting(world, feed)
    assert expected.seconds(new, PLAN) == 40
    for took in (60, 80, 400):
        began = timezone.now() - timedelta(seconds=1000)
        ended = {"state": "ready", "running_at": began, "ended_at": began + timedelta(seconds=took)}
        Export.objects.filter(pk=exporting(world, feed).pk).update(**ended)
    assert expected.seconds(new, PLAN) == 80
    assert expected.seconds(new, ExportPlan()) is None
