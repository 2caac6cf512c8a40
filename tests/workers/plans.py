"""In the place of a node's `plan-export -`, which refuses the text that these tests have for shards.

Says that all can work, with these figures; what is different is read from <scratch>/behave.json, under `plan`.
`planning` there: `dies`, or `hangs` until that is no longer said, with a file `asked` beside it meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from training.spec.exportplan import Disk, ExportPlan, Memory, PlannedFile, Rates, Reading, Seconds, Writing
from training.spec.job import PlanJob


def main() -> int:
    asked = PlanJob.model_validate_json(sys.stdin.buffer.read())
    plan = ExportPlan(
        reading=Reading(checkpoint="checkpoint-4", step=4, files=4, bytes=1000, brought=sum(asked.coming.values())),
        writing=Writing(
            folder=asked.job.out,
            asked=asked.job.dtype,
            dtype="bfloat16" if asked.job.dtype == "base" else asked.job.dtype,
            tensors=3,
            bytes=500,
            files=(PlannedFile(name="model.safetensors", size=500),),
            sizes={"bfloat16": 500, "float16": 500, "float32": 1000},
        ),
        memory=Memory(stream=10, prove=20, available=100),
        disk=Disk(free=10**9, needed=10**6),
        rates=Rates(read=100, write=100, probed=64),
        seconds=Seconds(start=5, check=10, stream=20, prove=5),
    )
    behave = Path(asked.job.out).parents[4] / "behave.json"
    how = _read(behave)
    if how.get("planning") == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    while how.get("planning") == "hangs":
        behave.with_name("asked").touch()
        time.sleep(0.02)
        how = _read(behave)
    change = how.get("plan", {})
    print(json.dumps(plan.model_dump(mode="json") | change))
    return 1 if change.get("problems") else 0


def _read(behave: Path) -> dict[str, Any]:
    return json.loads(behave.read_text("utf-8")) if behave.exists() else {}


if __name__ == "__main__":
    sys.exit(main())
