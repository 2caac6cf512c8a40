"""Loading on three real ranks, each way, for the tests beside.

Every case builds the model by training.loading, lets accelerate shard it under FSDP2, checks it and takes STEPS
steps of AdamW. Rank r writes OUT/<case>-<r>.json. Rows don't divide by three, and files are several.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.training import ranks_harness
from tests.training.ranks_harness import Forked
from training.spec.ports import free_port

RANKS = 3
ROWS = 4097
STEPS = 3


def build(folder: Path, tokenizer: Path, *, tied: bool, dtype: str = "bfloat16") -> None:
    """Write a small Llama, in several files, with a tokenizer."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=ROWS,
        hidden_size=64,
        intermediate_size=99,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=tied,
    )
    torch.manual_seed(5)
    LlamaForCausalLM(config).to(getattr(torch, dtype)).save_pretrained(folder, max_shard_size="300KB")
    AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)


def pickled(folder: Path, model: Path) -> None:
    """Write the same model as folders of old have it: pytorch_model.bin."""
    import shutil

    import torch
    from transformers import AutoModelForCausalLM

    folder.mkdir()
    for path in model.iterdir():
        if "safetensors" not in path.name:
            shutil.copy(path, folder)
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16)
    torch.save(loaded.state_dict(), folder / "pytorch_model.bin")


def tuned(folder: Path, model: Path) -> None:
    """Write the same model with other values in one tensor: names, shapes and sizes stay."""
    import shutil

    from safetensors.torch import load_file, save_file

    shutil.copytree(model, folder)
    path = sorted(folder.glob("*.safetensors"))[-1]
    weights, size = load_file(path), path.stat().st_size
    name = max(weights, key=lambda name: weights[name].numel())
    weights[name] += 1
    save_file(weights, path, {"format": "pt"})
    assert path.stat().st_size == size


def configured(folder: Path, model: Path) -> None:
    """Write the same model with another epsilon in its configuration."""
    import shutil

    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 1e-3}))


def run(out: Path) -> None:
    """Run every case in RANKS processes over gloo, forked from one that has paid for the imports."""
    port = free_port("127.0.0.1")
    ranks = [ranks_harness.server().Process(target=_be, args=(out, rank, port), daemon=True) for rank in range(RANKS)]
    for rank in ranks:
        rank.start()
    Forked(ranks).wait()
    codes = [rank.exitcode for rank in ranks]
    assert codes == [0] * RANKS, (out / "log").read_text()


def _be(out: Path, rank: int, port: int) -> None:
    ranks_harness.to_log(out / "log")
    os.environ.update(
        WORLD_SIZE=str(RANKS),
        LOCAL_WORLD_SIZE="1",
        RANK=str(rank),
        LOCAL_RANK="0",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        ACCELERATE_USE_CPU="true",
        ACCELERATE_USE_FSDP="true",
        FSDP_VERSION="2",
        FSDP_AUTO_WRAP_POLICY="TRANSFORMER_BASED_WRAP",
        FSDP_CPU_RAM_EFFICIENT_LOADING="true",
        FSDP_ACTIVATION_CHECKPOINTING="true",
    )
    _rank(out)


def job(model: Path, out: Path, **recipe: Any) -> Any:
    from tests.training.launch import recipe as small
    from training.spec.job import TrainJob

    rank = os.environ["RANK"]
    (out / f"node{rank}").mkdir(exist_ok=True)
    return TrainJob(
        recipe=small(**recipe),
        model=str(model),
        train="train.jsonl",
        checkpoints="checkpoints",
        events=str(out / f"node{rank}" / "events.jsonl"),
        nodes=RANKS,
        node_rank=int(rank),
    )


