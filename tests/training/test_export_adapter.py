"""An adapter's run exported both ways: equal outputs, PEFT's own names in one and the base's in the other."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel, PreTrainedModel

from tests.training.attempts import Attempts
from tests.training.launch import of_kind, recipe
from tests.training.lora_ranks import save_adapter
from tests.training.test_lora_parts import llama
from training.adapters.names import CONFIG
from training.adapters.stored import config_text
from training.adapters.wrap import adapt
from training.export import cli, flat, prove_streamed
from training.export.blueprint import blueprint, load_config
from training.export.manifest import MODEL_FOLDER
from training.export.sheet import Sheet
from training.export.source import names, open_source
from training.spec.events import Event, parse
from training.spec.job import ExportJob
from training.spec.lint import Refused
from training.spec.passport import Loss, Passport


@dataclass
class Exported:
    """An export that has ended."""

    job: ExportJob
    told: list[Event]

    @property
    def folder(self) -> Path:
        return Path(self.job.out)

    def tensors(self) -> dict[str, torch.Tensor]:
        return {n: t for path in sorted(self.folder.glob("*.safetensors")) for n, t in load_file(path).items()}

    def checks(self) -> dict[str, bool]:
        proof = json.loads((self.folder / "proof.json").read_text())
        return {check["name"]: check["passed"] for check in proof["checks"]}


def export(attempts: Attempts, folder: Path, **fields: object) -> Exported:
    job = ExportJob(
        checkpoint=str(attempts.adapted.checkpoints[0] / "checkpoint-6"),
        model=str(attempts.model),
        out=str(folder / "model"),
        events=str(folder / "events.jsonl"),
        **fields,  # type: ignore[arg-type]
    )
    cli.run(job)
    return Exported(job, [parse(line) for line in Path(job.events).read_bytes().splitlines()])


@pytest.fixture(scope="module")
def merged(attempts: Attempts, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("merged")
    return export(attempts, folder, adapter="merged", dtype="float32", max_shard_bytes=5_000_000)


@pytest.fixture(scope="module")
def alone(attempts: Attempts, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return export(attempts, tmp_path_factory.mktemp("alone"), adapter="adapter", dtype="bfloat16")


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = model(torch.arange(16)[None]).logits
    return found


CHECKS = dict.fromkeys(("keys", "index", "load", "forward", "compare", "tokenizer"), True)


@pytest.mark.ranks
def test_a_merged_model_is_one_like_any_other(merged: Exported, attempts: Attempts) -> None:
    assert merged.told[-1].data["reason"] == "completed", merged.told[-1].data
    assert merged.checks() == CHECKS | {"generation": True}
    assert len(list(merged.folder.glob("*.safetensors"))) > 1, "the limit of a file is kept"
    base = load_file(attempts.model / "model.safetensors")
    ours = merged.tensors()
    assert ours.keys() == base.keys()
    changed = {name for name, tensor in ours.items() if not torch.equal(tensor, base[name])}
    assert changed == {name for name in base if "_proj" in name}
    _, info = AutoModelForCausalLM.from_pretrained(merged.folder, output_loading_info=True)
    assert not any(info.values()), info
    assert json.loads((merged.folder / "proof.json").read_text())["adapter"] == "merged"


@pytest.mark.ranks
def test_an_adapter_alone_is_pefts_own_folder(alone: Exported, attempts: Attempts) -> None:
    assert alone.told[-1].data["reason"] == "completed", alone.told[-1].data
    assert alone.checks() == CHECKS
    assert not (alone.folder / "config.json").exists()
    config = json.loads((alone.folder / CONFIG).read_text())
    assert (config["r"], config["lora_alpha"], config["base_model_name_or_path"]) == (4, 8, str(attempts.model))
    assert set(config["target_modules"]) >= {"model.layers.0.self_attn.q_proj"} or "q_proj" in config["target_modules"]
    stored = alone.tensors()
    assert len(stored) == 70
    assert {t.dtype for t in stored.values()} == {torch.bfloat16}
    assert all(name.endswith((".lora_A.weight", ".lora_B.weight")) for name in stored)
    assert AutoTokenizer.from_pretrained(alone.folder).chat_template


@pytest.mark.ranks
def test_adapter_and_merged_model_give_equal_outputs(merged: Exported, alone: Exported, attempts: Attempts) -> None:
    base = AutoModelForCausalLM.from_pretrained(attempts.model).eval()
    plain = logits(base)
    whole = logits(AutoModelForCausalLM.from_pretrained(merged.folder).eval())
    beside = logits(PeftModel.from_pretrained(base, str(alone.folder)).eval())
    moved = float((whole - plain).abs().max())
    assert float((whole - beside).abs().max()) < moved * 0.02, "a bf16 adapter is within its rounding"


RUN = """
import os, re, sys
for folder in sys.argv[1:]:
    os.chdir(folder)
    code = re.search(r"```python\\n(.*?)```", open("README.md").read(), re.DOTALL)[1]
    exec(code.replace("max_new_tokens=40", "max_new_tokens=3"), {})
    print("loaded", folder)
