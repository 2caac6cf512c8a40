"""When a disk is full, held against histories; and how many bytes a checkpoint takes, held against real ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.test_retention import rule, rules
from training.spec.forecast import Course, Disk, disk_problem, outlook
from training.spec.foreseen import Saves
from training.spec.retention import Seen, judged
from training.spec.sections.checkpoints import Checkpoints

GB = 10**9


def test_it_says_when_the_disk_is_full() -> None:
    found = outlook(
        rule(keep_every=250),
        Course(steps=5000, step=1300, seconds=4.0),
        Disk(free=21 * GB, checkpoint=10 * GB, there=5),
    )
    assert (found.fits, found.after, found.full_at, found.seconds) == (False, 1750, 2000, 2800.0)
    assert found.sentence == "full after step 1,750: at most 20 at once and 150.0 GB more than now, of 21.0 GB free"


def test_it_says_that_it_fits() -> None:
    found = outlook(rule(), Course(steps=5000), Disk(free=41 * GB, checkpoint=10 * GB))
    assert found.fits
    assert found.sentence == "checkpoints fit: at most 4 at once and 40.0 GB more than now, of 41.0 GB free"


@pytest.mark.parametrize(
    ("fields", "course", "disk", "words"),
    [
        ({}, Course(500), Disk(9 * GB, 10 * GB), "no room for the first one"),
        ({}, Course(5000, step=5000), Disk(0, 10 * GB, there=3), "checkpoints fit: at most 3 at once and 0.0 MB"),
        ({}, Course(5000, step=4999), Disk(10 * GB, 10 * GB, there=3), "checkpoints fit"),
        ({}, Course(5000, step=4999), Disk(9 * GB, 10 * GB, there=3), "full after step 4,750"),
        ({}, Course(5000, step=4999), Disk(10 * GB, 10 * GB, there=4, beside=1), "checkpoints fit: at most 5"),
        ({}, Course(5000, step=4999), Disk(19 * GB, 10 * GB, there=3, export=20 * GB), "no room for the export after"),
        ({}, Course(5000, step=1000, since=1000), Disk(25 * GB, 10 * GB), "full after step 1,500"),
        ({"at_end": False}, Course(100), Disk(0, 10 * GB), "checkpoints fit: at most 0"),
    ],
)
def test_cases(fields: dict[str, Any], course: Course, disk: Disk, words: str) -> None:
    assert words in outlook(rule(**fields), course, disk).sentence


@given(rules(), st.integers(1, 60), st.integers(0, 25), st.data())
def test_no_history_is_full_before_it_is_told(section: Checkpoints, steps: int, room: int, data: st.DataObject) -> None:
    """Saved on a disk for `room` checkpoints, a save fails at the step that was told or later, never earlier."""
    since = data.draw(st.integers(0, steps - 1))
    saves = Saves(section, steps)
    there: list[Seen] = []
    full = 0
    for number in range(1, len(saves) + 1):
        if saves.at(number) <= since:
            continue
        if len(there) + 1 > room:
            full = saves.at(number)
            break
        there.append(Seen(saves.at(number), metric=data.draw(st.none() | st.floats(0, 9))))
        kept = {verdict.step for verdict in judged(there, section) if verdict.kept}
        there = [seen for seen in there if seen.step in kept]
    found = outlook(section, Course(steps, step=since, since=since), Disk(room, 1))
    assert not found.fits or not full
    assert not full or found.full_at <= full


@given(rules(), st.integers(1, 60), st.integers(0, 25))
def test_the_worst_history_is_full_when_it_is_told(section: Checkpoints, steps: int, room: int) -> None:
    saves = Saves(section, steps)
    there: list[Seen] = []
    full = 0
    for number in range(1, len(saves) + 1):
        if len(there) + 1 > room:
            full = saves.at(number)
            break
        at = saves.at(number)
        stays = section.keep_every and at % section.keep_every == 0
        there.append(Seen(at, metric=None if stays else float(number)))
        kept = {verdict.step for verdict in judged(there, section) if verdict.kept}
        there = [seen for seen in there if seen.step in kept]
    found = outlook(section, Course(steps), Disk(room, 1))
    assert (found.fits, found.full_at) == (not full, full)


def test_only_what_clearly_does_not_fit_is_refused() -> None:
    def refused(free: int, steps: int = 5000, since: int = 0, **fields: Any) -> bool:
        return disk_problem("n0", rule(**fields), Course(steps, since=since), Disk(free, 10 * GB)) is not None

    assert not refused(20 * GB)
    assert not refused(19 * GB)  # an estimate may be that much too large
    assert refused(18 * GB)
    assert not refused(10 * GB, steps=250)  # one save in all
    assert refused(9 * GB, steps=250)
    assert refused(18 * GB, since=4500)
    assert not refused(10 * GB, since=4750)  # one save is left
    assert not refused(0, steps=100, at_end=False)
    problem = disk_problem("n0", rule(), Course(5000), Disk(18 * GB, 10 * GB))
    assert problem
    assert (
        problem.reason
        == "the last checkpoint and the one being written take 20.0 GB on node n0, which has 18.0 GB free"
    )
