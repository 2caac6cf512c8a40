"""What only a GPU can show, as a table, in under five minutes: python -m tests.gpu.check

FSDP1 and FSDP2 train the tiny model, save sharded, resume, export; attention, bf16, the paged optimizer. One GPU will
do, of which FSDP1 has nothing to save in shards; on two it has.
Needs the node's packages (training/requirements.txt) and no network: the model is made in place. Exit status: 0
where every row is ok or left out for a package that isn't there, 1 where one failed, 2 where nothing can be checked.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from .table import checked, status

NEEDED = ("torch", "transformers", "accelerate", "trl", "datasets", "peft", "safetensors", "pydantic", "yaml")


def main() -> int:
    if why := obstacle():
        print(f"gpu-check: {why}", file=sys.stderr)
        return 2
    import torch

    from .bench import Bench
    from .checks import checks

    print(place(), flush=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="shardboard-gpu-") as folder:
        for row in checked(checks(Bench(Path(folder) / "bench", gpus=torch.cuda.device_count()))):
            rows.append(row)
            print(row, flush=True)
    failed = sum(row.verdict == "failed" for row in rows)
    print(f"{len(rows)} checks, {failed} failed, {sum(row.seconds for row in rows):.0f} s")
    return status(rows)


def obstacle() -> str:
    """Return what keeps the checks from being made here; empty: nothing."""
    if missing := [name for name in NEEDED if not find_spec(name)]:
        return f"not installed: {', '.join(missing)}. pip install -r training/requirements.txt -c constraints.txt"
    import torch

    if torch.version.cuda is None and torch.version.hip is None:
        return (
            f"this torch ({torch.__version__}) is built without GPU support; install the build for this machine's GPU"
        )
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} sees no GPU here; nvidia-smi says whether the driver does"
    return ""


def place() -> str:
    """Name the GPU and the libraries."""
    import torch
    import transformers

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return (
        f"{torch.cuda.get_device_name(0)}{f' (CUDA_VISIBLE_DEVICES={visible})' if visible else ''}, torch"
        f" {torch.__version__}, transformers {transformers.__version__}"
    )


if __name__ == "__main__":
    sys.exit(main())
