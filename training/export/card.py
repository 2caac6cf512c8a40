"""README.md of an export: the model card, in facts of its passport and its proof. Nothing is made up.

https://huggingface.co/docs/hub/model-cards says what the head may hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ..spec.job import ExportJob
from ..spec.passport import Loss, Passport
from ..spec.unused import unused
from .handed import base_file

HUB = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")
SPECIAL = re.compile(r"([\\`*_\[\]|~])")
LICENSE = ("license", "license_name", "license_link")
SETTINGS = ("method", "optimisation", "data")  # sections of the recipe that are listed
LOAD = """from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "."  # this folder, or where it went
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, torch_dtype="auto")
"""
LOAD_ADAPTER = """from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "."  # this folder, or where it went
tokenizer = AutoTokenizer.from_pretrained(folder)
base = AutoModelForCausalLM.from_pretrained({base}, torch_dtype="auto")
model = PeftModel.from_pretrained(base, folder)
"""
CHAT = """messages = [{"role": "user", "content": "What is 2 + 2?"}]
inputs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
"""
PLAIN = """inputs = tokenizer("Two and two are", return_tensors="pt")
"""
ANSWER = """output = model.generate(**inputs, max_new_tokens=40)
print(tokenizer.decode(output[0, inputs["input_ids"].shape[1]:], skip_special_tokens=True))
"""
Row = tuple[str, object]


def text(job: ExportJob, passport: Passport, proof: Mapping[str, Any]) -> str:
    """Return the card."""
    parts = [
        f"---\n{yaml.safe_dump(_head(job, passport), sort_keys=False, allow_unicode=True)}---",
        f"# {escaped(passport.run.name or 'Fine-tuned model')}",
        _what(job, passport),
        "## How it was trained",
        _table(_trained(passport)),
        "Settings of the recipe; all of it is in `passport.json`.",
        _table(_settings(passport.recipe)),
        "## Losses",
        _table(_losses(passport)),
        "## Data",
        _table(_data(passport)),
        "## Proof",
        _proof(proof),
        "## Load it",
        f"```python\n{_snippet(job, proof)}```",
        "Check that every byte is as it was written: `sha256sum -c SHA256SUMS`.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(value: object) -> str:
    """Return what somebody typed as Markdown that shows it as it is, on one line."""
    line = " ".join(str(value).split())
    return SPECIAL.sub(r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _head(job: ExportJob, passport: Passport) -> dict[str, Any]:
    adapter = job.adapter == "adapter"
    kind = str((passport.recipe.get("method") or {}).get("kind", ""))
    head: dict[str, Any] = {"base_model": job.model} if _on_hub(job) else {}
    if head and not adapter:
        head["base_model_relation"] = "finetune"
    head |= {"library_name": "peft" if adapter else "transformers", "pipeline_tag": "text-generation"}
    return head | _license(job) | {"tags": ["shardboard", "sft", *([kind] if re.fullmatch(r"[\w-]+", kind) else [])]}


def _on_hub(job: ExportJob) -> bool:
    return bool(HUB.fullmatch(job.model)) and not Path(job.model).exists()


def _license(job: ExportJob) -> dict[str, str]:
    """Return what the base model's own card says of its licence."""
    path = base_file(job, "README.md")
    found = re.match(r"---\s*\n(.*?)\n---", path.read_text("utf-8", "replace"), re.DOTALL) if path else None
    try:
        head = yaml.safe_load(found[1]) if found else None
    except yaml.YAMLError:
        return {}
    head = head if isinstance(head, dict) else {}
    return {name: head[name] for name in LICENSE if isinstance(head.get(name), str)}


def _what(job: ExportJob, passport: Passport) -> str:
    kinds = {
        "none": "The weights",
        "merged": "The base model with its adapter merged into it",
        "adapter": "An adapter for the base model",
    }
    base = f"`{_code(passport.model.name or job.model)}`"
    revision = f", revision `{_code(job.revision)}`" if job.revision else ""
    at = f"step {passport.checkpoint.step:,} (`{_code(passport.checkpoint.name)}`)"
    return f"{kinds[job.adapter]} of a fine-tuning of {base}{revision} at {at}, in {job.dtype}. Exported by Shardboard."


def _code(value: str) -> str:
    return " ".join(value.split()).replace("`", "'")


