"""The proof of an export, run in a fresh process: `python -m training.export.prove <request.json> <result.json>`.

The request is {job, folder, bytes, memory}. The checks, in order:
load       AutoModelForCausalLM.from_pretrained finds no missing, unexpected or mismatched key; dtype as chosen
forward    one forward pass gives finite logits
compare    the same pass with the checkpoint's own tensors, loaded by torch.distributed.checkpoint, gives the same
tokenizer  encodes, decodes and renders a chat like the base model's, with the chat template that was trained with
A model larger than memory is not loaded; these two stand in for the first three:
headers    names, shapes and dtypes in the files are as the config has them
contents   every value in the files is the checkpoint's, converted
An adapter's run has its own first three: see prove_adapter.
The result is {checks: [{name, passed, detail}], largest_difference, not_compared}. Only one copy of the model is ever
in memory: the second set of weights is loaded into the place of the first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from transformers import AutoTokenizer

from ..spec.job import ExportJob
from . import flat
from .companions import load_tokenizer
from .manifest import MODEL_FOLDER
from .sheet import TOKENS, Sheet, load_exported, logits

TEXT = "def add(a, b):\n    return a + b  # 2 + 2 = 4, naïve café\n"
CHAT = [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "4"}]
SLACK = 4  # units in the last place of the largest logit


def main(argv: list[str]) -> int:
    """Run all checks and write the result; 0 means that it was written, not that they passed."""
    request = json.loads(Path(argv[0]).read_text("utf-8"))
    job = ExportJob.model_validate(request["job"])
    sheet = Sheet()
    result: dict[str, Any] = {"largest_difference": None, "not_compared": ""}
    if request["bytes"] > request["memory"]:
        result["not_compared"] = (
            f"the model takes {request['bytes']:,} bytes of memory and {request['memory']:,} are available"
        )
        _flat(job, Path(request["folder"]), sheet)
    else:
        result["largest_difference"] = _weights(job, Path(request["folder"]), sheet)
    _tokenizer(job, Path(request["folder"]), sheet)
    Path(argv[1]).write_text(json.dumps(result | {"checks": sheet.checks}), "utf-8")
    return 0


def _weights(job: ExportJob, folder: Path, sheet: Sheet) -> float | None:
    """Run load, forward and compare; return the largest difference of a logit, None where it didn't come to that."""
    if job.adapter != "none":
        from . import prove_adapter  # PEFT is only needed here

        return prove_adapter.weights(job, folder, sheet)
    model = load_exported(job, folder, sheet)
    if model is None:
        return None
    exported = logits(model)
    finite = bool(torch.isfinite(exported).all())
    if not sheet.add("forward", finite, f"{TOKENS} tokens, logits {'finite' if finite else 'not finite'}"):
        return None
    _load_checkpoint(model, Path(job.checkpoint))
    return _compare(exported, logits(model), model.dtype, sheet)


def _flat(job: ExportJob, folder: Path, sheet: Sheet) -> None:
    """Run headers and contents, for a model larger than memory."""
    differ = flat.headers_differ(job, folder)
    if not sheet.add("headers", not differ, f"differ: {flat.listed(differ)}" if differ else "as the config has them"):
        return
    differ = flat.contents_differ(job, folder)
    sheet.add("contents", not differ, f"differ: {flat.listed(differ)}" if differ else "each equals the checkpoint's")


def _load_checkpoint(model: Any, checkpoint: Path) -> None:
    """Replace every tensor by the checkpoint's; NaN beforehand, so that one left out can't go unseen."""
    state = {k: v for k, v in model.state_dict().items() if k not in model.all_tied_weights_keys}
    for tensor in state.values():
        if tensor.is_floating_point():
            tensor.fill_(torch.nan)
    dcp.load({"model": state}, checkpoint_id=checkpoint / MODEL_FOLDER, no_dist=True)


def _compare(exported: torch.Tensor, reference: torch.Tensor, dtype: torch.dtype, sheet: Sheet) -> float:
    difference = float((exported - reference).abs().max())
    allowed = SLACK * torch.finfo(dtype).eps * float(exported.abs().max())
    detail = f"largest difference of a logit to the checkpoint's own: {difference:g} (allowed: {allowed:g})"
    sheet.add("compare", difference <= allowed, detail)  # NaN is not <= anything
    return difference


def _tokenizer(job: ExportJob, folder: Path, sheet: Sheet) -> None:
    base = load_tokenizer(job)
    ours = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=job.trust_remote_code)
    seen, wanted = _behaviour(ours), _behaviour(base)
    differ = [name for name, value in wanted.items() if seen[name] != value]
    exact = "exactly" if seen["decoded"] == TEXT else "as the base model's does, which is not exactly"
    detail = f"differs from the base model's in {', '.join(differ)}" if differ else f"gives a text back {exact}"
    chat = "with a chat template" if seen["template"] else "without a chat template"
    if job.template:
        chat = "with the chat template that was trained with"
    sheet.add("tokenizer", not differ, f"{detail}; {chat}")


def _behaviour(tokenizer: Any) -> dict[str, Any]:
    ids = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    return {
        "ids": ids,
        "decoded": tokenizer.decode(ids),
        "special tokens": tokenizer.special_tokens_map,
        "chat": _rendered(tokenizer) if tokenizer.chat_template else "",
        "template": tokenizer.chat_template,
    }


def _rendered(tokenizer: Any) -> str:
    try:
        return str(tokenizer.apply_chat_template(CHAT, tokenize=False))
    except Exception as error:  # noqa: BLE001  a template is a program of its own, which may want other turns
        return f"refused: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
