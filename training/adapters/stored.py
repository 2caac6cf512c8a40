"""What a checkpoint says of its adapter, beside the shards: PEFT's configuration of the live model."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

from peft import PeftModel

from .names import ADAPTER, CONFIG


def config_text(model: Any) -> str:
    """Return the live adapter's configuration, as PEFT stores it."""
    assert isinstance(model, PeftModel)
    config = copy.copy(model.peft_config[ADAPTER])
    config.inference_mode = True  # what PEFT stores: loading it does not train it
    with tempfile.TemporaryDirectory() as folder:  # PEFT has its own ways of writing it, and no other than into a file
        config.save_pretrained(folder)
        return (Path(folder) / CONFIG).read_text("utf-8")
