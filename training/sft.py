"""Fine-tune: `python -m training sft <recipe.json>`, started by `accelerate launch` on every rank.

    accelerate launch --config_file <job>/accelerate.yaml -m training sft <job>/recipe.json

Reads spec.job.TrainJob; writes events into its `events` and checkpoints into its `checkpoints`. A file `stop`
beside the events ends it at the end of its step, with a save. Exit status: 0 completed or stopped, else 1;
the last event, `finished`, says why.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import datasets
import torch.distributed as dist
import transformers
from transformers import PreTrainedModel

from . import data, method
from .arguments import arguments
from .cpu_fsdp import accelerator_present, shard_on_cpu
from .endings import failed_rank, print_error, reason_for, sentence
from .journal import Journal
from .loading.attention import lost
from .loading.callback import Readback
from .loading.model import load_model
from .loading.place import place_model
from .loading.tokenizer import load_tokenizer
from .ranks import LOADING_HOURS, Ranks
from .same import ROWS, check_same, meant
from .saving.progress import Origin, moved_by
from .saving.resume import find_resume
from .saving.room import Room, trained
from .saving.saver import Saver
from .saving.watch import SaveWatch
from .spec.events import Kind
from .spec.faults import SENTENCES
from .spec.job import TrainJob
from .spec.lint import Problem, Refused, problems_on
from .trainer import Sft
from .watch.brake import Brake
from .watch.finish import FinishLine
from .watch.hang import HangWatch
from .watch.meter import Meter
from .watch.narrator import Narrator
from .watch.pulse import Pulse
from .watch.trackers import check_trackers, place_trackers, put_aside


def main(argv: list[str]) -> int:
    """Train; return the exit status."""
    try:
        (path,) = argv
        job = TrainJob.model_validate_json(Path(path).read_bytes())
    except (ValueError, OSError) as error:
        print(f"usage: python -m training sft <recipe.json>\n{error}", file=sys.stderr)
        return 2
    journal = Journal(job.events)
    try:
        pulse, limits = Pulse("loading"), job.recipe.limits
        with HangWatch(pulse, job.folder, own_rank(), limits.hang_seconds, limits.hang_end_seconds):
            return train(job, journal, pulse)
    # Whatever ended this rank is told before it is gone; a distributed save raises no Exception.
    except BaseException as error:  # noqa: BLE001
        print_error(error)
        journal.emit_first(
            Kind.FINISHED, reason=reason_for(error), text=sentence(error), rank=failed_rank(error, own_rank())
        )
        return 1


def own_rank() -> int:
    """Return this process's rank, as its launcher says it; known before the process group is up."""
    return int(os.environ.get("RANK", "0"))


def train(job: TrainJob, journal: Journal, pulse: Pulse) -> int:
    """Build, train, close; return the exit status. Raises what ended it."""
    accelerator = check_launch(job)
    story = journal if os.environ.get("RANK") == "0" else None
    quiet()
    check_trackers(job.recipe.trackers)
    place_trackers(job.recipe.trackers, job.folder)
    tell(story, "loading")
    args = arguments(job, accelerator=accelerator)
    patient = Ranks(job.node_rank, args.local_process_index, hours=LOADING_HOURS)
    check_same(meant(job), patient)
    ranks = patient.apart()
    resume = find_resume(job, patient)
    saver = saver_for(job, ranks, journal)
    job = place_model(job, patient)
    tokenizer = load_tokenizer(job)
    rows = data.read(job, tokenizer, story)
    check_same({ROWS: rows.tokens.path.name}, patient)
    loaded = load_model(job, tokenizer, patient)
    warn(story, [loaded.choice.why, lost(job.recipe.model)])
    limits = job.recipe.limits
    brake = Brake(Path(job.folder.stop), limits.non_finite_steps, ranks, hours=limits.hours)
    model, watchers = method.prepared(loaded.model, job.recipe, ranks, brake)
    known = facts(model, ranks) | method.facts(model, job.recipe)
    meter = Meter(ranks, pulse, gpu=accelerator)
    known |= meter.facts()
    trainer = Sft(
        model=model,
        args=args,
        processing_class=tokenizer,
        train_dataset=rows.train(),
        eval_dataset=rows.test(),
        callbacks=[
            SaveWatch(saver, job.recipe.checkpoints.every_minutes, ranks),
            Room(saver, trained(model), job.recipe, ranks, story),
            FinishLine(job.recipe),
            Readback(loaded, ranks, known),
            brake,
            *watchers,
            *([Narrator(story, known)] if story else []),
        ],
        saver=saver,
        resume=resume,
        origin=Origin(
            data=rows.tokens.path.name,
            model=loaded.identity,
            optimisation=moved_by(job.recipe.optimisation),
        ),
        brake=brake,
        meter=meter,
        story=story,
    )
    put_aside(trainer, story)
    brake.listen()
    with saver:
        trainer.train(resume_from_checkpoint=str(resume.folder) if resume else None)
    if story:
        story.emit(Kind.FINISHED, trainer.state.global_step, reason=brake.reason, text=SENTENCES[brake.reason])
    ranks.gather(None)  # a rank that leaves early looks like a failure to the others
    dist.destroy_process_group()
    return 0 if brake.reason.good else 1


def check_launch(job: TrainJob) -> bool:
    """Tell whether to train on accelerators. Raises Refused where this launch can't shard."""
    accelerator = accelerator_present()
    if os.environ.get("ACCELERATE_USE_FSDP", "false").lower() != "true":
        raise Refused([Problem("launch", "FSDP is not configured", "Start it with accelerate launch, as in --help.")])
    if found := problems_on(job.recipe, accelerator=accelerator):
        raise Refused(found)
    if not accelerator:
        shard_on_cpu()
    return accelerator


def saver_for(job: TrainJob, ranks: Ranks, journal: Journal) -> Saver:
    how = job.recipe.checkpoints
    return Saver(
        job.checkpoints,
        how,
        ranks,
        journal,
        asynchronous=how.asynchronous,
        timeout_seconds=how.timeout_seconds,
    )


def quiet() -> None:
    """Keep progress bars out of the log: the events tell the same."""
    datasets.disable_progress_bars()
    transformers.logging.disable_progress_bar()


def tell(story: Journal | None, phase: str) -> None:
    if story:
        story.emit(Kind.PHASE, name=phase)


def warn(story: Journal | None, texts: list[str]) -> None:
    """Tell what is not as one would have hoped; empty texts are nothing to tell."""
    for text in filter(None, texts):
        if story:
            story.emit(Kind.WARNING, text=text)


def facts(model: PreTrainedModel, ranks: Ranks) -> dict[str, Any]:
    """Return what is only known before sharding, and where training runs."""
    return {
        "world_size": ranks.world_size,
        "nodes": ranks.nodes,
        "parameters": model.num_parameters(),
        "trainable": model.num_parameters(only_trainable=True),
    }
