"""In the place of `training export`, for the steps around it: writes a folder, and is killed while it does. Its record
stays, as of one that is killed right after it told its end.

<scratch>/behave.json says `kills`: of how many starts nothing but a half-made folder is left; `waits`: it never ends,
and hears nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

from training.journal import Journal
from training.spec.events import Kind
from training.spec.folder import EXPORT_RECORD, partial_name
from training.spec.job import ExportJob


def main() -> int:
    job = ExportJob.model_validate_json(Path(sys.argv[-1]).read_text("utf-8"))
    behave = json.loads((Path(job.out).parents[4] / "behave.json").read_text("utf-8"))
    journal, out = Journal(Path(job.events)), Path(job.out)
    partial = out.with_name(partial_name(out.name))
    partial.mkdir(exist_ok=True)
    with (partial / "model.safetensors").open("ab") as file:
        file.write(b"x")
    written = (partial / "model.safetensors").read_bytes()
    noted = {"model.safetensors": {"size": len(written), "sha256": ""}}
    (partial / EXPORT_RECORD).write_text(json.dumps({"fingerprint": "", "files": noted}))
    journal.emit(Kind.PROGRESS, phase="stream", done=len(written), total=100)
    if behave.get("waits"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if len(written) <= behave.get("kills", 0):
        os.kill(os.getpid(), signal.SIGKILL)
    partial.rename(out)
    entry = {"name": "model.safetensors", "size": len(written), "sha256": hashlib.sha256(written).hexdigest()}
    journal.emit(Kind.EXPORTED, bytes=len(written), dtype="bfloat16", files=[entry], proof={"checks": []})
    journal.emit(Kind.FINISHED, reason="completed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
