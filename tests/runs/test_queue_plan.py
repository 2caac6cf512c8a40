"""The queue's rule, without a row: who gets which GPUs, what the others wait for, and that nobody waits for ever."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from training.spec.lint import Refused
from webapp.runs.queue import words
from webapp.runs.queue.plan import Ask, Holder, Placed, Seat, Waits, plan, pool
from webapp.runs.queue.wish import Wish, shown, typed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def seat(key: int, gpus: int = 4, **more: object) -> Seat:
    return Seat(key, f"n{key}", gpus, **more)  # type: ignore[arg-type]


def held(run: int, *gpus: int) -> dict[int, Holder]:
    return dict.fromkeys(gpus, Holder(run, NOW - timedelta(hours=3)))


def ask(run: int, nodes: int | None = None, gpus: int | None = None, **more: object) -> Ask:
    return Ask(run, Wish(nodes, gpus), **more)  # type: ignore[arg-type]


def said(seats: list[Seat], *asks: Ask) -> list[object]:
    """Return for each run the GPUs that it gets, or the sentence that it waits with."""
    found = plan(seats, asks).values()
    return [one.gpus if isinstance(one, Placed) else words.sentence(one, NOW) for one in found]


def test_runs_share_a_node_gpu_by_gpu() -> None:
    assert said([seat(1)], ask(7, 1, 1), ask(8, 1, 2), ask(9, 1, 2)) == [
        {1: (0,)},
        {1: (1, 2)},
        "waits for 2 GPUs on 1 node: n1 kept for run 7, 8",
    ]


def test_what_a_run_waits_for_is_said_node_by_node() -> None:
    drained = "is drained by ada: fan"
    two = [seat(1, held=held(12, 0, 1, 2, 3)), seat(2, out=drained)]
    need = "waits for 4 GPUs on each of 2 nodes"
    assert said(two, ask(7, 2, 4)) == [f"{need}: 1 node in service could take it, n2 {drained}"]
    assert said([*two, seat(3)], ask(7, 2, 4)) == [f"{need}: n1 held by run 12 (3 h)"]
    assert said(two, ask(7)) == ["waits for all GPUs of 1 node: n1 held by run 12 (3 h)"]
    paused = replace(ask(7), paused="waits: the queue is paused by ada: new switch")
    assert said(two, paused) == ["waits: the queue is paused by ada: new switch"]
    assert said(two, ask(7, rests_until=NOW + timedelta(minutes=5))) == [
        "rests before its restart, which begins in 5 min"
    ]


def test_a_restart_does_without_the_node_that_failed_where_another_is_free() -> None:
    seats = [seat(1), seat(2), seat(3)]
    again = ask(7, 2, avoid=frozenset({1}))
    assert said(seats, again) == [{2: (0, 1, 2, 3), 3: (0, 1, 2, 3)}]
    assert said([seat(1), seat(2), seat(3, held=held(9, 0))], again) == [{1: (0, 1, 2, 3), 2: (0, 1, 2, 3)}]
    assert said(seats, ask(7, avoid=frozenset({1}))) == [dict.fromkeys((1, 2, 3), (0, 1, 2, 3))]  # all are asked for


def test_a_run_behind_gets_only_what_those_before_it_cannot_use() -> None:
    seats = [seat(1, held=held(3, 0)), seat(2), seat(3, held=held(4, 0, 1))]
    big, small = ask(7, 2, 4), ask(8, 1, 2)
    assert said(seats, big, small) == [
        "waits for 4 GPUs on each of 2 nodes: n1 held by run 3 (3 h)",
        {3: (2, 3)},  # not n2, which is free and kept
    ]
    assert said(seats, small, big)[0] == {3: (2, 3)}  # the fullest that fits, so that whole nodes stay whole


def test_who_waits_for_a_node_to_come_back_or_rests_holds_nobody_up() -> None:
    seats = [seat(1), seat(2, out="is drained")]
    later = ask(7, 1, rests_until=NOW + timedelta(hours=1))
    assert said(seats, ask(6, 2), later, ask(8, 1))[2] == {1: (0, 1, 2, 3)}


def test_nodes_of_one_kind_the_named_and_labelled_and_those_that_hold_the_checkpoint() -> None:
    mixed = [seat(1, 2), seat(2, 8), seat(3, 2), seat(4, 64, accelerator=False)]
    assert said(mixed, ask(7, 2)) == [{1: (0, 1), 3: (0, 1)}]
    assert said(mixed, ask(7, 1)) == [{2: tuple(range(8))}]
    assert said(mixed, ask(7, 3, 2)) == [{1: (0, 1), 2: (0, 1), 3: (0, 1)}]
    fast = [seat(1), seat(2, labels=frozenset({"ib", "fast"})), seat(3, labels=frozenset({"fast"}))]
    assert said(fast, Ask(7, Wish(labels=("fast",)))) == [{2: (0, 1, 2, 3), 3: (0, 1, 2, 3)}]
    assert said(fast, Ask(7, Wish(1, 1, on_nodes=("n3", "n1")))) == [{1: (0,)}]
    assert said(fast, Ask(7, Wish(1, 1), prefer=frozenset({3}))) == [{3: (0,)}]


@pytest.mark.parametrize("seed", range(20))
def test_nobody_holds_a_gpu_twice_and_the_largest_run_starts_while_small_ones_come_without_end(seed: int) -> None:
    chance = random.Random(seed)
    seats = {key: seat(key, chance.choice([2, 4, 8])) for key in range(chance.randint(2, 5))}
    large = ask(0) if seed % 2 else ask(0, len(seats) - 1, min(one.gpus for one in seats.values()))
    asks: list[Ask] = []
    running: dict[int, dict[int, tuple[int, ...]]] = {}
    for turn in range(2000):
        asks.append(large if turn == 50 else ask(turn + 1, 1, 1))
        chosen = plan([_with(one, running) for one in seats.values()], asks)
        now = {run: verdict.gpus for run, verdict in chosen.items() if isinstance(verdict, Placed)}
        running |= dict(list(now.items())[-1:])  # workers come late, one by one, the last of the queue first
        taken = [(key, gpu) for run in running.values() for key, gpus in run.items() for gpu in gpus]
        assert len(taken) == len(set(taken))
        asks = [one for one in asks if one.run not in running][:40]
        if 0 in running:
            return
        if running and (not now or chance.random() < 0.8):
            del running[chance.choice(list(running))]
    raise AssertionError(words.sentence(chosen[0], NOW))


def _with(one: Seat, running: dict[int, dict[int, tuple[int, ...]]]) -> Seat:
    return replace(one, held={g: Holder(run, NOW) for run, has in running.items() for g in has.get(one.key, ())})


def test_a_wish_that_the_nodes_cannot_meet_is_refused_with_a_way_out() -> None:
    seats = [seat(1), seat(2, 2), seat(3, out="is drained by ada: fan")]

    def why(wish: Wish) -> str:
        problems = words.problems(wish, pool(wish, seats), [one.name for one in seats])
        return " ".join(f"{problem.field}: {problem.reason}" for problem in problems)

    assert why(Wish()) == why(Wish(2, 2)) == ""
    assert why(Wish(gpus_per_node=4)) == ("gpus_per_node: 4 are asked for: 1 node in service could take it (n2 has 2)")
    assert why(Wish(3, 1)) == (
        "nodes: 1 GPU on each of 3 nodes are asked for: 2 nodes in service could take it; n3 is drained by ada: fan"
    )
    assert why(Wish(on_nodes=("n1", "n9"))) == "on_nodes: the cluster has no node n9"
    assert why(Wish(labels=("fast",))) == "labels: it has no node in service with the label fast"


def test_a_wish_is_typed_and_shown_alike_and_refused_field_by_field() -> None:
    wish = Wish(2, 4, ("ib", "fast"), ("n1", "n2"))
    assert typed(shown(wish)) == wish
    assert Wish.of(wish.as_json()) == wish
    assert typed({}) == Wish.of({}) == Wish()
    with pytest.raises(Refused) as refused:
        typed({"nodes": "two", "gpus_per_node": "0", "labels": "a;b", "on_nodes": "$(x)"})
    assert [problem.field for problem in refused.value.problems] == ["nodes", "gpus_per_node", "labels", "on_nodes"]
    with pytest.raises(Refused, match="named"):
        typed({"nodes": "2", "on_nodes": "n1"})


def test_a_wait_knows_what_is_in_its_way() -> None:
    verdict = plan([seat(1, held=held(3, 0))], [ask(7, 1)])[7]
    assert isinstance(verdict, Waits)
    assert verdict.blocks[0].held[0].run == 3
