"""Make a checkpoint as training does, and gather the same model on rank 0: python -m tests.bench.exporting.making.

Two ranks over gloo build a Llama without weights, shard it with FSDP2, fill it with numbers and save it through our
saver, manifests included. The gathering runs in the same processes, since it needs the sharded model.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RANKS = 2
STEP = 7


@dataclass(frozen=True)
class Size:
    """A Llama; `dtype` is that of its shards, and of what is written of them."""

    name: str
    hidden: int
    inner: int
    layers: int
    dtype: str

    def config(self) -> Any:
        from transformers import LlamaConfig

        return LlamaConfig(
            vocab_size=32000,
            hidden_size=self.hidden,
            intermediate_size=self.inner,
            num_hidden_layers=self.layers,
            num_attention_heads=self.hidden // 128,
            num_key_value_heads=self.hidden // 128,
            tie_word_embeddings=False,
            architectures=["LlamaForCausalLM"],
            dtype=self.dtype,
        )


SMALL = Size("0.55B", 1536, 4096, 16, "float32")
LARGE = Size("2.0B", 2048, 8192, 28, "bfloat16")


@dataclass(frozen=True)
class Gathered:
    """Seconds of each gathering, and rank 0's peak resident memory."""

    seconds: list[float]
    peak: int


def make(folder: Path, size: Size, gatherings: int) -> Gathered:
    """Write base and checkpoint into `folder`; return what gathering took. The gathered file is removed again."""
    _base(folder / "base", size)
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=_rank, args=(n, folder, asdict(size), gatherings)) for n in range(RANKS)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert not any(rank.exitcode for rank in ranks), "a rank failed"
    return Gathered(**json.loads((folder / "gathered.json").read_text()))


def _base(folder: Path, size: Size) -> None:
    from training.samples import tiny

    tiny.build(folder)
    (folder / "model.safetensors").unlink(missing_ok=True)
    size.config().save_pretrained(folder)


def _rank(rank: int, folder: Path, size: dict[str, Any], gatherings: int) -> None:
    import torch
    import torch.distributed as dist

    from training.ranks import Ranks

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    model, ranks = _model(Size(**size)), Ranks(0, rank)
    _save(model, folder, ranks)
    seconds = [_gather(model, folder, ranks) for _ in range(gatherings)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if ranks.is_main:
        (folder / "gathered.json").write_text(json.dumps(asdict(Gathered(seconds, peak))))
    dist.destroy_process_group()


def _model(size: Size) -> Any:
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from transformers import LlamaForCausalLM

    mesh = init_device_mesh("cpu", (RANKS,))
    with torch.device("meta"):
        model = LlamaForCausalLM(size.config()).to(getattr(torch, size.dtype))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    model.to_empty(device="cpu")
    pattern = torch.linspace(-0.02, 0.02, 1 << 20, dtype=getattr(torch, size.dtype))
    for number, parameter in enumerate(model.parameters()):
        _fill(parameter.to_local().detach().view(-1), pattern.roll(number))
    return model


def _fill(flat: Any, pattern: Any) -> None:
    """Repeat the pattern: as good as random numbers here, and made in no time."""
    for start in range(0, len(flat), len(pattern)):
        part = flat[start : start + len(pattern)]
        part.copy_(pattern[: len(part)])


def _save(model: Any, folder: Path, ranks: Any) -> None:
    from torch.distributed.checkpoint.state_dict import get_model_state_dict

    from training.journal import Journal
    from training.saving import states
    from training.saving.saver import Saver
    from training.saving.snapshot import Snapshot
    from training.spec.sections.checkpoints import Checkpoints

    saver = Saver(str(folder / "checkpoints"), Checkpoints(keep=1), ranks, Journal(folder / "saving.jsonl"))
    saver.enter(STEP)
    saver.save(STEP, Snapshot({states.MODEL: {"model": get_model_state_dict(model)}}, {}).write)


def _gather(model: Any, folder: Path, ranks: Any) -> float:
    from safetensors.torch import save_file
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    path = folder / "gathered.safetensors"
    ranks.gather(None)
    begun = time.perf_counter()
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if ranks.is_main:
        save_file(state, path)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    ranks.gather(None)
    seconds = time.perf_counter() - begun
    path.unlink(missing_ok=True)
    return seconds
