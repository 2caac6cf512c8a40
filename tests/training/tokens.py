"""Small tokenizers, chats and jobs for the tests of data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.training.launch import recipe
from training.spec.job import TrainJob
from training.spec.sections.data import Data
from training.spec.tokens.encode import Encoded, Encoder

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
TAGGED = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
)
# As Llama-2's: no header for the assistant, and the answer is set between spaces.
BRACKETS = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + message['content'] | trim + ' <|im_end|>' }}{% endif %}{% endfor %}"
)
# As some reasoning models': the last turn is rendered unlike the others.
CHANGES = (
    "{% for message in messages %}{{ message['role'] + ': ' }}"
    "{% if loop.last and message['role'] == 'assistant' %}{{ '<think></think>' }}{% endif %}"
    "{{ message['content'] + '<|im_end|>' }}{% endfor %}"
)


def chat(*contents: str) -> list[dict[str, str]]:
    """Return turns of user and assistant in turn."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(contents)]


def encode(tokenizer: Any, data: Data, *rows: dict[str, Any]) -> list[Encoded]:
    return Encoder(tokenizer, data, shown=True)(rows)


def trained_text(tokenizer: Any, row: Encoded) -> str:
    return str(tokenizer.decode([token for token, flag in zip(row.ids, row.trained, strict=True) if flag]))


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def job(folder: Path, model: Path, rows: Sequence[dict[str, Any]], test: str = "", **data: Any) -> TrainJob:
    """Return a job over `rows`, whose files lie in `folder`."""
    return TrainJob(
        recipe=recipe(data=data),
        model=str(model),
        train=str(write_rows(folder / "train.jsonl", rows)),
        test=test,
        checkpoints=str(folder / "checkpoints"),
        events=str(folder / "events.jsonl"),
        nodes=1,
        node_rank=0,
    )
