"""The names on a node's disk. Nothing else may spell one of them; those of an interpreter are in spec.venvfolder.

    <scratch>/releases/<hash>/training/        the code, put once per version
    <scratch>/datasets/<hash>/{train,test}.jsonl
    <scratch>/datasets/tokens/<hash>/          rows as sequences of tokens, see Tokens
    <scratch>/venvs/<hash>/                    an interpreter with the pinned packages, see venvfolder
    <scratch>/runs/<run>/<attempt>/checkpoints/checkpoint-<step>/
    <scratch>/runs/<run>/<attempt>/node<rank>/  one job: what this node's supervisor runs and writes
    <scratch>/runs/<run>/exports/<export>/      one job, with the model folder in it
    <scratch>/runs/<run>/deliveries/<id>/       one job, which sends an export elsewhere
    <scratch>/runs/<run>/trials/<id>/           one job, which answers prompts
    <scratch>/transfers/<name>/                 keys, while files go from one node to another

A job's folder is per node, so that nodes with a shared scratch never write the same file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from .venvfolder import VenvFolder

MODEL_FOLDER = "pytorch_model_fsdp_0"  # accelerate's name for the first model of a checkpoint
# What an export reads of a checkpoint: the model's shards, an adapter's settings; the optimizer's are twice as much.
EXPORT_READS = (f"{MODEL_FOLDER}/", "adapter_config.json")


@dataclass(frozen=True)
class JobFolder:
    """Where one supervised command lives on one node."""

    path: PurePosixPath

    @property
    def job(self) -> PurePosixPath:
        """What to run: spec.job.Job as JSON."""
        return self.path / "job.json"

    @property
    def recipe(self) -> PurePosixPath:
        """What the job's command reads: spec.job.TrainJob, ExportJob or another of its kind as JSON."""
        return self.path / "recipe.json"

    @property
    def accelerate(self) -> PurePosixPath:
        return self.path / "accelerate.yaml"

    @property
    def env(self) -> PurePosixPath:
        """KEY=value lines, mode 600: secrets live here and nowhere else."""
        return self.path / "env"

    @property
    def events(self) -> PurePosixPath:
        return self.path / "events.jsonl"

    @property
    def samples(self) -> PurePosixPath:
        return self.path / "samples.jsonl"

    @property
    def log(self) -> PurePosixPath:
        return self.path / "train.log"

    @property
    def pid(self) -> PurePosixPath:
        """The supervisor's process id and start time; locked while it lives."""
        return self.path / "pid"

    @property
    def began(self) -> PurePosixPath:
        """Who leads the job's processes, and what each GPU held before: training.began."""
        return self.path / "began.json"

    @property
    def stop(self) -> PurePosixPath:
        """A request to stop: once it exists on any node, all ranks save at the end of their step and end."""
        return self.path / "stop"

    @property
    def start(self) -> PurePosixPath:
        """Which start of the job this is: a number; there is no such file before the second."""
        return self.path / "start"

    def stacks(self, rank: int) -> PurePosixPath:
        """Where each thread of a rank was when it made no progress: there only when that happened."""
        return self.path / f"stacks-rank{int(rank)}.txt"

    def hang(self, rank: int) -> PurePosixPath:
        """What a rank without progress says of itself, as JSON (see evidence.hang): there while that lasts."""
        return self.path / f"hang-rank{int(rank)}.json"

    @property
    def tensorboard(self) -> PurePosixPath:
        """What that tracker draws, where the recipe asks for it."""
        return self.path / "tensorboard"

    @property
    def exit(self) -> PurePosixPath:
        return self.path / "exit.json"

    @property
    def base(self) -> PurePosixPath:
        """What a node without the base model's folder was sent of it: configuration and tokenizer."""
        return self.path / "base"

    @property
    def passport(self) -> PurePosixPath:
        """What made the weights that are exported: spec.passport.Passport as JSON."""
        return self.path / "passport.json"

    @property
    def model(self) -> PurePosixPath:
        """An export's result."""
        return self.path / "model"


TOKENS = "tokens"


