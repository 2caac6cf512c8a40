"""How an exported folder is served: the exact lines for transformers, vLLM and Ollama, or why there are none.

Lines are shell-quoted where they are for a shell. What was run and what was read only is said in docs/limits.md.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import Literal

Kind = Literal["shell", "python", "modelfile", ""]


def _text_models(*names: str) -> frozenset[str]:
    return frozenset(f"{name}ForCausalLM" for name in names)


# Text models that vLLM 0.33 has an implementation of (vllm/model_executor/models/registry.py).
VLLM = _text_models(
    *("Apertus", "Bloom", "Cohere", "Cohere2", "Dbrx", "DeepseekV2", "DeepseekV3", "Ernie4_5", "Ernie4_5_Moe"),
    *("Exaone4", "Falcon", "FalconH1", "FalconMamba", "Gemma", "Gemma2", "Gemma3", "Gemma3n", "Gemma4", "Glm4"),
    *("Glm4Moe", "GptOss", "GPTJ", "Granite", "GraniteMoe", "GraniteMoeHybrid", "GraniteMoeShared", "Jamba", "Lfm2"),
    *("Lfm2Moe", "Llama", "Mamba", "Mamba2", "Mistral", "Mixtral", "Nemotron", "OlmoHybrid", "Olmoe", "OPT", "Phi3"),
    *("PhiMoE", "Qwen2", "Qwen2Moe", "Qwen3", "Qwen3Moe", "Qwen3Next", "StableLm", "Zamba2"),
) | {"GPT2LMHeadModel"}
# What `--max-lora-rank` takes (vllm/config/lora.py); without it 16.
VLLM_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
VLLM_RANK = 16
# Text models whose safetensors Ollama converts itself, and base models of adapters (its convert/convert.go).
OLLAMA = _text_models(
    *("Llama", "Mixtral", "Gemma", "Gemma2", "Gemma3", "Phi3", "Qwen2", "Olmo3", "Cohere", "GptOss", "DeepseekV3"),
    *("Glm4MoeLite", "Lfm2"),
)
OLLAMA_ADAPTERS = _text_models("Llama", "Gemma2")
MERGED = "Export it merged to have one."


@dataclass(frozen=True)
class Exported:
    """An export as far as serving it goes.

    `folder`: where it lies for whoever serves it. `architecture` is the config's, "" where it is not known; of an
    adapter alone it is the base's. `rank` and `whole` are of an adapter alone: its rank, and whether it has layers
    that were trained whole. `template`: Ollama's TEMPLATE and its stop words, where they could be derived.
    """

    folder: str
    name: str
    architecture: str = ""
    dtype: str = "bfloat16"
    adapter: Literal["none", "merged", "adapter"] = "none"
    base: str = ""
    rank: int = 0
    whole: bool = False
    trust_remote_code: bool = False
    chat: bool = True
    template: str = ""
    stops: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        return self.adapter == "adapter"


@dataclass(frozen=True)
class Hint:
    """One way to serve it. `text` is "" where there is none; `note` then says why."""

    tool: str
    kind: Kind
    text: str
    note: str


def hints(exported: Exported) -> list[Hint]:
    """Return a hint for each tool, in the order that they are shown in."""
    return [transformers(exported), vllm(exported), ollama(exported)]


def transformers(exported: Exported) -> Hint:
    """The snippet that loads it and answers one prompt."""
    code = ", trust_remote_code=True" if exported.trust_remote_code else ""
    model = exported.base if exported.alone else exported.folder
    lines = ["from transformers import AutoModelForCausalLM, AutoTokenizer", ""]
    if exported.alone:
        lines.insert(0, "from peft import PeftModel")
    lines += [
        f"tokenizer = AutoTokenizer.from_pretrained({_quoted(exported.folder)}{code})",
        f'model = AutoModelForCausalLM.from_pretrained({_quoted(model)}, dtype="{exported.dtype}"{code})',
    ]
    if exported.alone:
        lines.append(f"model = PeftModel.from_pretrained(model, {_quoted(exported.folder)})")
    lines += _asking(exported.chat)
    note = "With transformers before 4.56 write torch_dtype in place of dtype."
    if exported.alone:
        note = f"Needs peft. The base model is loaded from {exported.base or 'where it lies'}. {note}"
    return Hint("transformers", "python", "\n".join(lines) + "\n", note)


def _quoted(text: str) -> str:
    """Return `text` as Python writes it between double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _asking(chat: bool) -> list[str]:
    if not chat:
        return [
            'inputs = tokenizer("def add(a, b):", return_tensors="pt")',
            "output = model.generate(**inputs, max_new_tokens=64)",
            "print(tokenizer.decode(output[0], skip_special_tokens=True))",
        ]
    return [
        'messages = [{"role": "user", "content": "What is 2 + 2?"}]',
        "inputs = tokenizer.apply_chat_template(",
        '    messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"',
        ")",
        "output = model.generate(**inputs, max_new_tokens=64)",
        'answer = output[0, inputs["input_ids"].shape[1] :]',
        "print(tokenizer.decode(answer, skip_special_tokens=True))",
    ]


