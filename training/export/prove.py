"""The proof of an export, run in a fresh process: `python -m training.export.prove <request.json> <result.json>`.

The request is {job, folder, bytes, memory}. The checks, in order; the first two are prove_files's, the last
prove_words's:
keys, index
load        AutoModelForCausalLM.from_pretrained finds no missing, unexpected or mismatched key; dtype as chosen
forward     one forward pass gives finite logits
finite      every value is finite
contents    every value is the checkpoint's, converted
compare     the same pass with the checkpoint's own tensors, loaded by torch.distributed.checkpoint and converted, gives
            the same
tokenizer, generation
Beside the checks, where the checkpoint's own numbers are of another dtype: `to_masters`, how far the logits are from
those that they give in fp32. It is what the conversion costs: a figure to look at, which nothing passes or fails.
A model larger than memory has prove_streamed's in their place, an adapter's run prove_adapter's.
The result is {checks: [{name, passed, detail}], how, largest_difference, to_masters, not_compared, loads_in}. Only one
copy of the model is ever in memory: the second set of weights is loaded into the place of the first.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

import torch

from ..spec.job import ExportJob
from . import flat, older, prove_files, prove_streamed, prove_words
from .handed import CONFIG
from .manifest import MODEL_FOLDER
from .sheet import TOKENS, Sheet, load_exported, logits
from .vocabulary import load_into
from .weights import finite
from .written import WrittenTensors

SLACK = 4  # units in the last place of the largest logit


def main(argv: list[str]) -> int:
    """Run all checks and write the result; 0 means that it was written, not that they passed."""
    warnings.filterwarnings("ignore", message=".*single process.*")  # of loading a checkpoint, which is what we want
    request = json.loads(Path(argv[0]).read_text("utf-8"))
    job, folder = ExportJob.model_validate(request["job"]), Path(request["folder"])
    sheet = Sheet()
    found = _weights(job, folder, request, sheet) if prove_files.check(job, folder, sheet) else {}
    prove_words.check(job, folder, sheet)
    result = {"how": "", "largest_difference": None, "to_masters": None, "not_compared": "", "loads_in": oldest(folder)}
    result |= found
    Path(argv[1]).write_text(json.dumps({**result, "checks": sheet.checks}), "utf-8")
    return 0


def oldest(folder: Path) -> str:
    """Return in which versions this model has been shown to load; empty where nobody has looked."""
    path = folder / CONFIG
    names = json.loads(path.read_text("utf-8")).get("architectures") if path.exists() else None
    version = older.OLDEST.get(names[0]) if names else None
    return f"transformers >= {version}" if version else ""


def _weights(job: ExportJob, folder: Path, request: dict[str, Any], sheet: Sheet) -> dict[str, Any]:
    """Run the checks of the numbers, and return what they say beyond that."""
    size, memory = int(request["bytes"]), int(request["memory"])
    if size > memory:
        difference, why = prove_streamed.weights(job, folder, memory, sheet)
        room = f"the model takes {size:,} bytes of memory, more than was there"  # how much more, no two starts agree
        how = "streamed" if difference is not None else "flat"
        return {"how": how, "largest_difference": difference, "not_compared": f"{room}; {why}" if why else ""}
    if job.adapter == "none":
        return {"how": "loaded", **_loaded(job, folder, memory, sheet)}
    from . import prove_adapter  # PEFT is only needed here

    return {"how": "loaded", "largest_difference": prove_adapter.weights(job, folder, sheet)}


def _loaded(job: ExportJob, folder: Path, memory: int, sheet: Sheet) -> dict[str, Any]:
    """Run load, forward, finite, contents and compare; return the differences, if it came to that."""
    model = load_exported(job, folder, sheet)
    if model is None:
        return {}
    exported = logits(model)
    right = bool(torch.isfinite(exported).all())
    if not sheet.add("forward", right, f"{TOKENS} tokens, logits {'finite' if right else 'not finite'}"):
        return {}
    bad = [name for name, tensor in model.state_dict().items() if not finite(tensor)]
    sheet.add("finite", not bad, f"not finite: {flat.listed(bad)}" if bad else "every value is finite")
    before = _hashes(model)
    _load_checkpoint(model, Path(job.checkpoint))
    differ = [name for name, found in _hashes(model).items() if found != before[name]]
    count = len(before.keys() - model.all_tied_weights_keys.keys())  # as the files count them: a tied one once
    said = f"differ: {flat.listed(differ)}" if differ else f"every value of {count} tensors is the checkpoint's"
    sheet.add("contents", not differ, said)
    difference = _compare(job, exported, logits(model), sheet, equal=not differ)
    return {"largest_difference": difference, "to_masters": _to_masters(job, folder, model, exported, memory)}


def _hashes(model: Any) -> dict[str, str]:
    """Return the hash of each tensor's bytes; a forward pass of a few tokens has no use for most of an embedding."""
    state = model.state_dict()
    views = {n: t.contiguous().reshape(-1).view(torch.uint8).numpy() for n, t in state.items() if t.numel()}
    with ThreadPoolExecutor(2) as pool:  # hashing lets go of Python's lock
        return dict(zip(views, pool.map(lambda view: hashlib.sha256(view).hexdigest(), views.values()), strict=True))


def _load_checkpoint(model: Any, checkpoint: Path) -> None:
    """Replace every tensor by the checkpoint's; NaN beforehand, so that one left out can't go unseen."""
    state = {k: v for k, v in model.state_dict().items() if k not in model.all_tied_weights_keys}
    for tensor in state.values():
        if tensor.is_floating_point():
            tensor.fill_(torch.nan)
    load_into(state, checkpoint / MODEL_FOLDER)


def _compare(job: ExportJob, exported: torch.Tensor, reference: torch.Tensor, sheet: Sheet, *, equal: bool) -> float:
    """Compare; equal numbers give equal logits, but for the last places where a library's kernels don't care."""
    difference = float((exported - reference).abs().max())
    rounding = SLACK * torch.finfo(getattr(torch, job.dtype)).eps * float(exported.abs().max())
    allowed = rounding if equal else 0.0
    text = f"largest difference of a logit to the checkpoint's own, converted to {job.dtype}: {difference:g}"
    sheet.add("compare", difference <= allowed, f"{text} (allowed: {allowed:g})")  # NaN is not <= anything
    return difference


def _to_masters(
    job: ExportJob, folder: Path, model: Any, exported: torch.Tensor, memory: int
) -> dict[str, float | int] | None:
    """Return {difference, largest, same, places}: of logits, their largest, and of how many places the likeliest next
    token is the same. None where there is nothing to compare with, or no memory to do it in.
    """
    size = 4 * sum(prod(entry.shape) for entry in WrittenTensors(folder).tensors.values())
    if job.dtype == "float32" or size > memory:
        return None
    model.float()
    _load_checkpoint(model, Path(job.checkpoint))
    whole = logits(model)
    return {
        "difference": float((exported - whole).abs().max()),
        "largest": float(whole.abs().max()),
        "same": int((exported.argmax(-1) == whole.argmax(-1)).sum()),
        "places": TOKENS,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
