"""What a save costs the step: python -m tests.bench.save [--rounds 4]

A Llama of 0.55 billion parameters in fp32 (2.2 GB), sharded over two ranks by FSDP2, is saved in turn as shards,
as shards asynchronously, and whole by gathering to the first rank; then the files of a sharded save are copied
by cp, with sync. Weights alone, so that all ways write the same bytes. A rank's stall is the time that its loop
stands still in the saver; the slower rank's counts. The loop computes meanwhile, as training would.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import figures

RANKS = 2
SHARE_OF_SYNCHRONOUS = 0.25
SHARE_OF_CP = 0.5


@dataclass
class Times:
    """Seconds of each round, and bytes a save."""

    bytes: int = 0
    sharded: list[float] = field(default_factory=list)
    asynchronous: list[float] = field(default_factory=list)
    until_complete: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)
    cp: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    step_beside: list[float] = field(default_factory=list)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.save")
    parser.add_argument("--rounds", type=int, default=4, help="saves of each way; the first only warms up")
    parser.add_argument("--layers", type=int, default=16, help="16 make the 0.55 billion parameters")
    parser.add_argument("--folder", type=Path, help="where to save (default: a temporary folder)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-save-", dir=options.folder) as folder:
        context = multiprocessing.get_context("spawn")
        ranks = [
            context.Process(target=_rank, args=(n, Path(folder), options.rounds, options.layers)) for n in range(RANKS)
        ]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        if any(rank.exitcode for rank in ranks):
            return 1
        return report(Times(**json.loads((Path(folder) / "times.json").read_text())))


def report(times: Times) -> int:
    """Print the figures; return 0 where all goals hold. The first round of each way warmed up."""
    first, sharded, stall = times.asynchronous[0], times.sharded[1:], times.asynchronous[1:]
    lines = [
        f"a save is {times.bytes / 1e9:.2f} GB on {RANKS} ranks; load average {figures.load():.1f} on {os.cpu_count()}"
        " processors",
        f"full, gathered: stall {_spread(times.full[1:])} s, {_rate(times, times.full[1:])}",
        f"asynchronous: complete after {_spread(times.until_complete[1:])} s; first stall {first:.2f} s (new memory);"
        f" a step takes {_spread(times.step)} s alone and {_spread(times.step_beside)} s beside the write",
        f"cp and sync of the same files: {_spread(times.cp[1:])} s, {_rate(times, times.cp[1:])}",
    ]
    middle = statistics.median(sharded)
    goals = [
        (f"sharded: stall {_spread(sharded)} s, {_rate(times, sharded)}, of cp's rate", middle, times.cp[1:], True),
        (f"asynchronous: stall {_spread(stall)} s, of the sharded one's", statistics.median(stall), sharded, False),
    ]
    verdicts = [_verdict(*goal) for goal in goals]
    print("\n".join([*lines, *(line for line, _ in verdicts)]))
    return 0 if all(holds for _, holds in verdicts) else 1


def _verdict(text: str, seconds: float, beside: Sequence[float], faster: bool) -> tuple[str, bool]:
    """Return the line of one goal. `faster`: the share is one of rates, which has to be reached, not kept under."""
    other = statistics.median(beside)
    share = other / seconds if faster else seconds / other
    goal = SHARE_OF_CP if faster else SHARE_OF_SYNCHRONOUS
    holds = share >= goal if faster else share <= goal
    bound = "at least" if faster else "at most"
    return f"{text}: {share:.2f}; goal {bound} {goal:.2f}: {'holds' if holds else 'falls short'}", holds


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({figures.spread(values, 2)})"


def _rate(times: Times, seconds: Sequence[float]) -> str:
    return f"{times.bytes / statistics.median(seconds) / 1e9:.2f} GB/s"


def _rank(rank: int, folder: Path, rounds: int, layers: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    bench = _Bench(rank, folder, layers)
    for number in range(rounds):
        bench.round(number)
    if rank == 0:
        (folder / "times.json").write_text(json.dumps(vars(bench.times)))
    dist.destroy_process_group()


class _Bench:
    """One rank's side: the model, two savers, and a loop that computes between saves."""

    def __init__(self, rank: int, folder: Path, layers: int):
        import torch

        from training.journal import Journal
        from training.ranks import Ranks
        from training.saving.saver import Saver
        from training.saving.snapshot import HostCopies
        from training.spec.sections.checkpoints import Checkpoints

        self.folder, self.times = folder, Times()
        self.ranks = Ranks(0, rank)
        journal = Journal(folder / "events.jsonl")
        self.savers = {
            way: Saver(str(folder / str(way)), Checkpoints(keep=1), self.ranks, journal, asynchronous=way)
            for way in (False, True)
        }
        self.copies = HostCopies()
        self.model = _model(layers)
        self.work = torch.randn(900, 900)

    def round(self, number: int) -> None:
        self.times.step += [self._slowest(self._step) for _ in range(3)]
        self.times.sharded.append(self._slowest(lambda: self._save(number, asynchronous=False)))
        self.times.asynchronous.append(self._asynchronous(number))
        self.times.full.append(self._slowest(self._full))
        saved = self.folder / "False" / f"checkpoint-{number}"
        self.times.bytes = sum(path.stat().st_size for path in saved.rglob("*") if path.is_file())
        self.times.cp.append(self._slowest(lambda: self._copy(saved)))

    def _asynchronous(self, number: int) -> float:
        """Save and go on computing until it is complete; return the time not spent computing."""
        saver, begun = self.savers[True], time.perf_counter()
        stall = self._timed(lambda: self._save(number, asynchronous=True))
        while self.ranks.any([not (self.folder / "True" / f"checkpoint-{number}" / "manifest-0.json").exists()])[0]:
            self.times.step_beside.append(self._timed(self._step))
            stall += self._timed(saver.settle)
        self.times.until_complete.append(time.perf_counter() - begun)
        stall += self._timed(lambda: saver.settle(wait=True))
        return max(self.ranks.gather(stall))

    def _save(self, number: int, *, asynchronous: bool) -> None:
        from torch.distributed.checkpoint.state_dict import get_model_state_dict

        from training.saving import states
        from training.saving.snapshot import Snapshot

        saver = self.savers[asynchronous]
        saver.enter(number)
        snapshot = Snapshot({states.MODEL: {"model": get_model_state_dict(self.model)}}, {})
        saver.save(number, (self.copies.of(snapshot) if asynchronous else snapshot).write)

    def _full(self) -> None:
        from safetensors.torch import save_file
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        state = get_model_state_dict(self.model, options=options)
        if self.ranks.is_main:
            save_file(state, self.folder / "full.safetensors")
            _sync(self.folder / "full.safetensors")
        self.ranks.gather(None)

    def _copy(self, saved: Path) -> None:
        if self.ranks.is_main:
            shutil.rmtree(self.folder / "copy", ignore_errors=True)
            subprocess.run(["cp", "-r", saved, self.folder / "copy"], check=True)
            subprocess.run(["sync", "-f", self.folder / "copy"], check=True)
        self.ranks.gather(None)

    def _step(self) -> None:
        for _ in range(10):
            self.work = (self.work @ self.work).tanh()
        self.ranks.any([False])

    def _slowest(self, act: Callable[[], object]) -> float:
        self.ranks.gather(None)
        return max(self.ranks.gather(self._timed(act)))

    @staticmethod
    def _timed(act: Callable[[], object]) -> float:
        begun = time.perf_counter()
        act()
        return time.perf_counter() - begun


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _model(layers: int) -> Any:
    """Return a Llama in fp32, sharded layer by layer, with values that are no zeros."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32000,
        hidden_size=1536,
        intermediate_size=4096,
        num_hidden_layers=layers,
        num_attention_heads=12,
        num_key_value_heads=12,
        tie_word_embeddings=False,
    )
    mesh = init_device_mesh("cpu", (RANKS,))
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    model.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.to_local().uniform_(-0.02, 0.02)
    return model


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
