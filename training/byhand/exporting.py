"""The export that a recipe asks for at the end: as the service runs it, of this attempt's last checkpoint."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from ..saving import checkpoints
from ..spec.folder import JobFolder, Scratch, checkpoint_name
from ..spec.job import ExportJob, TrainJob, export_settings
from ..spec.lint import Problem, Refused
from ..spec.plan import NodePlan, plan_export
from .nodes import environment


def planned(trained: NodePlan, run: int, attempt: int) -> NodePlan:
    """Return the plan of the export of what `trained` saved last.

    Raises Refused where this node has only a part of it, as each of several nodes with disks of their own has.
    """
    job = TrainJob.model_validate_json(trained.files[trained.folder.recipe.name])
    checkpoint = Path(job.checkpoints) / checkpoint_name(checkpoints.steps(Path(job.checkpoints))[-1])
    if faults := checkpoints.faults(checkpoint):
        fix = "Bring the nodes' parts together there, then run `python -m training export`."
        raise Refused([Problem("export.at_end", f"{checkpoint}: {'; '.join(faults[:3])}", fix)])
    folder = Scratch(PurePosixPath(trained.node.scratch)).export(run, attempt)
    return plan_export(trained.node, export_job(job, checkpoint, folder), folder, release="", env=environment())


def export_job(job: TrainJob, checkpoint: Path, folder: JobFolder) -> ExportJob:
    return ExportJob(
        checkpoint=str(checkpoint),
        model=job.model,
        revision=job.revision,
        out=str(folder.model),
        events=str(folder.events),
        **export_settings(job.recipe),
    )
