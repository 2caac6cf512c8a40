"""What the proofs share: the list of checks, loading what was exported, one forward pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from ..spec.job import ExportJob

TOKENS = 24


class Sheet:
    """The checks so far."""

    def __init__(self) -> None:
        self.checks: list[dict[str, Any]] = []

    def add(self, name: str, passed: bool, detail: str) -> bool:
        self.checks.append({"name": name, "passed": passed, "detail": detail})
        return passed


def load_exported(job: ExportJob, folder: Path, sheet: Sheet) -> Any:
    """Return the model in `folder`; None where a key is missing, left over or misshapen, or the dtype is another."""
    model, info = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype="auto",
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # so that they come back by name, to be refused below
        local_files_only=True,
        trust_remote_code=job.trust_remote_code,
    )
    wrong = {kind: sorted(map(str, names)) for kind, names in info.items() if names}
    dtypes = {str(t.dtype).removeprefix("torch.") for t in model.parameters() if t.is_floating_point()}
    detail = f"{wrong}" if wrong else f"no missing, unexpected or mismatched key; {', '.join(sorted(dtypes))}"
    return model.eval() if sheet.add("load", not wrong and dtypes == {job.dtype}, detail) else None


def probe_ids(rows: int) -> torch.Tensor:
    """Return the tokens of the forward passes, of a vocabulary of so many."""
    return (torch.arange(TOKENS) * 7919 + 1) % rows


def logits(model: Any) -> torch.Tensor:
    """Return the logits (1, TOKENS, vocabulary) of one forward pass, in fp32."""
    ids = probe_ids(model.get_input_embeddings().weight.shape[0])
    with torch.inference_mode():
        out: torch.Tensor = model(ids[None], use_cache=False).logits
    return out.float()
