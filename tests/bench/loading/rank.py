"""One rank of the loading benchmark: python -m tests.bench.loading.rank MODEL FOLDER WAY

Everything is imported and the ranks have met before the clock starts. Writes FOLDER/<rank>.ready, with the unique
memory of the process alone, waits for FOLDER/go, loads and shards, writes FOLDER/<rank>.done with the seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import psutil
import torch
import torch.distributed as dist
from accelerate import Accelerator

from tests.training.launch import recipe
from training.cpu_fsdp import shard_on_cpu
from training.loading import model as loading
from training.loading.readback import peak_ram
from training.loading.tokenizer import load_tokenizer
from training.ranks import Ranks
from training.spec.job import TrainJob


def main(model: str, folder: Path, way: str) -> None:
    rank = int(os.environ["RANK"])
    loading.check_fits = lambda *_: None  # it would refuse accelerate's way here; the watch ends it in time
    shard_on_cpu()
    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    ranks = Ranks(0, rank)
    job = TrainJob(
        recipe=recipe(precision="bf16", fsdp={"weights": way}),
        model=model,
        train="train.jsonl",
        checkpoints="checkpoints",
        events="events.jsonl",
        nodes=1,
        node_rank=0,
    )
    tokenizer = load_tokenizer(job)
    dist.barrier()  # gloo's buffers are there before the process is weighed
    tell(folder / f"{rank}.ready", alone=psutil.Process().memory_full_info().uss)
    while not (folder / "go").exists():
        time.sleep(0.01)
    begun = time.monotonic()
    loaded = loading.load_model(job, tokenizer, ranks)
    optimizer = torch.optim.AdamW(loaded.model.parameters())
    sharded, _ = accelerator.prepare(loaded.model, optimizer)
    ranks.gather(None)
    seconds = time.monotonic() - begun
    shard = sum(p.to_local().nbytes for p in sharded.parameters())
    tell(folder / f"{rank}.done", seconds=seconds, shard=shard, way=loaded.choice.way, peak=peak_ram(ranks)[rank])
    while not (folder / "leave").exists():
        time.sleep(0.01)
    ranks.gather(None)
    dist.destroy_process_group()


def tell(path: Path, **facts: object) -> None:
    work = path.with_suffix(".work")
    work.write_text(json.dumps(facts))
    work.replace(path)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
