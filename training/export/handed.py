"""The base model's own files, handed on where training changed nothing of them.

What a library writes anew is in its own version's manner: an older one may fail on it, or read it as something else.
So config.json is the base's with what is different now, and the tokenizer's files are the base's byte for byte but
for tokenizer_config.json, in which the chat template stands, as older versions look for it there alone.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM
from transformers.utils import cached_file

from ..resize import UNPADDED
from ..spec.job import ExportJob
from . import older
from .blueprint import load_config

CONFIG, TOKENIZER, TEMPLATE = "config.json", "tokenizer_config.json", "chat_template.jinja"
FAST = "tokenizer.json"
PARTS = ("normalizer", "pre_tokenizer", "model", "decoder")  # of it; what is added before and after follows settings
# Beside those that the tokenizer's class names; more than one kind of file may lie in a model's folder.
VOCABULARY = (
    *("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "vocab.txt", "spiece.model"),
    *("sentencepiece.bpe.model", "special_tokens_map.json", "added_tokens.json"),
)
OF_HUB = ("auto_map",)  # names code by the hub id, which the base's own file, lying there, needn't


def base_file(job: ExportJob, name: str) -> Path | None:
    """Return where a file of the base model lies on this node; None where the base has none of this name."""
    try:
        found = cached_file(job.model, name, revision=job.revision or None, _raise_exceptions_for_missing_entries=False)
    except OSError:
        return None
    return Path(found) if found else None


def write_config(job: ExportJob, config: Any, folder: Path) -> None:
    """Write config.json: the base's own with what `config` has otherwise, readable by older versions too."""
    path = base_file(job, CONFIG)
    own: dict[str, Any] = json.loads(path.read_text("utf-8")) if path else {}
    before, now = load_config(job).to_dict(), config.to_dict()
    changed = {name: value for name, value in now.items() if name not in before or before[name] != value}
    if not Path(job.model).is_dir():
        changed |= {name: now[name] for name in OF_HUB if name in now}
    found = own | {name: value for name, value in changed.items() if not name.startswith("_")}
    found = {name: value for name, value in found.items() if name != UNPADDED or name in now}
    if not found.get("architectures"):
        found["architectures"] = [_architecture(config)]
    _write(folder / CONFIG, older.config(found, job.dtype))


def write_tokenizer(job: ExportJob, tokenizer: Any, folder: Path) -> None:
    """Write the tokenizer's files: the base's, or what its class saves where the base's are not all there are."""
    names = dict.fromkeys((TOKENIZER, *VOCABULARY, *getattr(tokenizer, "vocab_files_names", {}).values()))
    found = {name: path for name in names if (path := base_file(job, name))}
    remote_code = job.trust_remote_code and not Path(job.model).is_dir()
    if TOKENIZER in found and len(found) > 1 and not remote_code and _as_they_say(found.get(FAST), tokenizer):
        for name, path in found.items():
            shutil.copyfile(path, folder / name)
    else:
        tokenizer.save_pretrained(folder, save_jinja_files=False)
    own = json.loads((folder / TOKENIZER).read_text("utf-8"))
    _write(folder / TOKENIZER, _with_template(older.tokenizer_config(own, type(tokenizer).__name__), tokenizer, folder))


def _as_they_say(path: Path | None, tokenizer: Any) -> bool:
    """Tell whether tokenizer.json is what was trained with.

    Version 5 takes the words and merges out of it for some kinds of model, and the rest from a class of its own.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if path is None or backend is None:
        return path is None
    stored, live = json.loads(Tokenizer.from_file(str(path)).to_str()), json.loads(backend.to_str())
    return all(stored[part] == live[part] for part in PARTS)


def _with_template(own: dict[str, Any], tokenizer: Any, folder: Path) -> dict[str, Any]:
    """Return tokenizer_config.json with the chat template, and write it as the file that version 5 looks for."""
    template = tokenizer.chat_template
    own.pop("chat_template", None)
    if not template:
        return own
    if isinstance(template, dict):
        return own | {"chat_template": [{"name": name, "template": text} for name, text in template.items()]}
    if "\r" not in template:  # that file is read with all line ends as one
        (folder / TEMPLATE).write_text(template, "utf-8")
    return own | {"chat_template": template}


def _architecture(config: Any) -> str:
    return str(AutoModelForCausalLM._model_mapping[type(config)].__name__)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
