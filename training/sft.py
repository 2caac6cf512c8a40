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

import datasets
import torch.distributed as dist
import transformers

from . import data
from .arguments import arguments
from .assembly import Material, Stage, assembled
from .cpu_fsdp import accelerator_present, shard_on_cpu
from .endings import failed_rank, print_error, reason_for, sentence
from .journal import Journal
from .loading.attention import lost
from .loading.model import load_model
from .loading.place import place_model
from .loading.tokenizer import load_tokenizer
from .ranks import LOADING_HOURS, Ranks
from .same import ROWS, check_same, meant
from .saving.resume import find_resume
from .saving.saver import Saver
from .spec.events import Kind
from .spec.faults import SENTENCES
from .spec.job import TrainJob
from .spec.lint import Problem, Refused, problems_on
from .watch.brake import Brake
from .watch.hang import HangWatch
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
    stage = entered(job, journal, pulse)
    resume = find_resume(job, stage.patient)
    saver = saver_for(job, stage.ranks, journal)
    material = gathered(place_model(job, stage.patient), stage)
    limits = job.recipe.limits
    brake = Brake(Path(job.folder.stop), limits.non_finite_steps, stage.ranks, hours=limits.hours)
    trainer = assembled(material, stage, brake, saver, resume)
    put_aside(trainer, stage.story)
    brake.listen()
    with saver:
        trainer.train(resume_from_checkpoint=str(resume.folder) if resume else None)
    if stage.story:
        stage.story.emit(Kind.FINISHED, trainer.state.global_step, reason=brake.reason, text=SENTENCES[brake.reason])
    stage.ranks.gather(None)  # a rank that leaves early looks like a failure to the others
    dist.destroy_process_group()
    return 0 if brake.reason.good else 1


def entered(job: TrainJob, journal: Journal, pulse: Pulse) -> Stage:
    """Come together with the other ranks. Raises Refused where this launch can't train, or differs between them."""
    accelerator = check_launch(job)
    story = journal if os.environ.get("RANK") == "0" else None
    quiet()
    check_trackers(job.recipe.trackers)
    place_trackers(job.recipe.trackers, job.folder)
    tell(story, "loading")
    args = arguments(job, accelerator=accelerator)
    patient = Ranks(job.node_rank, args.local_process_index, hours=LOADING_HOURS)
    check_same(meant(job), patient)
    return Stage(accelerator, args, patient, patient.apart(), story, pulse)


def gathered(job: TrainJob, stage: Stage) -> Material:
    """Read the tokens and the model, which are the same on all ranks. Raises Refused and BadData."""
    tokenizer = load_tokenizer(job)
    rows = data.read(job, tokenizer, stage.story)
    check_same({ROWS: rows.tokens.path.name}, stage.patient)
    loaded = load_model(job, tokenizer, stage.patient)
    warn(stage.story, [loaded.choice.why, lost(job.recipe.model)])
    return Material(job.recipe, tokenizer, rows, loaded)


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
