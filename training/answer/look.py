"""A model as it lies there, and the prompts as it will read them: everything that is known before loading it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer
from transformers.utils import cached_file

from ..adapters.names import CONFIG, WEIGHTS
from ..loading.stored import Stored, Unfit, read_header, stored_in
from ..spec.answer import AnswerJob, Asked, Prompt
from ..spec.lint import Problem, Refused

COPY = "Copy the model to this node, whole, or choose another."


@dataclass(frozen=True)
class Rendered:
    """A prompt as tokens. `chat`: through a chat template."""

    ids: list[int]
    chat: bool


@dataclass(frozen=True)
class Known:
    """`bytes`: of the weights as they will be loaded; `cache`: of what attention keeps of the longest answer."""

    asked: Asked
    folder: Path
    config: Any
    tokenizer: Any
    prompts: list[Rendered]
    dtype: str
    bytes: int
    cache: int


def look(asked: Asked, job: AnswerJob) -> Known:
    """Read configuration, tokenizer and headers. Raises Refused."""
    folder = _folder(asked)
    config = _read("configuration", asked, AutoConfig, folder)
    tokenizer = _tokenizer(asked, folder)
    prompts = [_rendered(asked, tokenizer, prompt, number) for number, prompt in enumerate(job.prompts, 1)]
    stored = [*_stored(asked, folder).values(), *_adapter(asked)]
    dtype = _dtype(asked, config, stored)
    longest = max(len(prompt.ids) for prompt in prompts) + job.sampling.max_new_tokens
    _check_positions(asked, config, prompts, job.sampling.max_new_tokens)
    size = sum(_bytes(tensor, dtype) for tensor in stored)
    return Known(asked, folder, config, tokenizer, prompts, dtype, size, longest * _row(config, ITEM[dtype]))


def _folder(asked: Asked) -> Path:
    if Path(asked.model).is_dir():
        return Path(asked.model)
    if asked.model.startswith("/"):
        raise _refuse(asked, f"{asked.model} is not on this node", COPY)
    try:
        found = cached_file(asked.model, "config.json", revision=asked.revision or None, local_files_only=True)
    except OSError:
        found = None
    if found is None:
        raise _refuse(asked, f"this node has no copy of {asked.model} from the hub", COPY)
    return Path(found).parent


def _read(what: str, asked: Asked, kind: Any, folder: Path) -> Any:
    try:
        return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=asked.trust_remote_code)
    except Exception as error:  # a torn file raises whatever it comes across
        why = f"its {what} can't be read: {' '.join(str(error).split())[:300]}"
        raise _refuse(asked, why, COPY) from error


def _tokenizer(asked: Asked, folder: Path) -> Any:
    own = bool(asked.adapter) and (Path(asked.adapter) / "tokenizer_config.json").is_file()
    tokenizer = _read("tokenizer", asked, AutoTokenizer, Path(asked.adapter) if own else folder)
    if not tokenizer.chat_template and asked.template:
        tokenizer.chat_template = asked.template
    return tokenizer


def _rendered(asked: Asked, tokenizer: Any, prompt: Prompt, number: int) -> Rendered:
    """A chat needs a template; without one its texts are gone on with as they stand."""
    messages = [turn.model_dump() for turn in prompt.messages]
    if not messages or not tokenizer.chat_template:
        text = prompt.text or "\n".join(turn["content"] for turn in messages)
        return Rendered(list(tokenizer(text)["input_ids"]), chat=False)
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # a template is a program of its own, which may want other turns
        why = f"{asked.name}'s chat template refuses it: {' '.join(str(error).split())[:300]}"
        raise Refused([Problem(f"prompts.{number}", why, "Leave out the system turn, or change the turns.")]) from error
    return Rendered(list(tokenizer(text, add_special_tokens=False)["input_ids"]), chat=True)


def _stored(asked: Asked, folder: Path) -> dict[str, Stored]:
    try:
        return stored_in(folder)
    except Unfit as error:
        raise _refuse(asked, str(error), "Choose a model whose weights are in safetensors files.") from None


def _adapter(asked: Asked) -> list[Stored]:
    if not asked.adapter:
        return []
    folder = Path(asked.adapter)
    if missing := [name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()]:
        raise _refuse(asked, f"{folder} has no {missing[0]}", "Choose a folder that an adapter's export made.")
    return list(read_header(folder / WEIGHTS).values())


ITEM = {"bfloat16": 2, "float16": 2, "float32": 4}


def _dtype(asked: Asked, config: Any, stored: list[Stored]) -> str:
    """Return the number format that it is loaded in: the chosen one, else the configuration's, else the files'."""
    if asked.dtype != "auto":
        return asked.dtype
    said = str(getattr(config, "dtype", None) or "").removeprefix("torch.")
    kept = [str(t.dtype).removeprefix("torch.") for t in stored if t.dtype.is_floating_point]
    return next((name for name in (said, *kept) if name in ITEM), "float32")


def _bytes(tensor: Stored, dtype: str) -> int:
    count = tensor.row_bytes * (tensor.shape[0] if tensor.shape else 1) // tensor.dtype.itemsize
    return count * (ITEM[dtype] if tensor.dtype.is_floating_point else tensor.dtype.itemsize)


def _row(config: Any, item: int) -> int:
    """Bytes of keys and values that one token leaves in all layers; generous where a model has fewer of them."""
    text = config.get_text_config()
    heads = text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // heads
    return int(2 * text.num_hidden_layers * (getattr(text, "num_key_value_heads", None) or heads) * width * item)


def _check_positions(asked: Asked, config: Any, prompts: list[Rendered], new: int) -> None:
    most = getattr(config.get_text_config(), "max_position_embeddings", None)
    for number, prompt in enumerate(prompts, 1):
        if most is not None and len(prompt.ids) + new > most:
            have = f"{len(prompt.ids)} tokens and {new} new ones are more than the {most} positions of {asked.name}"
            fix = f"Ask for {most - len(prompt.ids)} new tokens or fewer." if most > len(prompt.ids) else "Shorten it."
            raise Refused([Problem(f"prompts.{number}", have, fix)])
        if not prompt.ids:
            raise Refused([Problem(f"prompts.{number}", f"{asked.name} reads no token in it", "Write something.")])


def _refuse(asked: Asked, reason: str, fix: str) -> Refused:
    return Refused([Problem(f"models.{asked.name}", reason, fix)])
