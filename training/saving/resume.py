"""Before going on from a checkpoint: is all of it here, on every node, and does the recipe go on from it?"""

from __future__ import annotations

from pathlib import Path

from ..journal import Journal
from ..ranks import Ranks
from ..spec.events import Kind
from ..spec.job import TrainJob
from ..spec.lint import Problem, Refused
from . import checkpoints


def check_resume(job: TrainJob, ranks: Ranks, journal: Journal) -> None:
    """Raise Refused, on all ranks alike, where training can't go on from `job.resume_from`.

    Another number of ranks is allowed, and told as a warning: weights and optimizer are resharded, but
    random numbers and the place in the data are not those of the unbroken run.
    """
    if not job.resume_from:
        return
    folder = Path(job.resume_from)
    found = ranks.gather(_problem(folder, job) if ranks.is_local_main else "")
    if first := next((f"node {node}: {text}" for node, text in _by_node(found, ranks) if text), None):
        raise Refused([Problem("resume_from", f"{folder.name} on {first}", "Choose another checkpoint.")])
    saved = checkpoints.read_manifest(folder, 0)
    if ranks.is_main and saved and saved.world_size != ranks.world_size:
        text = (
            f"saved on {saved.world_size} ranks, resumed on {ranks.world_size}: weights and optimizer go on;"
            " random numbers and the place in the data start differently"
        )
        journal.emit(Kind.WARNING, saved.step, text=text)


def _by_node(found: list[str], ranks: Ranks) -> list[tuple[int, str]]:
    return list(zip(ranks.gather(ranks.node_rank), found, strict=True))


def _problem(folder: Path, job: TrainJob) -> str:
    if not folder.is_dir():
        return "it is not there"
    if faults := checkpoints.faults(folder):
        return "; ".join(faults[:5])
    saved = checkpoints.read_manifest(folder, 0)
    how = job.recipe.optimisation
    if saved and not how.epochs and saved.step >= how.max_steps:  # epochs: the finishing line knows, once data is there
        return f"it is at step {saved.step} and max_steps is {how.max_steps}"
    return ""
