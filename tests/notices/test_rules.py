"""The rules alone: numbers in, verdicts out."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from webapp.notices.kinds import Kind
from webapp.notices.rules import hosts, lines
from webapp.notices.rules.holding import GAP, Since, hold
from webapp.notices.rules.hosts import NodeSamples, Sample
from webapp.notices.rules.lines import Losses, MetricsLine
from webapp.notices.rules.memory import Memory
from webapp.notices.rules.verdict import Level, Verdict

BAD, UNSURE, GOOD = Level.BAD, Level.UNSURE, Level.GOOD


def of(*losses: float, after: int = 0, name: str = "loss") -> list[MetricsLine]:
    return [MetricsLine(after + i, after + i, after + i, {name: loss}) for i, loss in enumerate(losses, 1)]


@pytest.mark.parametrize(("value", "word"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
@pytest.mark.parametrize("name", ["loss", "grad_norm"])
def test_one_number_that_is_not_finite_is_enough(value: float, word: str, name: str) -> None:
    (found,) = lines.non_finite(of(1.0, value, 2.0, name=name))
    assert (found.key, found.level, found.figure) == (name, BAD, word)
    assert (found.first, found.last) == (2, 3)
    assert "at step 2" in found.text
    assert [v.level for v in lines.non_finite(of(1.0, name=name))] == [GOOD]
    assert lines.non_finite([]) == lines.non_finite(of(1.0, name="learning_rate")) == []


def noisy(count: int, seed: int, level: float = 2.0, heavy: float = 0.3) -> list[float]:
    chance = random.Random(seed)
    return [level * math.exp(chance.gauss(0, heavy)) for _ in range(count)]


def test_noise_is_no_spike_and_a_spike_is_one() -> None:
    """50,000 steps of heavy-tailed noise, and a loss that falls from 11 as at a run's beginning."""
    falling = [2.0 + 9.0 * math.exp(-i / 30) for i in range(200)]
    for losses in (*(noisy(10_000, seed) for seed in range(5)), falling, [2.0] * 100):
        found, memory = lines.spike(of(*losses), Losses())
        assert found is not None
        assert (found.level, memory.over) == (GOOD, None)
        found, _ = lines.spike(of(90.0), memory)
        assert found is not None
        assert (found.level, found.figure) == (BAD, "90")


def test_the_limit_is_the_one_of_the_docstring() -> None:
    window = (1.0, 2.0, 3.0, 4.0, 5.0) * 6  # median 3, MAD 1
    limit = 3.0 + 10.0 * 1.4826
    for loss, level in ((limit - 0.01, GOOD), (limit + 0.01, BAD)):
        found, memory = lines.spike(of(loss), Losses(window))
        assert found is not None
        assert found.level == level
        assert memory.over == (pytest.approx(3.0 + 5.0 * 1.4826) if level == BAD else None)
    found, _ = lines.spike(of(9e9), Losses(window[:29]))
    assert found is not None
    assert found.level == GOOD, "too few losses to say"


def test_a_loss_that_stays_up_stays_a_spike_and_ends_where_it_comes_down() -> None:
    calm = Losses(tuple(noisy(100, 1, heavy=0.05)))
    found, up = lines.spike(of(9.0, 9.1, math.nan, 9.2), calm)
    assert found is not None
    assert (found.level, found.figure) == (BAD, "9.2")
    assert "not come back down yet" in found.text
    assert up.window == calm.window, "what is up there is not the measure of what comes"
    found, up = lines.spike(of(*[9.0] * 100), up)
    assert found is not None
    assert found.level == BAD
    found, down = lines.spike(of(9.0, 2.0), up)
    assert found is not None
    assert (found.level, down.over) == (BAD, None)
    assert "it came back down" in found.text
    found, _ = lines.spike(of(2.0), down)
    assert found is not None
    assert found.level == GOOD
    assert lines.spike(of(math.nan), down) == (None, down)


@pytest.mark.parametrize(
    ("idle", "between", "hang", "level"),
    [
        (600, [], 600, GOOD), (601, [], 600, BAD), (601, [1.0], 600, BAD), (601, [300.0, 1.0, 300.0], 600, GOOD),
        (901, [300.0, 1.0, 300.0], 600, BAD), (11, [1.0], 10, BAD),
    ],
)  # fmt: skip
def test_the_longer_of_two_limits_counts(idle: float, between: list[float], hang: float, level: Level) -> None:
    found = lines.progress(1000 + idle, 1000, 7, between, hang)
    assert found.level == level
    assert (found.first == 1000) is (level == BAD)


