"""Where the model's folder is on this node: a hub id is resolved first, and the head shares what is small.

A node without the folder still needs the configuration and the tokenizer; the weights reach it by `broadcast`.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from huggingface_hub import snapshot_download

from ..ranks import Ranks
from ..spec.folder import JobFolder
from ..spec.job import TrainJob
from ..spec.lint import Problem, Refused

SMALL = 64 << 20  # bytes; a tokenizer of 256,000 entries has about 35 MB
SUFFIXES = (".json", ".txt", ".model", ".jinja", ".tiktoken")


def place_model(job: TrainJob, ranks: Ranks) -> TrainJob:
    """Return the job with `model` a folder that this node has. Raises Refused on all ranks alike.

    A node that can't get the folder receives the head's small files, into its own job's folder. All ranks must call.
    """
    folder, why = _folder(job, ranks)
    found = ranks.gather((folder, why))
    if not found[0][0]:
        raise Refused([Problem("model", found[0][1], "Name a folder that the nodes have, or a hub id.")])
    if not all(theirs for theirs, _ in found):
        small = ranks.gather(_small_files(Path(folder), job) if ranks.is_main else {})[0]
        folder = folder or _received(job, ranks, small)
        ranks.gather(None)  # the others of a node wait until its first rank has written them
    return job.model_copy(update={"model": folder, "revision": ""})


def _folder(job: TrainJob, ranks: Ranks) -> tuple[str, str]:
    """Return this node's folder, or "" and why there is none."""
    if Path(job.model).is_dir():
        ranks.gather(None)
        return job.model, ""
    found = _snapshot(job) if ranks.is_local_main else ("", "")
    ranks.gather(None)
    return found if ranks.is_local_main else _snapshot(job, downloaded=True)


def _snapshot(job: TrainJob, *, downloaded: bool = False) -> tuple[str, str]:
    if job.model.startswith(("/", ".")):
        return "", f"there is no folder {job.model} on the first node"
    patterns = ["*.safetensors", *(f"*{suffix}" for suffix in _suffixes(job))]
    try:
        folder = _download(job, patterns, downloaded=downloaded)
        if not list(Path(folder).glob("*.safetensors")):
            folder = _download(job, [*patterns, "*.bin"], downloaded=downloaded)
    except (OSError, ValueError) as error:  # what the hub's errors are, and a name that is none
        return "", f"{job.model} is no folder and can't be had from the hub ({str(error).splitlines()[0]})"
    return folder, ""


def _download(job: TrainJob, patterns: list[str], *, downloaded: bool) -> str:
    return str(
        snapshot_download(
            job.model,
            revision=job.revision or None,
            allow_patterns=patterns,
            ignore_patterns=["*/*"],  # some repositories bring the same weights again, in a folder
            local_files_only=downloaded,
        )
    )


def _suffixes(job: TrainJob) -> tuple[str, ...]:
    return (*SUFFIXES, ".py") if job.recipe.model.trust_remote_code else SUFFIXES


def _small_files(folder: Path, job: TrainJob) -> dict[str, bytes]:
    paths = [path for path in sorted(folder.iterdir()) if path.suffix in _suffixes(job) and path.is_file()]
    return {path.name: path.read_bytes() for path in paths if path.stat().st_size <= SMALL}


def _received(job: TrainJob, ranks: Ranks, files: dict[str, bytes]) -> str:
    """Return the folder with the head's small files, written by the node's first rank."""
    folder = Path(JobFolder(PurePosixPath(job.events).parent).base)
    if ranks.is_local_main:
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            (folder / Path(name).name).write_bytes(content)
    return str(folder)
