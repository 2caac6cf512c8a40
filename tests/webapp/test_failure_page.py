"""A failed run's page: why, where first, what shows it, what was done and what to do."""

from __future__ import annotations

from django.test import Client

from training.spec.faults import Reason
from webapp.runs import actions, lifecycle
from webapp.runs.models import Placement, Run
from webapp.runs.states import RunState

from .rows import HOSTILE, World

STACKS = "Thread 0x7f (most recent call first):\n  File a.py, line 3 in waits\n"


def failed(world: World, **overrides: object) -> Run:
    run = world.running(**overrides).run
    shown = {"log": [HOSTILE, "RuntimeError: CUDA out of memory"], "stacks": {"1": STACKS},
             "kernel": {"readable": True, "lines": ["NVRM: Xid 31"]}}  # fmt: skip
    Placement.objects.filter(rank=1).update(
        exit={"reason": "out_of_gpu_memory", "text": "CUDA out of memory", "code": 1, "rank": 1, "evidence": shown}
    )
    Placement.objects.filter(rank=0).update(exit={"reason": "peer_ended", "text": "Connection closed", "code": 1})
    failure = {"node": world.nodes[1].name, "node_rank": 1, "rank": 1, "at": 1_700_000_000.0, "dragged": [0]}
    lifecycle.move(
        run, RunState.FAILED, actor="worker", cause="node b: CUDA", reason=Reason.OUT_OF_GPU_MEMORY,
        text="node b: CUDA out of memory", failure=failure,
    )  # fmt: skip
    return run


def test_it_says_why_where_and_what_to_do(page: Client, world: World) -> None:
    run = failed(world, optimisation={"per_device_batch": 4, "accumulation": 2})
    text = page.get(f"/runs/{run.pk}/").content.decode()
    assert f'data-testid="failure-where">{world.nodes[1].name}, rank 1<' in text
    assert "2023-11-14 22:13:20 UTC" in text
    assert text.index('data-part="first"') < text.index('data-part="dragged"')
    assert "File a.py, line 3 in waits" in text
    assert "NVRM: Xid 31" in text
    assert "<img src=x" not in text
    assert "Not restarted: limits.restarts is 0." in text
    assert "<code>optimisation.per_device_batch</code>: <del" in text
    new = page.get(f"/runs/new/?from={run.pk}&advice=smaller-batch").content.decode()
    assert '<code>optimisation.per_device_batch</code>: <del class="text-secondary">4</del> → <ins>2</ins>' in new
    assert '<code>optimisation.accumulation</code>: <del class="text-secondary">2</del> → <ins>4</ins>' in new


def test_a_change_that_is_not_advised_is_not_made(page: Client, world: World) -> None:
    run = failed(world)
    new = page.get(f"/runs/new/?from={run.pk}&advice=slower").content.decode()
    assert "Clone of run" in new
    assert "In nothing but its name." in new


def test_a_restarted_run_says_why_it_was(page: Client, world: World) -> None:
    run = failed(world, limits={"restarts": 2})
    assert actions.restart(run, run.attempt) is not None
    text = page.get(f"/runs/{run.pk}/part/failure").content.decode()
    assert "Why attempt 1 failed" in text
    assert "Restarted 1 of 2 after 15 s, from the beginning." in text


def test_a_run_in_good_health_has_no_such_card(page: Client, world: World) -> None:
    text = page.get(f"/runs/{world.running().run.pk}/part/failure").content.decode()
    assert "What happened" not in text
