"""Rows of the vocabulary that are padding: left out of an export, so that tensors, config and tokenizer agree.

Two kinds are known. `python -m training resize-embeddings` pads a model up to a multiple and writes the rows that
mean something into its config; and a checkpoint may have more rows than its base's config says, up to a multiple of
what frameworks pad to, where the tokenizer knows none of them. Rows that the base model has by its own config are
its own, and stay. So do an adapter's: it belongs to its base.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp

from ..journal import Journal
from ..resize import UNPADDED
from ..spec.events import Kind
from ..spec.job import ExportJob
from .blueprint import WRONG_BASE, Blueprint, blueprint, load_config
from .companions import load_tokenizer
from .distcp import Checkpoint
from .outcome import refuse

MULTIPLES = (8, 16, 32, 64, 128, 256, 512, 1024)  # that rows are padded to, by us and by others


def settled(job: ExportJob, config: Any, tokens: int) -> Any:
    """Return the config of the export; `config` is the base model's, whose tokenizer has so many entries."""
    meant = getattr(config, UNPADDED, None)
    if job.adapter != "none" or meant is None:
        return config
    changed = copy.deepcopy(config)
    delattr(changed, UNPADDED)
    text = changed.get_text_config()
    text.vocab_size = min(text.vocab_size, max(int(meant), tokens))
    return changed


def plan_for(job: ExportJob) -> Blueprint:
    """Return the tensors that the export of `job` has."""
    config = load_config(job)
    if getattr(config, UNPADDED, None) is not None:
        config = settled(job, config, len(load_tokenizer(job)))
    return blueprint(config, trust_remote_code=job.trust_remote_code)


def is_padding(stored: int, rows: int) -> bool:
    """Tell whether `stored` rows can be `rows` of them, padded up to a multiple."""
    return any(stored % multiple == 0 and 0 < stored - rows < multiple for multiple in MULTIPLES)


def cut(plan: Blueprint, checkpoint: Checkpoint) -> None:
    """Leave out of the checkpoint's tensors what is padding by `plan`."""
    for name in plan.vocabulary:
        stored, wanted = checkpoint.tensors.get(name), plan.shapes[name]
        if stored and stored.shape[1:] == wanted[1:] and is_padding(stored.shape[0], wanted[0]):
            checkpoint.cut(name, wanted[0])


def tell(plan: Blueprint, checkpoint: Checkpoint, tokens: int, journal: Journal) -> None:
    """Say what was cut; raise Refused where the tokenizer knows a row of it."""
    for name in sorted(plan.vocabulary & checkpoint.tensors.keys()):
        stored = checkpoint.tensors[name]
        rows, before = stored.shape[0], stored.extent[0]
        if rows < before and tokens > rows:
            what = f"{name} has {before} rows, the config says {rows}, and the tokenizer has {tokens} entries"
            raise refuse("model", what, WRONG_BASE)
        if rows < before:
            text = f"rows {rows} to {before - 1} of {name} are padding, and left out: no token has them"
            journal.emit(Kind.WARNING, text=text)


def load_into(state: dict[str, torch.Tensor], folder: Path) -> None:
    """Fill `state` by torch.distributed.checkpoint; of a tensor with fewer rows than are stored, the first ones."""
    reader = dcp.FileSystemReader(folder)
    stored = reader.read_metadata().state_dict_metadata
    sizes = {name: tuple(getattr(stored.get(f"model.{name}"), "size", tensor.shape)) for name, tensor in state.items()}
    whole = {
        name: tensor if tensor.shape == sizes[name] else tensor.new_empty(sizes[name]) for name, tensor in state.items()
    }
    dcp.load({"model": whole}, storage_reader=reader, no_dist=True)
    for name, tensor in state.items():
        if whole[name] is not tensor:
            tensor.copy_(whole[name][: len(tensor)])
