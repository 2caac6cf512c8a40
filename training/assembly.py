"""From what was read to the Trainer: the model as it is trained, and what watches over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl import SFTConfig

from . import method
from .data import Prepared
from .journal import Journal
from .loading.callback import Readback
from .loading.model import Loaded
from .ranks import Ranks
from .saving.progress import Origin, moved_by
from .saving.restored import Resume
from .saving.room import Room, trained
from .saving.saver import Saver
from .saving.watch import SaveWatch
from .spec.recipe import Recipe
from .trainer import Sft
from .watch.brake import Brake
from .watch.finish import FinishLine
from .watch.meter import Meter
from .watch.narrator import Narrator
from .watch.pulse import Pulse


@dataclass(frozen=True)
class Stage:
    """Where this rank trains, and with whom. `patient`: the same ranks, who wait for hours while models are read.

    `story`: the first rank's journal, None on the others.
    """

    accelerator: bool
    args: SFTConfig
    patient: Ranks
    ranks: Ranks
    story: Journal | None
    pulse: Pulse


@dataclass(frozen=True)
class Material:
    """What is trained, and on what."""

    recipe: Recipe
    tokenizer: PreTrainedTokenizerBase
    rows: Prepared
    loaded: Loaded


def assembled(material: Material, stage: Stage, brake: Brake, saver: Saver, resume: Resume | None) -> Sft:
    """Return the Trainer, with the model not yet sharded. Raises Refused."""
    recipe, loaded, rows = material.recipe, material.loaded, material.rows
    model, watchers = method.prepared(loaded.model, recipe, stage.ranks, brake)
    meter = Meter(stage.ranks, stage.pulse, gpu=stage.accelerator)
    known = facts(model, stage.ranks) | method.facts(model, recipe) | meter.facts()
    return Sft(
        model=model,
        args=stage.args,
        processing_class=material.tokenizer,
        train_dataset=rows.train(),
        eval_dataset=rows.test(),
        callbacks=[*companions(material, stage, saver, model, known), brake, *watchers, *narrators(stage, known)],
        saver=saver,
        resume=resume,
        origin=Origin(data=rows.tokens.path.name, model=loaded.identity, optimisation=moved_by(recipe.optimisation)),
        brake=brake,
        meter=meter,
        story=stage.story,
    )


def companions(
    material: Material, stage: Stage, saver: Saver, model: PreTrainedModel, known: dict[str, Any]
) -> list[TrainerCallback]:
    """Return what goes along with each run, in the order in which it is asked at each step."""
    recipe = material.recipe
    return [
        SaveWatch(saver, recipe.checkpoints.every_minutes, stage.ranks),
        Room(saver, trained(model), recipe, stage.ranks, stage.story),
        FinishLine(recipe),
        Readback(material.loaded, stage.ranks, known),
    ]


def narrators(stage: Stage, known: dict[str, Any]) -> list[TrainerCallback]:
    """Return who tells the story, last of all: nobody on any rank but the first."""
    return [Narrator(stage.story, known)] if stage.story else []


def facts(model: PreTrainedModel, ranks: Ranks) -> dict[str, Any]:
    """Return what is only known before sharding, and where training runs."""
    return {
        "world_size": ranks.world_size,
        "nodes": ranks.nodes,
        "parameters": model.num_parameters(),
        "trainable": model.num_parameters(only_trainable=True),
    }
