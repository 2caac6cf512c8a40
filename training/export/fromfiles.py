"""The passport of an export by hand: of what training left beside the checkpoint, `<run>/<attempt>/node<rank>/`.

A checkpoint that was brought here alone still says its step, tokens and base model; the rest stays empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from ..saving.checkpoints import NAME as CHECKPOINT
from ..spec import history
from ..spec.events import BadLine, parse
from ..spec.folder import JobFolder
from ..spec.job import ExportJob, Job, TrainJob
from ..spec.passport import AttemptFacts, CheckpointFacts, DataFacts, ModelFacts, NodeFacts, Passport, commands
from .manifest import manifests


def compose(job: ExportJob) -> Passport:
    """Return all that can be known here."""
    checkpoint = Path(job.checkpoint)
    first = manifests(checkpoint)[0]
    chain = list(_chain(checkpoint.resolve(), first.step))
    told = [history.told(_lines(folder), upto) for folder, upto in chain]
    trained = _train_job(chain[-1][0]) if chain else None
    return Passport(
        composed_of="files",
        recipe=trained.recipe.model_dump(mode="json") if trained else {},
        model=ModelFacts(location=job.model, revision=job.revision),
        dataset=_dataset(trained, told[-1].counts if told else {}),
        attempts=tuple(_attempt(folder, one) for (folder, _), one in zip(chain, told, strict=True)),
        losses=history.losses(told),
        cost=history.cost(told),
        checkpoint=CheckpointFacts(
            name=checkpoint.name, step=first.step, nodes=first.nodes, world_size=first.world_size
        ),
    )


def _chain(checkpoint: Path, step: int) -> Iterator[tuple[Path, int]]:
    """Yield (attempt's folder, step up to which it counts), oldest first; what isn't there any more ends it."""
    folder = checkpoint.parent.parent
    job = _train_job(folder)
    if job is None or not folder.name.isdecimal():
        return
    resumed = history.told(_lines(folder), step).resumed_step if job.resume_from else None
    before = Path(job.resume_from)
    if resumed is not None:
        of = before if CHECKPOINT.fullmatch(before.name) else before / f"checkpoint-{resumed}"
        yield from _chain(of, resumed)
    yield folder, step


def _head(folder: Path) -> JobFolder:
    """Return the job folder of rank 0's node."""
    return JobFolder(PurePosixPath(folder / "node0"))


def _train_job(folder: Path) -> TrainJob | None:
    try:
        return TrainJob.model_validate_json(Path(_head(folder).recipe).read_bytes())
    except (OSError, ValidationError):
        return None


def _lines(folder: Path) -> Iterator[history.Line]:
    try:
        with Path(_head(folder).events).open("rb") as file:
            for line in file:
                try:
                    event = parse(line)
                except BadLine:  # torn by a kill
                    continue
                yield history.Line(event.kind, event.step, event.at, event.data)
    except FileNotFoundError:
        return


def _attempt(folder: Path, told: history.Told) -> AttemptFacts:
    nodes = [path for path in folder.glob("node*") if path.name.removeprefix("node").isdecimal()]
    nodes.sort(key=lambda path: int(path.name.removeprefix("node")))
    return AttemptFacts(
        number=int(folder.name),
        resumed_from=str(told.resumed.get("name", "")),
        restored=told.resumed.get("parts") or {},
        first_step=(told.resumed_step or 0) + 1,
        last_step=told.upto,
        started_at=told.started_at,
        ended_at=told.ended_at,
        facts=told.facts,
        nodes=tuple(_node(path) for path in nodes),
    )


def _node(path: Path) -> NodeFacts:
    rank = int(path.name.removeprefix("node"))
    try:
        job = Job.model_validate_json(Path(JobFolder(PurePosixPath(path)).job).read_bytes())
    except (OSError, ValidationError):
        return NodeFacts(rank=rank, name=path.name)
    return NodeFacts(rank=rank, name=path.name, commands=commands(job.argv))


def _dataset(trained: TrainJob | None, counts: dict[str, object]) -> DataFacts:
    if trained is None:
        return DataFacts()
    # As training wrote it down: the file may be another one by now.
    sha256 = str(counts.get("sha256", ""))
    return DataFacts(name=Path(trained.train).name, sha256=sha256, trained=counts, **_rows(counts))


def _rows(counts: dict[str, object]) -> dict[str, int | None]:
    test = counts.get("test")
    rows, tested = counts.get("rows"), test.get("rows") if isinstance(test, dict) else None
    return {
        "rows": rows if isinstance(rows, int) else None,
        "test_rows": tested if isinstance(tested, int) else None,
    }
