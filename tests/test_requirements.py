"""Every requirement is pinned, and the constraints agree with all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
FILES = [
    *("webapp/requirements.txt", "training/requirements.txt", "training/requirements-s3.txt"),
    *("requirements.txt", "tests/requirements.txt"),
]
# Installed by commands of their own, without constraints.
APART = ["training/requirements-gpu.txt", "training/samples/requirements.txt"]


def pins(name: str) -> dict[str, str]:
    """Return {package: version} of one file; fail where a line pins no exact version."""
    found = {}
    for line in (ROOT / name).read_text("utf-8").splitlines():
        text = line.split("#")[0].strip()
        if text and not text.startswith("-"):
            requirement = Requirement(text)
            exact = re.fullmatch(r"==([^*]+)", str(requirement.specifier))
            assert exact, f"{name}: {text} is not pinned"
            found[canonicalize_name(requirement.name)] = exact[1]
    return found


@pytest.mark.parametrize("name", FILES)
def test_constraints_agree(name: str) -> None:
    constraints = pins("constraints.txt")
    assert {package: constraints.get(package) for package in pins(name)} == pins(name)


@pytest.mark.parametrize("name", APART)
def test_what_is_installed_apart_is_pinned_too(name: str) -> None:
    assert pins(name)


def test_the_service_needs_no_torch() -> None:
    assert not {"torch", "accelerate", "trl", "peft"} & pins("webapp/requirements.txt").keys()
