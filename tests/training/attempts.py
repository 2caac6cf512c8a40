"""The few attempts with real ranks that the tests of sft share, each made once a session and only when asked for.

Where the launcher is part of what is tested it is there; else ranks are forked (see ranks_harness).
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.training import ranks_harness
from tests.training.launch import Launch, of_kind, recipe
from training.samples import tiny
from training.spec.folder import JobFolder
from training.spec.plan import NodePlan

STEPS = 6
ADAPTER = {"kind": "lora", "rank": 4, "alpha": 8}


@dataclass
class Ended:
    """One attempt that has ended: where its nodes wrote, and their launchers' exit statuses."""

    folders: list[JobFolder]
    checkpoints: list[Path]
    codes: list[int]

    @property
    def head(self) -> JobFolder:
        return self.folders[0]


class Attempts:
    """Real attempts over a 5M-parameter Llama, in folders under `root`."""

    def __init__(self, root: Path):
        self.root = root

    @cached_property
    def model(self) -> Path:
        folder = self.root / "model"
        folder.mkdir()
        tiny.build(folder)
        return folder

    @cached_property
    def poisoned(self) -> Path:
        """The same model with one NaN in it."""
        from safetensors.torch import load_file, save_file

        folder = self.root / "poisoned"
        shutil.copytree(self.model, folder)
        weights = load_file(folder / "model.safetensors")
        weights["model.norm.weight"][0] = float("nan")
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        return folder

    @cached_property
    def unbroken(self) -> Ended:
        """Two nodes of one rank, private disks, saved at 2, 4 and 6, of which two are kept."""
        return self._forked(self.launch("unbroken", nodes=2), checkpoints={"every_steps": 2})

    @cached_property
    def one_node(self) -> Ended:
        """The same on one node of two ranks, evaluated on the way."""
        launch = self.launch("one", nodes=1, processes=2)
        return self._ended(launch, optimisation={"evaluate_every": 3})

    @cached_property
    def resumed(self) -> Ended:
        """Two nodes with a shared disk go on from the unbroken attempt's step 4, brought together there."""
        launch = self.launch("resumed", nodes=2, shared=True)
        bring_together(self.unbroken, 4, launch.scratch(0) / "runs/1/1/checkpoints/checkpoint-4")
        return self._forked(launch, attempt=2, resume=(1, 4))

    @cached_property
    def non_finite(self) -> Ended:
        launch = self.launch("nan", nodes=1, processes=2, model=self.poisoned)
        return self._forked(launch, limits={"non_finite_steps": 2}, checkpoints={"every_steps": 1})

    @cached_property
    def stopped(self) -> Ended:
        """Asked to stop after its first metrics, on the node that is not the first."""
        launch = self.launch("stopped", nodes=2)
        return self._ended(
            launch, meanwhile=stop_second_node, optimisation={"max_steps": 5000}, checkpoints={"every_steps": 5000}
        )

    @cached_property
    def refused(self) -> Ended:
        """Asked to go on from a checkpoint that has only one node's part."""
        launch = self.launch("refused", nodes=1, processes=2)
        part = self.unbroken.checkpoints[0] / "checkpoint-4"
        shutil.copytree(part, launch.scratch(0) / "runs/1/1/checkpoints/checkpoint-4")
        return self._forked(launch, attempt=2, resume=(1, 4))

    @cached_property
    def adapted(self) -> Ended:
        """LoRA in bf16 on one node of two ranks, saved at 3 and 6: the base in bf16, the adapter's masters in fp32."""
        return self._forked(self.launch("adapted", nodes=1, processes=2), method=ADAPTER, precision="bf16")

    @cached_property
    def adapted_resumed(self) -> Ended:
        """The same, gone on from step 3."""
        launch = self.launch("adapted-resumed", nodes=1, processes=2)
        bring_together(self.adapted, 3, launch.scratch(0) / "runs/1/1/checkpoints/checkpoint-3")
        return self._forked(launch, attempt=2, resume=(1, 3), method=ADAPTER, precision="bf16")

    def full_disk(self, scratch: Path) -> Ended:
        """Saves each step on a disk that the caller made too small for two checkpoints."""
        launch = self.launch("full", nodes=1, processes=2, root=scratch)
        return self._ended(launch, checkpoints={"every_steps": 2})

    def launch(
        self,
        name: str,
        *,
        nodes: int,
        processes: int = 1,
        shared: bool = False,
        model: Path | None = None,
        root: Path | None = None,
        rows: Callable[[Path], object] | None = None,
    ) -> Launch:
        launch = Launch(root or self.root / name, model or self.model, "rows", nodes, processes, shared)
        for node in range(nodes):
            (rows or write_rows)(launch.scratch(node) / "datasets" / "rows")
        return launch

    def _forked(
        self, launch: Launch, *, attempt: int = 1, resume: tuple[int, int] | None = None, **overrides: object
    ) -> Ended:
        """Run without launchers; the exit statuses are the ranks'."""
        plans = launch.plans(recipe(**overrides), attempt, resume)
        codes = ranks_harness.run(plans)
        checkpoints = [launch.scratch(n) / "runs/1" / str(attempt) / "checkpoints" for n in range(launch.nodes)]
        return Ended([plan.folder for plan in plans], checkpoints, codes)

    def _ended(
        self,
        launch: Launch,
        *,
        attempt: int = 1,
        resume: tuple[int, int] | None = None,
        meanwhile: Callable[[list[NodePlan]], None] | None = None,
        **overrides: object,
    ) -> Ended:
        plans = launch.plans(recipe(**overrides), attempt, resume)
        codes = launch.run(plans, meanwhile)
        checkpoints = [launch.scratch(n) / "runs/1" / str(attempt) / "checkpoints" for n in range(launch.nodes)]
        return Ended([plan.folder for plan in plans], checkpoints, codes)


def write_rows(folder: Path) -> None:
    """Write a small chat set, the same each time."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 60), ("test", 6)):
        lines = [json.dumps({"messages": turns(name, n), "note": n}) + "\n" for n in range(count)]
        (folder / f"{name}.jsonl").write_text("".join(lines))


def turns(name: str, number: int) -> list[dict[str, str]]:
    question = f"In {name}, what does line {number} return for {number * 7 % 13} and {number * 5 % 11}?"
    answer = f"It returns {number * 7 % 13 + number * 5 % 11}, the sum of both." * (1 + number % 3)
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def bring_together(attempt: Ended, step: int, folder: Path) -> None:
    """Copy every node's part of a checkpoint into one folder."""
    for root in attempt.checkpoints:
        shutil.copytree(root / f"checkpoint-{step}", folder, dirs_exist_ok=True)


def stop_second_node(plans: list[NodePlan]) -> None:
    """Wait until a step was taken, then leave the request on the second node."""
    head, second = (plan.folder for plan in plans)
    limit = time.monotonic() + 240
    while not (Path(head.events).exists() and of_kind(head, "metrics")):
        assert time.monotonic() < limit, Path(head.log).read_text()
        time.sleep(0.1)
    Path(second.stop).touch()
