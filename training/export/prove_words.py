"""The checks of what stands beside the weights: the tokenizer, and how text is generated.

tokenizer   encodes, decodes and renders a chat like the base model's, with the chat template that was trained with; no
            token's number is beyond the vocabulary
generation  the settings load, and the tokens they name are in the tokenizer
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, GenerationConfig

from ..spec.job import ExportJob
from .blueprint import load_config
from .companions import load_tokenizer
from .sheet import Sheet

TEXTS = (
    "def add(a, b):\n    return a + b  # 2 + 2 = 4, naïve café\n",
    "日本語 🙂 e\u0301\tend",
    "\u202e\u0645\u0631\u062d\u0628\u0627 1,234.5",
)
CHAT = [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "4"}]
NAMED = ("bos_token_id", "eos_token_id", "pad_token_id")


def check(job: ExportJob, folder: Path, sheet: Sheet) -> None:
    ours = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=job.trust_remote_code)
    whole = job.adapter != "adapter"
    own = job.model_copy(update={"model": str(folder), "revision": ""}) if whole else job
    _tokenizer(job, ours, int(load_config(own).get_text_config().vocab_size), sheet)
    if whole:
        _generation(job, folder, ours, sheet)


def _tokenizer(job: ExportJob, ours: Any, rows: int, sheet: Sheet) -> None:
    seen, wanted = _behaviour(ours), _behaviour(load_tokenizer(job))
    differ = [name for name, value in wanted.items() if seen[name] != value]
    exact = "exactly" if seen["decoded"] == list(TEXTS) else "as the base model's does, which is not exactly"
    detail = f"differs from the base model's in {', '.join(differ)}" if differ else f"gives texts back {exact}"
    most = max(ours.get_vocab().values(), default=0)
    chat = "with a chat template" if seen["template"] else "without a chat template"
    if job.template:
        chat = "with the chat template that was trained with"
    fits = f"{len(ours):,} tokens for {rows:,} rows" if most < rows else f"token {most} has no row among {rows:,}"
    sheet.add("tokenizer", not differ and most < rows, f"{detail}; {fits}; {chat}")


def _behaviour(tokenizer: Any) -> dict[str, Any]:
    special = sorted({str(token) for token in tokenizer.all_special_tokens})
    texts = [*TEXTS, "".join(special)]
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    return {
        "ids": ids,
        "what is added": tokenizer(TEXTS[0])["input_ids"],
        "decoded": [tokenizer.decode(numbers) for numbers in ids[:-1]],
        "special tokens": {token: tokenizer.convert_tokens_to_ids(token) for token in special},
        "size": len(tokenizer),
        "chat": _rendered(tokenizer) if tokenizer.chat_template else "",
        "template": tokenizer.chat_template,
    }


def _rendered(tokenizer: Any) -> str:
    try:
        return str(tokenizer.apply_chat_template(CHAT, tokenize=False))
    except Exception as error:  # noqa: BLE001  a template is a program of its own, which may want other turns
        return f"refused: {error}"


def _generation(job: ExportJob, folder: Path, tokenizer: Any, sheet: Sheet) -> None:
    try:
        named = _named(GenerationConfig.from_pretrained(folder, local_files_only=True))
    except (OSError, ValueError, json.JSONDecodeError) as error:
        sheet.add("generation", False, f"can't be read: {str(error).strip().splitlines()[0]}")
        return
    known = {number: token for token, number in tokenizer.get_vocab().items()}
    odd = {name: numbers for name, numbers in named.items() if any(n not in known for n in numbers)}
    text = "; ".join(f"{name} {', '.join(_token(n, known) for n in ns)}" for name, ns in named.items())
    own = bool(odd) and odd == {name: numbers for name, numbers in _bases(job).items() if name in odd}
    note = "; of which the base model's own settings have what its tokenizer has not" if own else ""
    sheet.add("generation", not odd or own, f"loads; {text or 'names no token'}{note}")


def _named(found: GenerationConfig) -> dict[str, list[int]]:
    values = {name: getattr(found, name) for name in NAMED}
    return {n: v if isinstance(v, list) else [v] for n, v in values.items() if v is not None and v != []}


def _bases(job: ExportJob) -> dict[str, list[int]]:
    try:
        return _named(GenerationConfig.from_pretrained(job.model, revision=job.revision or None))
    except (OSError, ValueError):  # it has none of its own
        return {}


def _token(number: int, known: dict[int, str]) -> str:
    return f"{number} ({known[number]})" if number in known else f"{number} (no token)"
