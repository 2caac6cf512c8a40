"""What a recipe asks of the trainer happens on real ranks: epochs, schedule, the last save, a tracker."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tensorboardX.proto.event_pb2 import Event

from tests.training import ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import Launch, of_kind, recipe
from training.saving import checkpoints
from training.spec.length import total_steps
from training.spec.plan import NodePlan

pytestmark = pytest.mark.ranks

ROWS = 60
ASKED = {
    "optimisation": {
        "optimizer": "adamw_torch_fused",
        "epochs": 1.5,
        "schedule": "linear",
        "warmup_steps": 2,
        "per_device_batch": 4,
        "accumulation": 2,
    },
    "checkpoints": {"every_steps": 4, "at_end": False},
    "trackers": {"names": ["tensorboard"]},
}


@pytest.fixture(scope="module")
def launch(attempts: Attempts) -> Launch:
    return attempts.launch("recipe", nodes=1, processes=2)


@pytest.fixture(scope="module")
def trained(launch: Launch) -> NodePlan:
    (plan,) = launch.plans(recipe(**ASKED))
    assert ranks_harness.run([plan]) == [0, 0], Path(plan.folder.log).read_text()
    return plan


def test_epochs_end_where_counted(trained: NodePlan) -> None:
    steps = total_steps(recipe(**ASKED), rows=ROWS, ranks=2)
    (started,) = of_kind(trained.folder, "started")
    (finished,) = of_kind(trained.folder, "finished")
    assert (steps, started.data["total_steps"], finished.step) == (6, 6, 6)


def test_the_learning_rate_is_the_planned_one(trained: NodePlan) -> None:
    rates = [e.data["learning_rate"] for e in of_kind(trained.folder, "metrics")]
    planned = [1e-3 * (step / 2 if step < 2 else (6 - step) / 4) for step in range(6)]
    assert all(map(math.isclose, rates, planned))
    assert len(rates) == 6


def test_without_a_last_save_only_the_regular_ones_are_there(launch: Launch, trained: NodePlan) -> None:
    assert checkpoints.steps(launch.scratch(0) / "runs/1/1/checkpoints") == [4]


def test_the_tracker_is_told_what_the_events_say(trained: NodePlan) -> None:
    told = scalars(Path(trained.folder.tensorboard))
    metrics = of_kind(trained.folder, "metrics")
    assert [step for step, _ in told["train/loss"]] == [e.step for e in metrics]
    for name in metrics[-1].data:  # what it costs as well
        values = [e.data[name] for e in metrics if name in e.data]
        shown = told[f"train/{name}"][: len(values)]  # the summary at the end names some of them once more
        assert [value for _, value in shown] == pytest.approx(values)
    assert not of_kind(trained.folder, "warning")
    assert not (Path(trained.folder.path).parent / "checkpoints" / "runs").exists()


def test_a_checkpoint_behind_the_end_is_refused_once_the_data_tells(launch: Launch, trained: NodePlan) -> None:
    shorter = recipe(**ASKED | {"optimisation": {**ASKED["optimisation"], "epochs": 1}})
    (plan,) = launch.plans(shorter, attempt=2, resume=(1, 4))
    assert ranks_harness.run([plan]) == [1, 1]
    (finished,) = of_kind(plan.folder, "finished")
    assert finished.data["reason"] == "configuration"
    assert "optimisation.epochs: the checkpoint is at step 4 and the run ends at step 4" in finished.data["text"]


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Read tensorboard's event files: length (8 bytes), its checksum (4), the event, its checksum (4), and so on."""
    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(folder.rglob("*tfevents*")):
        raw, at = path.read_bytes(), 0
        while at < len(raw):
            size = int.from_bytes(raw[at : at + 8], "little")
            event = Event.FromString(raw[at + 12 : at + 12 + size])
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
            at += size + 16
    return found
