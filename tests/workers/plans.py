"""In the place of a node's `plan-export -`, which refuses the text that these tests have for shards.

Says that all can work, with these figures; what is different is read from <scratch>/behave.json, under `plan`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

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
    change = json.loads(behave.read_text("utf-8")).get("plan", {}) if behave.exists() else {}
    print(json.dumps(plan.model_dump(mode="json") | change))
    return 1 if change.get("problems") else 0


if __name__ == "__main__":
    sys.exit(main())
