"""Give a model as many rows as its tokenizer has entries: python -m training resize-embeddings --model A --out B

Reads the folder A (or hub id), writes the folder B, which must not exist. New rows start near the mean of the old
ones. The model is held once in memory, in the number format of its files.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from .spec.lint import Problem, Refused

SEED = 0
UNPADDED = "unpadded_vocab_size"  # in the config: rows that mean something; an export leaves out those behind them
MULTIPLE = 64  # rows in all are a multiple of it: GPUs compute those faster


def main(argv: list[str]) -> int:
    """Resize; 1 with the reason where it can't be."""
    parser = argparse.ArgumentParser(prog="python -m training resize-embeddings", description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="folder or hub id of the model with its tokenizer")
    parser.add_argument("--out", type=Path, required=True, help="folder to write; must not exist")
    options = parser.parse_args(argv)
    try:
        before, after = resize(options.model, options.out)
    except (ValueError, OSError) as error:
        print(f"resize-embeddings: {error}", file=sys.stderr)
        return 1
    print(f"{before} rows are now {after}: {options.out}")
    return 0


def resize(model: str, out: Path) -> tuple[int, int]:
    """Write the resized model; return the rows before and after. Raises Refused, OSError."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if out.exists():
        raise Refused([Problem("--out", f"{out} exists", "Name a new folder.")])
    tokenizer = AutoTokenizer.from_pretrained(model)
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype="auto")
    before = loaded.get_input_embeddings().weight.shape[0]
    if len(tokenizer) <= before:
        raise Refused(
            [Problem("--model", f"its {before} rows hold the tokenizer's {len(tokenizer)}", "Train it as is.")]
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        loaded.resize_token_embeddings(len(tokenizer), pad_to_multiple_of=MULTIPLE)
    setattr(loaded.config, UNPADDED, len(tokenizer))
    _write(loaded, tokenizer, out)
    return before, loaded.get_input_embeddings().weight.shape[0]


def _write(model: object, tokenizer: object, out: Path) -> None:
    """Write to a temporary name, then rename."""
    work = out.with_name(f".{out.name}.work")
    shutil.rmtree(work, ignore_errors=True)
    for part in (model, tokenizer):
        part.save_pretrained(work)  # type: ignore[attr-defined]
    work.rename(out)
