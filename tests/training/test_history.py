"""What attempts' lines say of the weights in a checkpoint."""

from __future__ import annotations

from training.spec import history
from training.spec.events import Kind
from training.spec.history import Line
from training.spec.passport import Loss


def lines(*losses: float, start: float, after: int = 0) -> list[Line]:
    metrics = [Line(Kind.METRICS, after + n, start + n, {"loss": loss}) for n, loss in enumerate(losses, 1)]
    return [Line(Kind.STARTED, None, start, {"world_size": 2}), *metrics]


def saved(step: int, at: float) -> Line:
    return Line(Kind.CHECKPOINT, step, at, {"node_rank": 0})


def test_what_came_after_the_checkpoint_does_not_count():
    first = history.told([*lines(5.0, 4.0, 0.5, start=100.0), saved(2, 103.0), saved(3, 104.0)], 2)
    resumed = Line(Kind.RESUMED, 2, 200.0, {"parts": {"weights": "restored"}})
    evaluated = Line(Kind.EVALUATION, 4, 204.0, {"loss": 2.5})
    second = history.told([resumed, *lines(3.0, 2.0, start=201.0, after=2), evaluated, saved(4, 207.5)], 4)
    found = history.losses([first, second])
    assert (found.first, found.last, found.lowest) == (
        Loss(step=1, loss=5.0), Loss(step=4, loss=2.0), Loss(step=4, loss=2.0)
    )  # fmt: skip
    assert found.best_evaluation == found.last_evaluation == Loss(step=4, loss=2.5)
    assert history.cost([first, second], 70).seconds == 3.0 + 6.5
    assert (second.resumed_step, second.resumed["parts"]) == (2, {"weights": "restored"})


def test_a_loss_that_is_no_number_is_told_and_never_the_lowest():
    told = history.told(lines(1.0, float("nan"), start=0.0), 2)
    found = history.losses([told])
    assert found.last == Loss(step=2, loss="NaN")
    assert found.lowest == Loss(step=1, loss=1.0)


def test_nothing_is_known_of_nothing():
    assert history.losses([]) == history.losses([history.told([], 5)])
    assert history.cost([history.told(lines(1.0, start=0.0), 1)]).seconds is None
