"""Every digit of a few steps of `tiny`, kept. To keep this machine's too: python -m tests.training.test_golden_losses

Sharded by FSDP2 over gloo, on one rank and two, in bf16 and fp32, packed and not. Equal to the last digit where
what decides about rounding is as it was when they were written (see `surroundings`), and close to it elsewhere.
"""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from itertools import product
from pathlib import Path

import pytest

from tests.training import ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import curve
from training.spec import presets
from training.spec.lint import parse_recipe
from training.spec.recipe import merge

pytestmark = pytest.mark.ranks

FILE = Path(__file__).parent / "golden" / "losses.json"
TOKENIZER = FILE.with_name("tokenizer.json")
STEPS = 5
CASES = [
    f"{ranks}-{precision}-{rows}" for ranks, precision, rows in product((1, 2), ("bf16", "fp32"), ("apart", "packed"))
]
# Relative, on a machine that rounds otherwise: see docs/decisions/0010-exact-numbers.md for what was seen.
CLOSE = {"fp32": 1e-4, "bf16": 5e-3}
FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")


def surroundings() -> dict[str, str]:
    """Return what decides about the last digit: the libraries, and the instructions that their kernels choose by."""
    import torch
    import transformers

    return {
        "torch": torch.__version__.partition("+")[0],
        "transformers": transformers.__version__,
        "machine": platform.machine(),
        "kernels": torch.backends.cpu.get_cpu_capability(),
        "processor": _processor(),
    }


def _processor() -> str:
    """Return vendor and vector instructions, which MKL and oneDNN choose their code by."""
    found = dict(
        line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines() if ":" in line
    )
    fields = {name.strip(): value.strip() for name, value in found.items()}
    flags = set(fields.get("flags", "").split())
    return " ".join([fields.get("vendor_id", "unknown"), *(flag for flag in FLAGS if flag in flags)])


def model(attempts: Attempts) -> Path:
    """Return the tiny model with a tokenizer that is kept: its own learns from this Python's library."""
    folder = attempts.root / "golden-model"
    if not folder.exists():
        shutil.copytree(attempts.model, folder)
        shutil.copy(TOKENIZER, folder / "tokenizer.json")
    return folder


def trained(attempts: Attempts, case: str) -> dict[int, list[str]]:
    """Train and return the printed loss, gradient norm and learning rate of each step."""
    ranks, precision, rows = case.split("-")
    overrides = {
        "precision": precision,
        "data": {"packing": rows == "packed"},
        "optimisation": {"max_steps": STEPS},
        "checkpoints": {"every_steps": STEPS + 1},
    }
    recipe = parse_recipe(merge(presets.load("tiny").recipe.model_dump(mode="json"), overrides))
    launch = attempts.launch(f"golden-{case}", nodes=1, processes=int(ranks), model=model(attempts))
    plans = launch.plans(recipe)
    assert set(ranks_harness.run(plans)) == {0}, Path(plans[0].folder.log).read_text()
    return curve(plans[0].folder)


def kept() -> list[dict[str, dict[str, dict[str, list[str]]]]]:
    """Return every machine's figures: `surroundings` and `curves`, by case and step."""
    return json.loads(FILE.read_text("utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_losses_are_the_kept_ones(attempts: Attempts, case: str) -> None:
    found = {str(step): values for step, values in trained(attempts, case).items()}
    same = [entry["curves"][case] for entry in kept() if entry["surroundings"] == surroundings()]
    if same:
        assert found == same[0]
    for entry in kept():
        assert numbers(found) == pytest.approx(numbers(entry["curves"][case]), rel=CLOSE[case.split("-")[1]])


def numbers(curve: dict[str, list[str]]) -> list[float]:
    return [float(value) for step in curve.values() for value in step]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        attempts = Attempts(Path(folder))
        curves = {case: {str(step): values for step, values in trained(attempts, case).items()} for case in CASES}
    others = [entry for entry in kept() if entry["surroundings"] != surroundings()] if FILE.exists() else []
    FILE.write_text(json.dumps([*others, {"surroundings": surroundings(), "curves": curves}], indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
