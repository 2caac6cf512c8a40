"""Real ranks without a launcher each: forked from one process that has paid for the imports.

What runs is the plan's own: `python -m training sft recipe.json` in the environment that `accelerate launch`
makes of accelerate.yaml, on as many ranks as it says, over gloo. What is missing is the launcher itself, whose
imports and those of every rank cost some 20 s a launch. Four steps of the tiny model take about 3 s here.

    codes = ranks_harness.run(launch.plans(recipe))
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.training.launch import LIMIT
from training.spec.plan import NodePlan

Main = Callable[[list[str]], int]
PRELOAD = ["training.sft", "accelerate.commands.launch", "torch.distributed.checkpoint", "tests.training.ranks_harness"]
# Read when modules are imported, so they have to be there before the fork server is; one thread, as on CPU nodes.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass
class Forked:
    """A launch whose ranks run; `ranks` by rank. Kill one with `ranks[1].kill()`."""

    ranks: list[BaseProcess]

    def wait(self, limit: float = LIMIT) -> list[int]:
        """Return every rank's exit status once all have ended; like a launcher, end the rest when one fails."""
        deadline = time.monotonic() + limit
        while alive := [rank.sentinel for rank in self.ranks if rank.exitcode is None]:
            if any(rank.exitcode for rank in self.ranks) or not wait(alive, deadline - time.monotonic()):
                self.end()
        return [int(rank.exitcode or 0) for rank in self.ranks]

    def end(self) -> None:
        """End every rank, whatever it does; a first one that has failed may still say why."""
        for rank in self.ranks:
            rank.join(2)
            rank.kill()
        for rank in self.ranks:
            rank.join()


def run(plans: Sequence[NodePlan]) -> list[int]:
    """Run all ranks of `plans` to their end; return their exit statuses, by rank."""
    forked = start(plans)
    try:
        return forked.wait()
    finally:
        forked.end()


def start(plans: Sequence[NodePlan], main: Main | None = None) -> Forked:
    """Start all ranks of `plans`; they write into the plan's folders, and their output goes to its log.

    `main`: what each rank runs in place of training.sft.main, a function that a process can be handed.
    """
    for plan in plans:
        _put_files(plan)
    return Forked([_rank(plan, local, main) for plan in plans for local in range(plan.node.processes)])


def _put_files(plan: NodePlan) -> None:
    folder = Path(plan.folder.path)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in plan.files.items():
        (folder / name).write_text(text)


def _rank(plan: NodePlan, local: int, main: Main | None) -> BaseProcess:
    process = server().Process(target=_sft, args=(plan, local, main), daemon=True)
    process.start()
    return process


def server() -> multiprocessing.context.ForkServerContext:
    """Return the context whose server, started at first need and shared by the session, has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return context


def _sft(plan: NodePlan, local: int, main: Main | None) -> None:
    """Be one rank. Runs in a process of its own."""
    to_log(Path(plan.folder.log))
    os.environ.update(_launcher_environment(plan) | dict(plan.env))
    os.environ.update(_place(plan, local))
    os.chdir(str(plan.folder.path))
    from training import sft

    sys.exit((main or sft.main)([str(plan.folder.recipe)]))


def to_log(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)


def _launcher_environment(plan: NodePlan) -> dict[str, str]:
    """Return what `accelerate launch` sets for its ranks, by its own code."""
    from accelerate.commands import launch
    from accelerate.utils.launch import prepare_multi_gpu_env

    words = ["--config_file", str(plan.folder.accelerate), "-m", "training"]
    args, _, _ = launch._validate_launch_command(launch.launch_command_parser().parse_args(words))
    args.main_process_port = 0  # it would look whether the port is free, which the first rank may already have taken
    found: dict[str, str] = prepare_multi_gpu_env(args)
    return {name: value for name, value in found.items() if name.startswith(("ACCELERATE_", "FSDP_"))}


def _place(plan: NodePlan, local: int) -> dict[str, str]:
    """Return what torchrun sets: which rank this is and where the first one listens."""
    import yaml

    config = yaml.safe_load(plan.files["accelerate.yaml"])
    return {
        "MASTER_ADDR": config["main_process_ip"],
        "MASTER_PORT": str(config["main_process_port"]),
        "RANK": str(plan.rank * plan.node.processes + local),
        "WORLD_SIZE": str(config["num_processes"]),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(plan.node.processes),
        "GROUP_RANK": str(plan.rank),
    }