"""


@pytest.mark.ranks
def test_the_cards_own_lines_load_it(merged: Exported, alone: Exported) -> None:
    folders = [str(one.folder) for one in (merged, alone)]
    run = subprocess.run([sys.executable, "-c", RUN, *folders], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert [line for line in run.stdout.splitlines() if line.startswith("loaded")] == [f"loaded {f}" for f in folders]
    assert "library_name: peft" in (alone.folder / "README.md").read_text()


@pytest.mark.ranks
def test_by_hand_the_passport_is_of_what_training_left(merged: Exported, attempts: Attempts) -> None:
    told = Passport.model_validate_json((merged.folder / "passport.json").read_bytes())
    (attempt,) = told.attempts
    metrics = of_kind(attempts.adapted.head, "metrics")
    assert (told.composed_of, told.checkpoint.step, attempt.facts["world_size"]) == ("files", 6, 2)
    assert told.losses.first == Loss(step=1, loss=metrics[0].data["loss"])
    assert told.losses.last == Loss(step=6, loss=metrics[-1].data["loss"])
    assert told.recipe["method"]["kind"] == "lora"
    assert told.dataset.trained["rows"] == told.dataset.rows == 60
    words = [command[1:4] for command in attempt.nodes[0].commands]
    assert words == [("-m", "training", "tokenise"), ("-m", "accelerate.commands.launch", "--config_file")]
    assert (told.cost.tokens or 0) > 0
    assert (told.cost.seconds or 0) > 0


@pytest.mark.ranks
def test_what_is_asked_for_must_be_in_the_checkpoint(attempts: Attempts, tmp_path: Path) -> None:
    exported = export(attempts, tmp_path, adapter="none")
    assert exported.told[-1].data["reason"] == "configuration"
    assert "holds an adapter, no whole model. Choose merged or adapter" in exported.told[-1].data["text"]


# in one process


def checkpoint(folder: Path, base: PreTrainedModel, **fields: object) -> tuple[ExportJob, PeftModel]:
    """Write a base and a checkpoint of an adapter with random values; return an export of it and the live model."""
    base.save_pretrained(folder / "base")
    model = adapt(base, recipe(method={"kind": "lora", "rank": 3, "alpha": 12, **fields}))
    for parameter in model.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)
    save_adapter(model, folder / "saved" / MODEL_FOLDER)
    (folder / "saved" / CONFIG).write_text(config_text(model))
    job = ExportJob(
        checkpoint=str(folder / "saved"), model=str(folder / "base"), dtype="float32", adapter="merged",
        out=str(folder / "out"), events=str(folder / "events.jsonl"),
    )  # fmt: skip
    return job, model


def gpt2() -> GPT2LMHeadModel:
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=32, n_head=2, vocab_size=64, tie_word_embeddings=True))


@pytest.mark.parametrize(
    ("base", "fields"),
    [
        (llama, {"rank_stabilised": True}),
        (llama, {"modules_to_save": ["lm_head"], "target_modules": ["q_proj", "down_proj"]}),
        (lambda: llama(tied=True), {}),
        (gpt2, {}),
    ],
    ids=["rank-stabilised", "head-trained-whole", "tied", "transposed"],
)
def test_merging_is_pefts_merging(tmp_path: Path, base, fields) -> None:  # type: ignore[no-untyped-def]
    job, model = checkpoint(tmp_path, base(), **fields)
    plan = blueprint(load_config(job))
    source = open_source(job, plan)
    truth = model.merge_and_unload().state_dict()
    stored = names(job, plan, source)
    assert set(stored) == set(truth) - set(plan.ties)
    for name in stored:
        assert torch.allclose(torch.cat(list(source.blocks(name))).float(), truth[name], rtol=1e-5, atol=1e-6), name


def test_a_tensor_larger_than_a_block_is_merged_in_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, model = checkpoint(tmp_path, llama())
    monkeypatch.setattr("training.export.parts.BLOCK", 400)
    source = open_source(job, blueprint(load_config(job)))
    truth = model.merge_and_unload().state_dict()
    blocks = list(source.blocks("model.layers.0.mlp.up_proj.weight"))
    assert len(blocks) == 16
    assert torch.allclose(torch.cat(blocks), truth["model.layers.0.mlp.up_proj.weight"], atol=1e-6)


def test_another_base_is_refused(tmp_path: Path) -> None:
    job, _ = checkpoint(tmp_path, llama())
    gpt2().save_pretrained(tmp_path / "other")
    other = job.model_copy(update={"model": str(tmp_path / "other")})
    with pytest.raises(Refused, match=r"adapter changes model\.layers\.0.* which this model has not"):
        open_source(other, blueprint(load_config(other)))


def test_a_base_without_safetensors_is_refused(tmp_path: Path) -> None:
    job, _ = checkpoint(tmp_path, llama())
    (tmp_path / "base" / "model.safetensors").unlink()
    with pytest.raises(Refused, match="no safetensors files to merge the adapter into"):
        open_source(job, blueprint(load_config(job)))


@pytest.mark.parametrize("choice", ["merged", "adapter"])
def test_a_model_larger_than_memory_is_compared_without_loading_it(tmp_path: Path, choice: str) -> None:
    job, _ = checkpoint(tmp_path, llama())
    job = job.model_copy(update={"adapter": choice})
    plan = blueprint(load_config(job))
    source = open_source(job, plan)
    written = {name: torch.cat(list(source.blocks(name))).float() for name in names(job, plan, source)}
    save(tmp_path, written)
    assert flat.headers_differ(job, tmp_path / "flat") == []
    assert flat.contents(job, tmp_path / "flat") == (set(), set())
    difference, why = prove_streamed.weights(job, tmp_path / "flat", 0, Sheet())
    assert (difference, bool(why)) == ((0.0, False) if choice == "merged" else (None, True))
    odd = sorted(written)[-1]
    written[odd] = written[odd] + 1
    save(tmp_path, written)
    assert flat.contents(job, tmp_path / "flat") == ({odd}, set())


def save(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    from safetensors.torch import save_file

    (folder / "flat").mkdir(exist_ok=True)
    save_file(tensors, folder / "flat" / "weights.safetensors")
    (folder / "flat" / "config.json").write_bytes((folder / "base" / "config.json").read_bytes())
