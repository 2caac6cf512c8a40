"""What training claims, looked at where it runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.training import folders
from training.nvml import Gpus
from training.spec.events import parse

from .bench import SAVED, STEPS, Bench, Trained
from .table import Failed, LeftOut

Check = tuple[str, Callable[[], str]]
CLOSE = 1e-4  # relative: what kernels that add up in no fixed order may differ by
ROUNDED = 1e-2  # relative: bf16 beside fp32


def checks(bench: Bench) -> list[Check]:
    """Return all checks that this place can make: FSDP1, the paged optimizer only on a GPU."""
    versions = (1, 2) if bench.gpus else (2,)
    found: list[Check] = []
    for version in versions:
        for text, check in (("trains", trains), ("sharded save", saves), ("resume", resumes), ("full export", exports)):
            found.append((f"FSDP{version}: {text}", functools.partial(check, bench, version)))
    found += [("bf16", lambda: bf16(bench)), ("attention", lambda: attention(bench))]
    return [*found, ("paged optimizer", lambda: paged(bench)), ("samples", samples)] if bench.gpus else found


def samples() -> str:
    """What the driver really knows of each card; memory and load it must."""
    gpus = Gpus()
    cards = gpus.take()
    if not cards:
        raise Failed(gpus.problem or "the driver names no GPU")
    for card in cards:
        if missing := [name for name in ("used", "total", "load") if card[name] is None]:
            raise Failed(f"GPU {card['index']} does not say {', '.join(missing)}")
    unknown = sorted({name for card in cards for name, value in card.items() if value is None})
    return f"{len(cards)} cards" + (f", which don't know {', '.join(unknown)}" if unknown else ", every figure known")


def asked(version: int, **more: Any) -> dict[str, Any]:
    return {"fsdp": {"version": version}, "precision": "bf16", "model": {"attention": "auto"}, **more}


def trains(bench: Bench, version: int) -> str:
    return _falling(bench.trained(**asked(version)))


def _falling(trained: Trained) -> str:
    losses = trained.losses
    if len(losses) != STEPS or not all(map(math.isfinite, losses)) or losses[-1] > losses[0] - 0.5:
        raise Failed(f"losses {losses}")
    return f"loss {losses[0]:.3f} to {losses[-1]:.3f} in {STEPS} steps"


def _saved(bench: Bench, version: int) -> Trained:
    """Return a training that has saved shards."""
    if version == bench.ranks(version) == 1:
        raise LeftOut("on one GPU FSDP1 shards nothing, and torch writes no sharded checkpoint of that")
    return bench.trained(**asked(version))


def saves(bench: Bench, version: int) -> str:
    folder = _saved(bench, version).checkpoints / f"checkpoint-{SAVED}"
    if damage := folders.damage(folder):
        raise Failed("; ".join(damage))
    shards = [name for name in folders.file_names(folder) if name.endswith(".distcp")]
    if not shards:
        raise Failed(f"no shards among {folders.file_names(folder)}")
    return f"{len(shards)} shards, every byte as its manifest says"


def resumes(bench: Bench, version: int) -> str:
    unbroken = {step: values for step, values in _saved(bench, version).curve.items() if step > SAVED}
    found = bench.trained(resumed=True, **asked(version)).curve
    if found == unbroken:
        return f"steps {SAVED + 1} to {STEPS} equal the unbroken run's to the last digit"
    if found.keys() != unbroken.keys():
        raise Failed(f"steps {list(found)} in place of {list(unbroken)}")
    worst = max(_apart(found[step], unbroken[step]) for step in unbroken)
    if not worst <= CLOSE:
        raise Failed(f"off by {worst:.1e} relative")
    return f"within {worst:.1e} of the unbroken run, not to the last digit"


def _apart(found: list[str], wanted: list[str]) -> float:
    return max(abs(float(f) - float(w)) / max(abs(float(w)), 1e-12) for f, w in zip(found, wanted, strict=True))


def exports(bench: Bench, version: int) -> str:
    from transformers import AutoModelForCausalLM

    from training.export import cli
    from training.spec.job import ExportJob

    trained = _saved(bench, version)
    out = bench.root / f"export{version}"
    job = ExportJob(
        checkpoint=str(trained.checkpoints / f"checkpoint-{STEPS}"),
        model=str(bench.model),
        out=str(out / "model"),
        events=str(out / "events.jsonl"),
    )
    out.mkdir()
    if cli.run(job):
        raise Failed(str(parse(Path(job.events).read_bytes().splitlines()[-1]).data["text"]))
    model, told = AutoModelForCausalLM.from_pretrained(job.out, output_loading_info=True)
    if odd := {name: keys for name, keys in told.items() if keys}:
        raise Failed(f"from_pretrained says {odd}")
    return f"{model.num_parameters()} parameters loaded, no key missing or unexpected"


def bf16(bench: Bench) -> str:
    """Masters stay fp32, and what is computed in bf16 is near what fp32 gives."""
    half = bench.trained(**asked(2))
    whole = bench.trained(**asked(2, precision="fp32", model={"attention": "sdpa"}))
    masters = half.started["master_dtype"]
    worst = max(abs(h - w) / w for h, w in zip(half.losses, whole.losses, strict=True))
    if masters != "float32" or not worst <= ROUNDED:
        raise Failed(f"master weights {masters}, losses {worst:.1e} from fp32's")
    return f"master weights {masters}, losses within {worst:.1e} of fp32's"


def attention(bench: Bench) -> str:
    used = bench.trained(**asked(2)).started["attention"]
    wanted = "flash_attention_2" if bench.gpus and find_spec("flash_attn") else "sdpa"
    if used != wanted:
        raise Failed(f"{used} in place of {wanted}")
    return used if used != "sdpa" else "sdpa: flash_attn is not installed"


def paged(bench: Bench) -> str:
    if not find_spec("bitsandbytes"):
        raise LeftOut("bitsandbytes is not installed")
    return _falling(bench.trained(**asked(1, optimisation={"optimizer": "paged_adamw_32bit"})))