@dataclass(frozen=True)
class Tokens:
    """One set of sequences: made under another name, renamed when whole. `counts` is written last."""

    path: PurePosixPath

    def rows(self, name: str) -> PurePosixPath:
        """The sequences to train on (`train`) or to evaluate on (`test`)."""
        return self.path / f"{name}.arrow"

    @property
    def counts(self) -> PurePosixPath:
        return self.path / "counts.json"

    @property
    def lock(self) -> PurePosixPath:
        """Held by whoever makes the set."""
        return self.path.with_name(f".{self.path.name}.lock")

    @property
    def unfinished(self) -> str:
        """How the names begin, beside it, under which the set is made."""
        return f".{self.path.name}.new-"


# The kinds of jobs of one node, and the folder of a run that holds them.
NODEJOBS = {"export": "exports", "delivery": "deliveries", "trial": "trials"}


@dataclass(frozen=True)
class Scratch:
    """A node's scratch folder (absolute)."""

    root: PurePosixPath

    def release(self, digest: str) -> PurePosixPath:
        return self.root / "releases" / digest

    def venv(self, digest: str) -> VenvFolder:
        return VenvFolder(self.root / "venvs" / digest)

    def dataset(self, digest: str) -> PurePosixPath:
        return self.root / "datasets" / digest

    @property
    def sightings(self) -> PurePosixPath:
        """Empty files that a preflight leaves for a moment: whoever sees them sees this disk."""
        return self.root / ".seen"

    @property
    def tokens(self) -> PurePosixPath:
        """Where rows lie as sequences of tokens, each set under its own hash."""
        return self.root / "datasets" / TOKENS

    def run(self, run: int) -> PurePosixPath:
        return self.root / "runs" / str(int(run))

    def job(self, run: int, attempt: int, node_rank: int) -> JobFolder:
        return JobFolder(self.run(run) / str(int(attempt)) / f"node{int(node_rank)}")

    def checkpoints(self, run: int, attempt: int) -> PurePosixPath:
        return self.run(run) / str(int(attempt)) / "checkpoints"

    def checkpoint(self, run: int, attempt: int, step: int) -> PurePosixPath:
        return self.checkpoints(run, attempt) / checkpoint_name(step)

    def transfer(self, name: str) -> PurePosixPath:
        """Return the folder of one side of a transfer of files between two nodes; `name`: hexadecimal."""
        return self.root / "transfers" / name

    def export(self, run: int, export: int) -> JobFolder:
        return self.nodejob(run, "export", export)

    def nodejob(self, run: int, kind: str, number: int) -> JobFolder:
        """Return the folder of a job of one node that belongs to `run`; `kind` is one of NODEJOBS."""
        return JobFolder(self.run(run) / NODEJOBS[kind] / str(int(number)))


EXPORT_RECORD = ".export.json"  # in an export's folder: what of it is on the disk, until its end is told


def part_name(name: str) -> str:
    """Return what a file is called, beside its place, while another node's bytes of it are coming in."""
    return f".{name}.part"


def partial_name(out: str) -> str:
    """What an export's folder is called until it is proven."""
    return f"{out}.partial"


def attempt_name(checkpoints: PurePosixPath) -> str:
    """Return how trackers name the attempt whose checkpoints lie there, e.g. `run-41-2`."""
    return f"run-{checkpoints.parent.parent.name}-{checkpoints.parent.name}"


def checkpoint_name(step: int) -> str:
    return f"checkpoint-{int(step)}"


HOLD = ".hold-"


def hold_name(export: int) -> str:
    """An empty file in a checkpoint's folder: while it is there the training does not delete the checkpoint."""
    return f"{HOLD}{int(export)}"


def held_by(name: str) -> int | None:
    """Return the export that the file `name` holds a checkpoint for; None where it is no hold."""
    number = name.removeprefix(HOLD)
    return int(number) if name.startswith(HOLD) and number.isdecimal() and number.isascii() else None


PIN = ".pin"
"""An empty file in a checkpoint's folder, on each node: while it is there nothing deletes the checkpoint."""


def manifest_name(node_rank: int) -> str:
    """The completeness marker of one node's part of a checkpoint, written last."""
    return f"manifest-{int(node_rank)}.json"