class Cases:
    """The cases that one rank goes through."""

    def __init__(self, out: Path):
        from accelerate import Accelerator
        from accelerate.utils import fsdp_utils

        from training.cpu_fsdp import shard_on_cpu
        from training.ranks import Ranks

        self.out = out
        shard_on_cpu()
        self.accelerator = Accelerator(cpu=True)
        self.ranks = Ranks(int(os.environ["RANK"]), 0)
        self.own = fsdp_utils.fsdp2_load_full_state_dict

    def run(self, name: str, act: Callable[[], dict[str, Any]]) -> None:
        (self.out / f"{name}-{self.ranks.rank}.json").write_text(json.dumps(act()))

    def trained(self, folder: Path, **recipe: Any) -> dict[str, Any]:
        """Load, shard, check, take steps; return what was seen."""
        import torch
        from accelerate.utils import fsdp_utils

        from training.loading.equal import check_equal, computed_buffers
        from training.loading.model import load_model
        from training.loading.place import place_model
        from training.loading.readback import sharding
        from training.loading.tokenizer import load_tokenizer

        fsdp_utils.fsdp2_load_full_state_dict = self.own
        self.accelerator.free_memory()  # of the case before: one Accelerator has one model
        here = place_model(job(folder, self.out, **recipe), self.ranks)
        loaded = load_model(here, load_tokenizer(here), self.ranks)
        optimizer = torch.optim.AdamW(loaded.model.parameters(), lr=1e-2)
        model, optimizer = self.accelerator.prepare(loaded.model, optimizer)
        check_equal(computed_buffers(model), self.ranks, "buffer")
        return {
            "way": str(loaded.choice.way),
            "why": loaded.choice.why,
            "tied": tied(model),
            "weights": digests(model),
            "steps": [self._step(model, optimizer, n) for n in range(STEPS)],
            "tied_after": tied(model),
            "head_is_embedding": equal_ends(model),
            "rows": model.get_input_embeddings().weight.to_local().shape[0],
            "buffers": sorted(computed_buffers(model)),
            **sharding(model),
        }

    def refused(self, folder: Path) -> dict[str, Any]:
        from training.spec.lint import Refused

        try:
            return self.trained(folder)
        except Refused as error:
            return {"said": str(error)}

    def _step(self, model: Any, optimizer: Any, number: int) -> list[str]:
        import torch

        generator = torch.Generator().manual_seed(100 * number + self.ranks.rank)
        tokens = torch.randint(ROWS, (2, 16), generator=generator)
        loss = model(input_ids=tokens, labels=tokens).loss
        self.accelerator.backward(loss)
        norm = self.accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return [repr(loss.item()), repr(float(norm))]

    def differing_buffer(self, folder: Path) -> dict[str, Any]:
        from training.endings import Ended
        from training.loading.empty import empty_model
        from training.loading.equal import check_equal, computed_buffers

        model = empty_model(config(folder), dtype=None, attention="sdpa")
        buffers = computed_buffers(model)
        if self.ranks.rank == 1:
            next(iter(buffers.values()))[0] += 1
        try:
            check_equal(buffers, self.ranks, "buffer")
        except Ended as error:
            return {"said": str(error), "reason": error.reason}
        return {}


def config(folder: Path) -> Any:
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(folder)


def tied(model: Any) -> bool:
    return model.get_input_embeddings().weight is model.get_output_embeddings().weight


def equal_ends(model: Any) -> bool:
    import torch

    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    return torch.equal(*(end.weight.to_local() for end in ends))


def digests(model: Any) -> dict[str, str]:
    from training.loading.equal import digest

    return {name: digest(tensor.to_local()) for name, tensor in model.state_dict().items()}


def _rank(out: Path) -> None:
    import torch.distributed as dist

    cases = Cases(out)
    for kind in ("tied", "untied"):
        for way in ("accelerate", "auto", "broadcast"):
            cases.run(f"{kind}-{way}", lambda kind=kind, way=way: cases.trained(out / kind, fsdp={"weights": way}))
    private = out / "tied" if cases.ranks.is_main else out / "nowhere"
    cases.run("head-only", lambda: cases.trained(private))
    theirs = out / "tuned" if cases.ranks.rank == 1 else out / "untied"
    cases.run("tuned", lambda: cases.trained(theirs))
    theirs = out / "configured" if cases.ranks.rank == 1 else out / "untied"
    cases.run("configured", lambda: cases.refused(theirs))
    theirs = out / "tuned-pickled" if cases.ranks.rank == 1 else out / "pickled"
    cases.run("tuned-pickled", lambda: cases.refused(theirs))
    cases.run("pickled", lambda: cases.trained(out / "pickled"))
    cases.run("buffer", lambda: cases.differing_buffer(out / "tied"))
    dist.destroy_process_group()
