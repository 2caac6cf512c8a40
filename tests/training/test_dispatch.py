"""python -m training on a node that has nothing but Python yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from training.__main__ import COMMANDS, command, main

BARE = """
import sys
for name in ("torch", "transformers", "accelerate", "pydantic", "yaml"):
    sys.modules[name] = None
import runpy
sys.argv = ["training", "--help"]
runpy.run_module("training", run_name="__main__", alter_sys=True)
"""


def test_help_works_on_a_bare_node() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BARE], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


def test_every_command_is_there() -> None:
    assert all(callable(command(name)) for name in COMMANDS)


def test_an_unknown_command_is_named(capsys: object) -> None:
    assert main(["fnord"]) == 2
    assert main([]) == 2
