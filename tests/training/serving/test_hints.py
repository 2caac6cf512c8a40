"""What is said about serving an export: run where it can be, else read back as its tool reads it."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path

import pytest

from tests.training.attempts import Attempts
from tests.training.serving import modelfile
from training.serving.cli import describe, main
from training.spec.hints import VLLM_RANKS, Exported, Hint, hints, ollama, transformers, vllm

WHOLE = Exported("/models/mine", "mine", "LlamaForCausalLM")
ALONE = Exported("/adapters/mine", "mine", "LlamaForCausalLM", adapter="adapter", base="/models/base", rank=8)
CHAT = [("system", "Be brief."), ("user", "What is 2 + 2?"), ("assistant", "4"), ("user", "And 3?")]


def changed(exported: Exported, **fields: object) -> Exported:
    return Exported(**{**exported.__dict__, **fields})  # type: ignore[arg-type]


def ran(hint: Hint) -> str:
    """Run a snippet as it stands, but for the length of its answer, and return what it printed."""
    text = hint.text.replace("max_new_tokens=64", "max_new_tokens=4")
    assert text != hint.text
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(text, "hint", "exec"), {"__name__": "hint"})
    return said.getvalue()


@pytest.mark.parametrize("chat", [True, False])
def test_the_snippet_runs(attempts: Attempts, chat: bool) -> None:
    found = describe(attempts.model)
    assert (found.architecture, found.dtype, found.chat) == ("LlamaForCausalLM", "float32", True)
    assert ran(transformers(changed(found, chat=chat)))


def test_an_adapters_snippet_runs(attempts: Attempts, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(attempts.model)
    adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=24, target_modules="all-linear"))
    adapted.save_pretrained(tmp_path / "adapter one")
    AutoTokenizer.from_pretrained(attempts.model).save_pretrained(tmp_path / "adapter one")
    found = describe(tmp_path / "adapter one")
    assert (found.alone, found.base, found.rank, found.whole) == (True, str(attempts.model), 24, False)
    assert found.architecture == "LlamaForCausalLM"
    assert ran(transformers(found))
    assert "--max-lora-rank 32" in vllm(found).text


def test_the_modelfile_writes_chats_as_the_model_does(attempts: Attempts) -> None:
    from transformers import AutoTokenizer

    found = dict(modelfile.commands(ollama(describe(attempts.model)).text))
    assert found["FROM"] == str(attempts.model)
    assert found["PARAMETER"] == 'stop "<|im_end|>"'
    turns = [{"role": role, "content": content} for role, content in CHAT]
    tokenizer = AutoTokenizer.from_pretrained(attempts.model)
    wanted = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert modelfile.render(found["TEMPLATE"], CHAT) == wanted


def test_the_command_prints_all_three(attempts: Attempts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(attempts.model), "--name", "mine"]) == 0
    said = capsys.readouterr().out
    assert [f"== {hint.tool}" in said for hint in hints(WHOLE)] == [True] * 3
    assert "--served-model-name mine" in said
    assert main([str(tmp_path)]) == 1
    assert "neither config.json nor adapter_config.json" in capsys.readouterr().err


def test_vllms_words() -> None:
    assert vllm(WHOLE).text == "vllm serve /models/mine --dtype bfloat16 --served-model-name mine"
    assert vllm(ALONE).text == (
        "vllm serve /models/base --dtype bfloat16 --enable-lora --lora-modules mine=/adapters/mine"
    )
    for rank, most in ((16, None), (17, 32), (256, 256), (300, 320)):
        words = shlex.split(vllm(changed(ALONE, rank=rank)).text)
        assert ("--max-lora-rank" in words) == bool(most)
        assert not most or words[-1] == str(most)
    assert vllm(changed(ALONE, rank=VLLM_RANKS[-1] + 1)).text == ""
    assert vllm(changed(ALONE, whole=True)).text == ""
    assert "no OddForCausalLM of its own" in vllm(changed(WHOLE, architecture="OddForCausalLM")).note
    assert vllm(changed(WHOLE, trust_remote_code=True)).text.endswith(" --trust-remote-code")


@pytest.mark.parametrize(
    ("exported", "said"),
    [
        (changed(WHOLE, architecture="Qwen3ForCausalLM"), "converts no safetensors of Qwen3ForCausalLM"),
        (changed(ALONE, architecture="Phi3ForCausalLM"), "converts no adapters of Phi3ForCausalLM"),
        (changed(ALONE, whole=True), "Export it merged"),
        (changed(ALONE, base="org/base"), "needs the base model in a folder"),
        (changed(WHOLE, folder="/models/a\nb"), "can't hold this folder's name"),
    ],
)
def test_ollama_is_given_nothing_that_it_does_not_take(exported: Exported, said: str) -> None:
    hint = ollama(exported)
    assert (hint.text, hint.kind, said in hint.note) == ("", "", True)


def test_ollamas_adapter() -> None:
    assert modelfile.commands(ollama(ALONE).text) == [("FROM", "/models/base"), ("ADAPTER", "/adapters/mine")]
    assert "It converts" in ollama(changed(WHOLE, architecture="")).note


def test_hostile_names_stay_one_word() -> None:
    odd = changed(ALONE, folder="/a/$(id) 'x\" ü😀", name="a;id b", base='/b "c"')
    words = shlex.split(vllm(odd).text)
    assert words[:3] == ["vllm", "serve", odd.base]
    assert words[-1] == f"{odd.name}={odd.folder}"
    names: list[str] = []
    loads = [line for line in transformers(odd).text.splitlines() if "from_pretrained(" in line]
    for line in loads:
        call = line.split("from_pretrained(", 1)[1]
        eval(f"take({call}", {"take": lambda *words, **_: names.extend(words), "model": "model"})
    assert names == [odd.folder, odd.base, "model", odd.folder]
    assert "ollama create a-id-b " in ollama(odd).note
