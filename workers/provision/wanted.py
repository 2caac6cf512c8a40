"""What an interpreter is made of: the pinned requirements of the very code that is put on nodes."""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath

from django.conf import settings

from training.spec.folder import Scratch
from training.spec.provision import Wanted
from training.spec.venvfolder import VenvFolder
from webapp.fleet.models import Node, Provision
from webapp.fleet.provisioning import pip_env

from ..launch import release


def of(found: Provision) -> Wanted:
    """Return what is wanted; its base has been chosen. Raises Refused where the settings can't be read."""
    return Wanted(
        python=found.base,
        requirements=_released("requirements.txt"),
        constraints=_constraints(),
        gpu=_released("requirements-gpu.txt") if found.gpu else "",
        env=pip_env(),
    )


def folder(node: Node, wanted: Wanted) -> VenvFolder:
    return Scratch(PurePosixPath(node.scratch)).venv(wanted.digest)


def _released(name: str) -> str:
    return release.current().files[f"training/{name}"].decode()


@cache
def _constraints() -> str:
    """Read once, as the release is: an update under our feet would make another environment of the same making."""
    return (settings.BASE_DIR / "constraints.txt").read_text("utf-8")