def _trained(passport: Passport) -> Iterator[Row]:
    yield "started by", passport.run.owner
    yield "attempts", len(passport.attempts) or None
    yield "ranks", passport.checkpoint.world_size
    yield "nodes", passport.checkpoint.nodes
    facts = passport.attempts[-1].facts if passport.attempts else {}
    for name in ("parameters", "trainable", "attention", "master_dtype", "compute_dtype", "reduce_dtype", "chip"):
        yield name.replace("_dtype", " weights" if name.startswith("master") else " in"), facts.get(name)
    gpus = [gpu.get("name") for a in passport.attempts[-1:] for n in a.nodes for gpu in n.hardware.get("gpus", [])]
    yield "GPUs", ", ".join(f"{gpus.count(name)} x {name}" for name in dict.fromkeys(gpus))
    yield "tokens trained on", passport.cost.tokens
    yield "seconds of training", None if passport.cost.seconds is None else round(passport.cost.seconds)
    versions = next((n.versions for a in passport.attempts[-1:] for n in a.nodes if n.versions), {})
    for name in ("torch", "transformers", "accelerate", "trl", "peft", "cuda"):
        yield name, versions.get(name)


def _settings(recipe: Mapping[str, Any]) -> Iterator[Row]:
    left_out = unused(recipe)
    for section in SETTINGS:
        for name, value in (recipe.get(section) or {}).items():
            said = isinstance(value, bool | int | float | str) and len(str(value)) <= 80
            if said and f"{section}.{name}" not in left_out:
                yield f"{section}.{name}", value


def _losses(passport: Passport) -> Iterator[Row]:
    found = passport.losses
    yield "first", _loss(found.first)
    yield "lowest", _loss(found.lowest)
    yield "last", _loss(found.last)
    yield "best evaluation", _loss(found.best_evaluation)
    yield "last evaluation", _loss(found.last_evaluation)


def _loss(found: Loss | None) -> str | None:
    if found is None:
        return None
    value = found.loss if isinstance(found.loss, str) else f"{found.loss:.6g}"
    return f"{value} at step {found.step:,}"


def _data(passport: Passport) -> Iterator[Row]:
    found = passport.dataset
    yield "name", f"{found.name}, version {found.version}" if found.version is not None else found.name
    yield "SHA-256", found.sha256
    yield "format", found.format
    yield "rows", found.rows
    yield "rows to evaluate on", found.test_rows
    for name in ("kept", "dropped", "untrained", "cut", "sequences"):
        yield name, found.trained.get(name)
    for name in ("tokens", "trained_tokens"):  # training may have seen some of them, or all several times
        yield f"{name.replace('_', ' ')} in the data set", found.trained.get(name)


def _proof(proof: Mapping[str, Any]) -> str:
    rows = [
        (check["name"], f"{'passed' if check['passed'] else 'failed'}: {check['detail']}") for check in proof["checks"]
    ]
    where = f"Loads in {proof['loads_in']}." if proof.get("loads_in") else ""
    return "\n\n".join(filter(None, [_table(rows), escaped(proof.get("not_compared") or ""), _costs(proof), where]))


def _costs(proof: Mapping[str, Any]) -> str:
    """Say what the number format costs; empty where the proof has not looked."""
    costs = proof.get("to_masters")
    if not costs:
        return ""
    return (
        f"A logit differs by up to {float(costs['difference']):g} from those of the checkpoint's own numbers in fp32,"
        f" of logits up to {float(costs['largest']):g}; the likeliest next token is the same at {costs['same']} of"
        f" {costs['places']} places."
    )


def _snippet(job: ExportJob, proof: Mapping[str, Any]) -> str:
    tokens = next((check["detail"] for check in proof["checks"] if check["name"] == "tokenizer"), "")
    load = LOAD_ADAPTER.format(base=ascii(job.model)) if job.adapter == "adapter" else LOAD
    return load + ("\n" + (PLAIN if tokens.endswith("without a chat template") else CHAT)) + ANSWER


def _table(rows: Any) -> str:
    """Return the rows that say something as a Markdown table."""
    told = [(name, value) for name, value in rows if value not in (None, "", [])]
    lines = [f"| {escaped(name)} | {escaped(f'{value:,}' if type(value) is int else value)} |" for name, value in told]
    return "\n".join(["| | |", "| --- | --- |", *lines]) if lines else "Nothing is known of it."