def samples(*gpu: dict[str, Any], **data: Any) -> NodeSamples:
    seen = [Sample(i, {"gpus": [{"index": 3, **one}], **data}) for i, one in enumerate(gpu)]
    return NodeSamples("alpha", seen or [Sample(0, data)])


@pytest.mark.parametrize(
    ("gpus", "kind", "level"),
    [
        ([{"load": 0.0}, {"load": 0.04}], Kind.IDLE, BAD),
        ([{"load": 0.0}, {"load": 0.06}], Kind.IDLE, UNSURE),
        ([{"load": 0.0}, {"load": 0.9}], Kind.IDLE, GOOD),
        ([{"temperature": 84.0}], Kind.HEAT, GOOD),
        ([{"temperature": 86.0}], Kind.HEAT, UNSURE),
        ([{"temperature": 60}, {"temperature": 90}], Kind.HEAT, BAD),
        ([{"temperature": 60, "throttle": 0x04}], Kind.HEAT, GOOD),
        ([{"temperature": 60, "throttle": 0x20}], Kind.HEAT, BAD),
        ([{"throttle": 0x40}], Kind.HEAT, BAD),
    ],
)
def test_a_gpu(gpus: list[dict[str, Any]], kind: Kind, level: Level) -> None:
    (found,) = hosts.of_node(samples(*gpus))
    assert (found.kind, found.key, found.level) == (kind, "alpha GPU 3", level)


def test_what_a_gpu_does_not_know_is_no_news_and_others_gpus_are_not_ours() -> None:
    assert hosts.of_node(samples({"load": None, "temperature": None, "throttle": None, "power": True})) == []
    seen = samples({"load": 0.0})
    assert hosts.of_node(seen._replace(gpus=frozenset({1, 2}))) == []
    assert hosts.of_node(NodeSamples("alpha", [])) == []


@pytest.mark.parametrize(
    ("free", "total", "level"),
    [
        (19e9, 100e9, BAD), (21e9, 100e9, UNSURE), (26e9, 100e9, GOOD), (100e9, 4000e9, BAD), (240e9, 4000e9, UNSURE),
        (300e9, 4000e9, GOOD),
    ],
)  # fmt: skip
def test_a_disk(free: float, total: float, level: Level) -> None:
    (found,) = hosts.of_node(samples(disk_free=free, disk_total=total))
    assert (found.kind, found.key, found.level) == (Kind.DISK, "alpha", level)
    assert hosts.of_node(samples(disk_free=None, disk_total=total)) == []


def verdict(level: Level, first: float, last: float, kind: Kind = Kind.IDLE) -> Verdict:
    return Verdict(kind, "x", level, first, last)


def test_what_lasts_begins_and_what_is_over_for_long_enough_ends() -> None:
    since = None
    for at in range(0, 300, 15):
        held = hold(verdict(BAD, at, at + 14), since, is_open=False)
        assert held.begins is None
        since = held.since
    assert hold(verdict(BAD, 300, 314), since, is_open=False).begins == 0
    assert hold(verdict(GOOD, 0, 14), None, is_open=True) == (None, False, Since(0, 14))
    assert hold(verdict(GOOD, 15, 30), Since(0, 14), is_open=True).ends


@pytest.mark.parametrize("level", [UNSURE, GOOD])
def test_what_is_bad_now_and_then_never_begins(level: Level) -> None:
    assert hold(verdict(level, 290, 304), Since(0, 289), is_open=False).since is None


def test_what_is_good_now_and_then_never_ends() -> None:
    for level in (UNSURE, BAD):
        assert hold(verdict(level, 15, 29), Since(0, 14), is_open=True) == (None, False, None)


def test_a_gap_is_no_proof_of_what_lasts_but_seldom_steps_end_it_too() -> None:
    assert hold(verdict(BAD, 300 + GAP, 301 + GAP), Since(0, 299), is_open=False).since == Since(300 + GAP, 301 + GAP)
    assert hold(verdict(GOOD, 500, 500, Kind.SPIKE), Since(0, 0), is_open=True).ends


def test_memory_comes_back_as_it_was() -> None:
    before = Memory(5.0, losses=Losses((1.0, 2.0), 3.0), since={"spike loss": Since(1, 2)}).stepped_on(of(1, 2, 3))
    assert Memory.of(before.stored(), 99.0) == before
    assert (before.between, before.step, before.stepped) == ([1, 1], 3, 3)
    assert Memory.of({}, 99.0) == Memory(99.0)
