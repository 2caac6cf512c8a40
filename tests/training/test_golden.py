"""Every preset rendered for fixed nodes, as golden text. To renew it: python -m tests.training.test_golden"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from training.spec import presets
from training.spec.job import TrainJob
from training.spec.plan import Launch, NodePlan, NodeSlot, Target, plan_attempt
from training.spec.presets import Preset
from training.spec.trainer import trainer_arguments

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = Target(model="/models/it's $(touch /tmp/x); `id`", dataset="d" * 64, revision="a b\n--config", has_test=True)
PLAIN = Target(model="/models/base", dataset="0123abcd" * 8, has_test=True)


def slots(preset: Preset, scratch: str) -> list[NodeSlot]:
    gpu = preset.processes == 8
    return [
        NodeSlot(f"node{n}", f"10.0.0.1{n}", "/opt/venv/bin/python", scratch, preset.processes, gpu, "eth0")
        for n in range(preset.nodes)
    ]


def rendered(preset: Preset, target: Target, scratch: str) -> str:
    launch = Launch(41, 2, 29501, "f" * 16, resume=(1, 250), env={"HF_TOKEN": "secret", "NAME": "a b'c"})
    plans = plan_attempt(preset.recipe, target, slots(preset, scratch), launch)
    return "".join([*map(_text, plans), _trainer(preset, plans[0])])


def _text(plan: NodePlan) -> str:
    parts = [f"##### {plan.node.name}, rank {plan.rank}: {plan.folder.path}\n"]
    parts += [f"argv {word!r}\n" for word in plan.argv]
    parts += [f"env {name}={value!r}\n" for name, value in sorted(plan.env.items())]
    parts += [f"--- {name}\n{text}" for name, text in plan.files.items()]
    return "".join(parts)


def _trainer(preset: Preset, plan: NodePlan) -> str:
    """The same on all nodes but for the folders."""
    job = TrainJob.model_validate_json(plan.files["recipe.json"])
    accelerator = plan.node.accelerator
    found = trainer_arguments(
        preset.recipe, checkpoints=job.checkpoints, evaluates=bool(job.test), accelerator=accelerator
    )
    return "##### the trainer's arguments\n" + yaml.safe_dump(found, sort_keys=False)


def cases() -> dict[str, str]:
    found = {name: rendered(presets.load(name), PLAIN, "/scratch") for name in presets.names()}
    return found | {"hostile": rendered(presets.load("tiny"), HOSTILE, "/scratch of $USER; rm -rf '~'")}


@pytest.mark.parametrize("name", [*presets.names(), "hostile"])
def test_it_is_as_in_the_golden_file(name: str) -> None:
    assert cases()[name] == (GOLDEN / f"{name}.txt").read_text("utf-8")


def test_no_secret_is_in_a_file_or_argument() -> None:
    for name in presets.names():
        plan = presets.load(name)
        for text in rendered(plan, PLAIN, "/scratch").splitlines():
            assert "secret" not in text or text == "env HF_TOKEN='secret'"


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for case, text in cases().items():
        (GOLDEN / f"{case}.txt").write_text(text, "utf-8")
