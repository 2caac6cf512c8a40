"""The environment of the ranks: what a run needs, and what the operator gives all of them (SHARDBOARD_RANK_ENV).

That setting names a file of KEY=value lines, such as HF_TOKEN and NCCL_*. It is read anew at each launch and each
export; its values go into the env file of every node and are shown, logged and stored nowhere.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from training.spec import envfile
from training.spec.lint import Problem, Refused

SETTING = "SHARDBOARD_RANK_ENV"
HIDDEN = "(hidden)"


def environment(model: str) -> dict[str, str]:
    """Return settings for the ranks; the operator's come last. Raises Refused with file and line, never a value."""
    return own(model) | operators()


def shown(model: str) -> dict[str, str]:
    """Return the same with the operator's values hidden."""
    return own(model) | dict.fromkeys(operators(), HIDDEN)


def own(model: str) -> dict[str, str]:
    """A model in a folder needs no hub."""
    return {"HF_HUB_OFFLINE": "1"} if model.startswith("/") else {}


def operators() -> dict[str, str]:
    """Read the operator's file; nothing where none is named. Raises Refused."""
    if not settings.RANK_ENV:
        return {}
    path = Path(settings.RANK_ENV)
    try:
        content = path.read_bytes()
    except OSError as error:
        why, fix = f"{path}: {error.strerror}", "Let the service read that file, or unset the setting."
        raise Refused([Problem(SETTING, why, fix)]) from None
    try:
        return envfile.parse(content.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused([Problem(f"{path} line {line}", "it is not UTF-8", "Save the file as UTF-8.")]) from None
