"""The sample models load and speak, the sample data is real, and both are made whole or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from training.samples import data, place, stdlib


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "training", *words], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    done = run("sample-model", "tiny", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "chat"
    done = run("sample-data", "code-chat", str(folder))
    assert done.returncode == 0, done.stderr
    assert "1000 rows" in done.stdout
    return folder


def lines(path: Path) -> list[dict[str, list[dict[str, str]]]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_tiny_loads_and_trains_a_step(tiny: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    model = AutoModelForCausalLM.from_pretrained(tiny)
    assert 4_000_000 < model.num_parameters() < 6_000_000
    text = "def grüße(x):\n    return 12345\n"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    ids = tokenizer.apply_chat_template(turns, return_tensors="pt", return_dict=True)["input_ids"]
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    assert 6 < loss.item() < 12  # about ln(4096) = 8.3: nothing is learnt yet


def test_tiny_has_the_same_bytes_each_time(tiny: Path, tmp_path: Path) -> None:
    run("sample-model", "tiny", str(tmp_path / "again"))
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (tiny / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_built_again_says_it_is_there(tiny: Path) -> None:
    before = (tiny / "model.safetensors").stat().st_mtime_ns
    done = run("sample-model", "tiny", str(tiny))
    assert (done.returncode, done.stdout.strip()) == (0, f"{tiny}: there already")
    assert (tiny / "model.safetensors").stat().st_mtime_ns == before


def test_smollm2_answers(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path / "smollm2"
    done = run("sample-model", "smollm2", str(folder))
    assert done.returncode == 0, done.stderr
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    assert str(model.dtype) == "torch.bfloat16"
    turns = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    answer = model.generate(**prompt, max_new_tokens=12, do_sample=False)[0][prompt["input_ids"].shape[1] :]
    assert "Paris" in tokenizer.decode(answer)


def test_code_chat_is_real_and_without_repeats(chat: Path) -> None:
    train, test = lines(chat / "train.jsonl"), lines(chat / "test.jsonl")
    assert len(train) >= 2000
    assert len(test) >= 50
    answers = [row["messages"][1]["content"] for row in train + test]
    assert len(set(answers)) == len(answers)
    for row in train + test:
        question, answer = row["messages"]
        assert (question["role"], answer["role"]) == ("user", "assistant")
        assert "def " in question["content"]
        assert answer["content"] not in question["content"] or len(answer["content"]) < 60


def test_code_chat_has_the_same_bytes_each_time(chat: Path, tmp_path: Path) -> None:
    run("sample-data", "code-chat", str(tmp_path / "again"))
    assert (chat / "train.jsonl").read_bytes() == (tmp_path / "again" / "train.jsonl").read_bytes()


def test_a_function_loses_its_docstring_only() -> None:
    text = 'class A:\n    @wraps\n    def f(self):\n        """Say."""\n        # why\n        return 1\n'
    (found,) = stdlib.functions("a.py", text)
    assert (found.code, found.docstring) == ("@wraps\ndef f(self):\n    # why\n    return 1", "Say.")


def test_a_strange_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    done = run("sample-data", "code-chat", str(tmp_path))
    assert done.returncode == 1
    assert "name another folder" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_a_broken_build_leaves_nothing(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        place.make(tmp_path / "out", build, complete=data.COMPLETE)
    assert list(tmp_path.iterdir()) == []


def test_a_form_feed_is_no_line() -> None:
    text = 'def f():\n    pass\n\x0c\ndef g(a):\n    """Twice."""\n    return a * 2\n'
    (found,) = stdlib.functions("m", text)
    assert found.code == "def g(a):\n    return a * 2"
