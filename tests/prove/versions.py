"""Older versions of transformers, each installed into a folder of its own: the environment's stays as it is.

What is there runs with the environment's torch: `PYTHONPATH` puts the folder before it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LOOK = Path(__file__).with_name("look.py")
COMMON = ("huggingface_hub==0.36.2", "requests", "urllib3", "idna", "certifi", "charset_normalizer")
TOKENIZERS = {"4.45.0": "0.20.3", "4.51.0": "0.21.4"}  # as those versions ask for


def state() -> Path:
    """Return where installed versions are kept."""
    return Path(os.environ.get("SHARDBOARD_STATE") or Path(__file__).parents[2] / ".state") / "transformers"


def installed(version: str, root: Path | None = None) -> Path:
    """Return the folder with that version, installed if it isn't there; raise RuntimeError where that can't be."""
    folder = (root or state()) / version
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=folder.parent))
    wanted = (f"transformers=={version}", f"tokenizers=={TOKENIZERS[version]}", *COMMON)
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target", str(draft)]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(draft)
        raise RuntimeError(f"transformers {version} can't be installed, which needs an index:\n{done.stderr[-2000:]}")
    draft.chmod(0o755)
    try:
        draft.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(draft)
    return folder


def look(folders: list[Path], out: Path, version: Path | None = None) -> dict[str, Any]:
    """Return what look.py prints of `folders`, with the transformers in `version` or the environment's own."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(version or "")}
    command = [sys.executable, str(LOOK), str(out), *map(str, folders)]
    done = subprocess.run(command, env=env, cwd=out.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{folders} in {version or 'our transformers'}:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found