def vllm(exported: Exported) -> Hint:
    """The command that serves it with an OpenAI-compatible API."""
    if exported.alone and exported.whole:
        return Hint("vLLM", "", "", f"vLLM takes no adapter with layers that were trained whole. {MERGED}")
    if exported.alone and exported.rank > VLLM_RANKS[-1]:
        return Hint("vLLM", "", "", f"vLLM takes adapters up to rank {VLLM_RANKS[-1]}. {MERGED}")
    words = ["vllm", "serve", exported.base if exported.alone else exported.folder, "--dtype", exported.dtype]
    if exported.alone:
        words += ["--enable-lora", "--lora-modules", f"{exported.name}={exported.folder}"]
        if exported.rank > VLLM_RANK:
            words += ["--max-lora-rank", str(next(r for r in VLLM_RANKS if r >= exported.rank))]
    else:
        words += ["--served-model-name", exported.name]
    if exported.trust_remote_code:
        words.append("--trust-remote-code")
    return Hint("vLLM", "shell", shlex.join(words), _vllm_note(exported))


def _vllm_note(exported: Exported) -> str:
    note = f"Ask it for the model {exported.name}."
    if exported.architecture and exported.architecture not in VLLM:
        note += f" vLLM 0.33 has no {exported.architecture} of its own; it tries transformers' then, which is slower."
    return note


def ollama(exported: Exported) -> Hint:
    """The Modelfile; `ollama create` converts the folder with it."""
    if reason := _not_for_ollama(exported):
        return Hint("Ollama", "", "", reason)
    lines = [f"FROM {exported.base if exported.alone else exported.folder}"]
    if exported.alone:
        lines.append(f"ADAPTER {exported.folder}")
    if exported.template:
        lines.append(f'TEMPLATE """{exported.template}"""')
        lines += [f'PARAMETER stop "{stop}"' for stop in exported.stops]
    name = re.sub(r"[^a-z0-9._-]+", "-", exported.name.lower()).strip("-._") or "model"
    note = f"Save it as Modelfile, then: ollama create {name} -f Modelfile && ollama run {name}."
    return Hint("Ollama", "modelfile", "\n".join(lines) + "\n", f"{note} {_template_note(exported)}")


def _not_for_ollama(exported: Exported) -> str:
    if exported.dtype not in ("bfloat16", "float16", "float32"):
        return f"Ollama converts no {exported.dtype}."
    if exported.alone and exported.whole:
        return f"Ollama takes no adapter with layers that were trained whole. {MERGED}"
    if exported.alone and not exported.base.startswith("/"):
        return f"Ollama needs the base model in a folder beside the adapter. {MERGED}"
    if not (exported.folder + exported.base).isprintable() or exported.folder.startswith('"'):
        return "A Modelfile can't hold this folder's name."
    known = OLLAMA_ADAPTERS if exported.alone else OLLAMA
    if exported.architecture and exported.architecture not in known:
        what = "adapters of" if exported.alone else "safetensors of"
        also = MERGED if exported.alone else "Convert it with llama.cpp's convert_hf_to_gguf.py, then FROM the .gguf."
        return f"Ollama converts no {what} {exported.architecture}. {also}"
    return ""


def _template_note(exported: Exported) -> str:
    if exported.template:
        return "TEMPLATE writes chats as the model's own chat template does."
    known = ""
    if not exported.architecture:
        names = sorted(name.removesuffix("ForCausalLM") for name in OLLAMA)
        known = f" It converts these, as config.json names them: {', '.join(names)}."
    return (
        "Without TEMPLATE, Ollama takes the one of its own that is most like the model's; python -m training serving,"
        f" given the folder, writes one where that can be done.{known}"
    )
