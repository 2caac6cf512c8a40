"""`python -m training serving FOLDER`: how an exported folder is served with transformers, vLLM and Ollama.

Prints the exact lines; starts nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ..spec.hints import Exported, Hint, hints
from .turns import Chat, Turns, derive

NO_CONFIG = "it holds neither config.json nor adapter_config.json: name the folder of an export"


def main(argv: list[str]) -> int:
    """Print the hints for the folder argv[0]; 1 where it is no export."""
    parser = argparse.ArgumentParser(prog="python -m training serving", description="Say how an export is served.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", help="name to serve it under [the folder's]")
    options = parser.parse_args(argv)
    try:
        found = describe(options.folder.resolve(), options.name)
    except (OSError, ValueError) as error:
        print(f"{options.folder}: {error}", file=sys.stderr)
        return 1
    print("\n\n".join(_shown(hint) for hint in hints(found)))
    return 0


def describe(folder: Path, name: str | None = None) -> Exported:
    """Return what the folder says of itself; raise ValueError where it is no export, OSError where it can't be read."""
    config, adapter = _json(folder / "config.json"), _json(folder / "adapter_config.json")
    if not config and not adapter:
        raise ValueError(NO_CONFIG)
    base = str(adapter.get("base_model_name_or_path", ""))
    model = config or _json(Path(base) / "config.json")
    turns, chat = _turns(folder)
    return Exported(
        folder=str(folder),
        name=name or folder.name,
        architecture=next(iter(model.get("architectures") or ()), ""),
        dtype=str(model.get("dtype") or model.get("torch_dtype") or "bfloat16"),
        adapter="none" if config else "adapter",
        base=base,
        rank=int(adapter.get("r") or 0),
        whole=bool(adapter.get("modules_to_save")),
        trust_remote_code="auto_map" in config,
        chat=chat,
        template=turns.go_template() if turns else "",
        stops=(turns.stop,) if turns else (),
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return found


def _turns(folder: Path) -> tuple[Turns | None, bool]:
    """Return the chat template's turns, where it has just these, and whether there is a chat template."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if not tokenizer.chat_template:
        return None, False

    def render(chat: Chat, answer: bool) -> str:
        turns = [{"role": role, "content": content} for role, content in chat]
        return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=answer))

    added = tokenizer("x")["input_ids"][:1] == [tokenizer.bos_token_id]
    return derive(render, tokenizer.bos_token or "", added=added), True


def _shown(hint: Hint) -> str:
    return "\n".join(filter(None, (f"== {hint.tool}", hint.text.rstrip("\n"), f"({hint.note})")))
