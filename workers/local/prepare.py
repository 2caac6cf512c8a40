"""What must be there before anything starts: sample models, sample data, tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .place import PROJECT, CannotStart, Place
from .say import say

# name in the site: (name of the sample, what it is)
MODELS = {
    "SmolLM2-135M-Instruct": ("smollm2", "SmolLM2-135M-Instruct in bf16"),
    "tiny-llama-5M": ("tiny", "a 5M-parameter Llama"),
}
DATASET = "code-chat"


def samples(place: Place) -> None:
    """Build what is missing; each folder appears whole or not at all."""
    for name, (sample, what) in MODELS.items():
        _build(place.model(name), ("sample-model", sample), what)
    _build(place.samples(DATASET), ("sample-data", DATASET), "a data set of the standard library's functions")


def _build(folder: Path, command: tuple[str, str], what: str) -> None:
    if folder.is_dir():
        return
    say(f"building {what}: once, in half a minute on a machine with nothing else to do")
    done = subprocess.run([sys.executable, "-m", "training", *command, str(folder)], cwd=PROJECT, check=False)
    if done.returncode:
        raise CannotStart(f"`python -m training {' '.join(command)} {folder}` failed; its reason stands above.")


def tables() -> None:
    """Migrate; a fraction of a second where nothing changed."""
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0, interactive=False)
    connection.close()
