"""training.spec stands alone: the site and the workers take it into processes that have no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ALONE = """
import pkgutil, sys
from importlib import import_module
import training.spec
for module in pkgutil.walk_packages(training.spec.__path__, "training.spec."):
    import_module(module.name)
heavy = {"torch", "transformers", "django", "webapp", "workers"} & sys.modules.keys()
ours = {name for name in sys.modules if name.startswith("training.") and not name.startswith("training.spec")}
print(*sorted(heavy | ours))
"""


def test_spec_imports_nothing_heavy_and_nothing_else_of_ours() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_asking_how_a_job_stands_waits_for_no_recipe() -> None:
    """A node is asked so at each stop: pydantic and the recipe took four fifths of the answer's time."""
    root = Path(__file__).parents[2]
    script = "import sys, training.status, training.signals; print(*({'pydantic', 'yaml'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
