"""What `accelerate launch` would run, without torch: writes the lines and files of a training and obeys as one does.

How it behaves is read from <scratch>/behave.json, by node rank where that matters:
{"steps": n, "pace": seconds a step, "fail": {"<rank>": step}, "reason", "text": of the failure, "deaf": ignores stops,
"save_waits": a save's manifest is written once <scratch>/go is there}
"""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import time
from pathlib import Path

from training.journal import Journal
from training.saving.checkpoints import FileFacts, Manifest, write_manifest
from training.spec.events import Kind
from training.spec.folder import MODEL_FOLDER
from training.spec.job import TrainJob


def main() -> int:
    folder = Path(sys.argv[-1]).parent
    job = TrainJob.model_validate_json(Path(sys.argv[-1]).read_text("utf-8"))
    scratch = Path(job.checkpoints).parents[3]
    behave = json.loads((scratch / "behave.json").read_text("utf-8")) if (scratch / "behave.json").exists() else {}
    if behave.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    journal = Journal(Path(job.events))
    print(f"rank {job.node_rank} at work\n10%\r20%\r30%")
    sys.stdout.flush()
    steps, rank = behave.get("steps", 4), job.node_rank
    if rank == 0:
        journal.emit(Kind.STARTED, world_size=job.nodes, nodes=job.nodes, total_steps=steps, parameters=5)
    for step in range(_first(job), steps + 1):
        time.sleep(behave.get("pace", 0.01))
        if behave.get("fail", {}).get(str(rank)) == step:
            journal.emit(
                Kind.FINISHED, step=step, reason=behave.get("reason", "rank_failed"), text=behave.get("text", "boom")
            )
            return 1
        if rank == 0:
            journal.emit(Kind.METRICS, step=step, loss=1.0 / step, learning_rate=1e-4)
        stopping = (folder / "stop").exists() and not behave.get("deaf")
        if step % 2 == 0 or stopping:
            save(job, journal, step, scratch / "go" if behave.get("save_waits") else scratch)
        if stopping:
            journal.emit(Kind.FINISHED, step=step, reason="stopped")
            return 0
    journal.emit(Kind.FINISHED, step=steps, reason="completed")
    return 0


def _first(job: TrainJob) -> int:
    if not job.resume_from:
        return 1
    shards = [Path(job.resume_from) / f"shard-{rank}" for rank in range(job.nodes)]
    missing = [shard.name for shard in shards if not shard.is_file()]
    if missing:
        raise SystemExit(f"shards are missing: {missing}")
    return int(job.resume_from.rpartition("-")[2]) + 1


def save(job: TrainJob, journal: Journal, step: int, go: Path) -> None:
    folder = Path(job.checkpoints) / f"checkpoint-{step}"
    (folder / MODEL_FOLDER).mkdir(parents=True, exist_ok=True)
    files = {}
    for name in (f"shard-{job.node_rank}", f"{MODEL_FOLDER}/__{job.node_rank}_0.distcp"):
        content = f"{name} at {step}\n".encode() * 1000
        (folder / name).write_bytes(content)
        files[name] = FileFacts(size=len(content), sha256=hashlib.sha256(content).hexdigest())
    while not go.exists():
        time.sleep(0.01)
    part = Manifest(step=step, node_rank=job.node_rank, nodes=job.nodes, world_size=job.nodes, save="s", files=files)
    write_manifest(folder, part)
    journal.emit(
        Kind.CHECKPOINT, step=step, name=folder.name, node_rank=job.node_rank, nodes=job.nodes,
        world_size=job.nodes, bytes=part.bytes, files=len(files),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
