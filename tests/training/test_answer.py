"""Models answer prompts: what is told, in which order, by what it ends; the same as generate's own answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.training import bytewise
from tests.training.nodejobs import GENEROUS, ROOT, call, until
from training.answer import cli, fit
from training.answer.course import Course
from training.answer.limits import Guard, Limits
from training.answer.pieces import Pieces
from training.journal import Journal
from training.memory import Memory
from training.spec.answer import AnswerJob
from training.spec.events import Event, parse

CHAT = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models of other weights, and one without a chat template."""
    root = tmp_path_factory.mktemp("models")
    bytewise.build(root / "base")
    bytewise.build(root / "tuned", 1, dtype="bfloat16")
    bytewise.build(root / "bare", template=None)
    return root


@pytest.fixture
def ask(models: Path, tmp_path: Path) -> Any:
    """Return a function that lets models answer here, and returns the exit status and the events."""

    def asked(*names: str, seconds: float = 300.0, **how: Any) -> tuple[int, list[Event]]:
        asked = [{"name": n, "model": str(models / n)} for n in names or ("base",)]
        body = {"models": asked, "prompts": [CHAT], "events": str(tmp_path / "events.jsonl"), "threads": 1} | how
        job = AnswerJob.model_validate(body)
        status = cli.run(job, Course(job, Journal(tmp_path / "events.jsonl")), Limits(Path(job.events), seconds))
        return status, told(tmp_path)

    return asked


def told(folder: Path) -> list[Event]:
    return [parse(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def answers(events: list[Event]) -> list[dict[str, Any]]:
    return [event.data for event in events if event.kind == "answer"]


def by_generate(folder: Path, text: str, count: int, *, special: bool = False) -> str:
    """What transformers itself answers, greedily."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    asked = tokenizer(text, return_tensors="pt", add_special_tokens=special)
    with torch.inference_mode():
        whole = model.generate(**asked, max_new_tokens=count, do_sample=False)
    return str(tokenizer.decode(whole[0, asked["input_ids"].shape[1] :], skip_special_tokens=True))


def test_it_works(ask, models):
    status, events = ask("base", "tuned", sampling={"max_new_tokens": 40})
    kinds = [event.kind for event in events if event.kind != "token"]
    assert (status, kinds) == (0, ["model", "model", "answer", "model", "model", "answer", "finished"])
    assert events[-1].data["reason"] == "completed"
    ready = [event.data for event in events if event.kind == "model" and event.data["state"] == "ready"]
    assert [(r["device"], r["dtype"]) for r in ready] == [("cpu", "float32"), ("cpu", "bfloat16")]
    for answer, name in zip(answers(events), ("base", "tuned"), strict=True):
        assert answer["text"] == by_generate(models / name, "[user:hi]", 40)
        assert (answer["tokens"] == 40) == (answer["stopped_by"] == "tokens")
        assert answer["tokens_per_second"] > 0 < answer["first_token_seconds"] <= answer["seconds"]


def test_the_pieces_put_together_are_the_answer(ask):
    _, events = ask("base", "tuned", prompts=[CHAT, {"text": "def "}], sampling={"max_new_tokens": 60})
    for answer in answers(events):
        pieces = [e.data for e in events if e.kind == "token" and e.data["prompt"] == answer["prompt"]
                  and e.data["model"] == answer["model"]]  # fmt: skip
        assert "".join(piece["text"] for piece in pieces) == answer["text"]
        assert pieces[-1]["tokens"] <= answer["tokens"]  # an end token says nothing


def test_the_same_seed_gives_the_same_answer(ask):
    how = {"temperature": 1.0, "top_p": 0.9, "max_new_tokens": 30}
    texts = [answers(ask(sampling=how | {"seed": seed})[1])[-1]["text"] for seed in (7, 7, 8)]
    assert texts[0] == texts[1] != texts[2]


def test_a_model_without_a_template_goes_on_with_the_text(ask, models):
    status, events = ask("bare", sampling={"max_new_tokens": 10})
    assert status == 0
    assert answers(events)[0]["text"] == by_generate(models / "bare", "hi", 10, special=True)


def test_an_adapter_is_laid_over_its_base(ask, models, tmp_path):
    from peft import LoraConfig, get_peft_model

    base = AutoModelForCausalLM.from_pretrained(models / "base")
    torch.manual_seed(0)
    tuned = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    tuned.save_pretrained(tmp_path / "adapter")
    tokenizer = AutoTokenizer.from_pretrained(models / "base")
    tokenizer.chat_template = "<{{ messages[0]['content'] }}>"
    tokenizer.save_pretrained(tmp_path / "adapter")
    one = {"name": "adapter", "model": str(models / "base"), "adapter": str(tmp_path / "adapter")}
    _, events = ask(models=[one], sampling={"max_new_tokens": 20})
    asked = tokenizer("<hi>", return_tensors="pt")
    with torch.inference_mode():
        whole = tuned.generate(**asked, max_new_tokens=20, do_sample=False)
    wanted = tokenizer.decode(whole[0, asked["input_ids"].shape[1] :], skip_special_tokens=True)
    assert answers(events)[0]["text"] == wanted != by_generate(models / "base", "<hi>", 20)


def test_an_end_token_ends_the_answer(ask, models, tmp_path):
    """The likeliest next token is made the end token."""
    model = AutoModelForCausalLM.from_pretrained(models / "base")
    tokenizer = AutoTokenizer.from_pretrained(models / "base")
    with torch.inference_mode():
        first = int(model(**tokenizer("[user:hi]", return_tensors="pt")).logits[0, -1].argmax())
    model.generation_config.eos_token_id = [first, tokenizer.eos_token_id]
    for made in (model, tokenizer):
        made.save_pretrained(tmp_path / "ended")
    _, events = ask(models=[{"name": "ended", "model": str(tmp_path / "ended")}])
    assert [(a["tokens"], a["stopped_by"]) for a in answers(events)] == [(1, "eos")]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"sampling": {"max_new_tokens": 1000}}, "more than the 512 positions of base. Ask for 503 new tokens"),
        ({"prompts": [{"text": "x" * 600}]}, "Shorten it"),
        (
            {"prompts": [{"messages": [{"role": "system", "content": "no"}]}]},
            "chat template refuses it: no such",
        ),
        ({"models": [{"name": "m", "model": "/nowhere"}]}, "models.m: /nowhere is not on this node"),
        ({"models": [{"name": "m", "model": "some/model"}]}, "this node has no copy of some/model"),
    ],
)
def test_it_rejects_before_anything_is_loaded(ask, how, words):
    status, events = ask(**how)
    assert (status, [e.kind for e in events]) == (1, ["finished"])
    assert events[0].data["reason"] == "configuration"
    assert words in events[0].data["text"]


def test_it_rejects_a_model_that_does_not_fit(ask, monkeypatch):
    monkeypatch.setattr(fit, "memory", lambda: Memory(2_000_000_000, 650_000_000))
    _, events = ask("base", "tuned")
    assert [e.kind for e in events] == ["finished"]
    assert events[0].data["text"].count("GB of memory and 0.7 GB are free") == 2


@pytest.fixture
def moved(models: Path, tmp_path: Path) -> Any:
    """Return a function that asks one model twice; `each` piece it tells moves the clock on, or asks for a stop."""

    def asked(seconds: float, each: float, *, stop: bool = False) -> list[Event]:
        clock = [0.0]

        class Moved(Course):
            def piece(self, text: str, tokens: int) -> None:
                super().piece(text, tokens)
                clock[0] += each
                if stop:
                    (tmp_path / "stop").touch()

        body = {"models": [{"name": "base", "model": str(models / "base")}], "prompts": [CHAT, CHAT]}
        how = {"seconds": seconds, "sampling": {"max_new_tokens": 200}, "events": str(tmp_path / "events.jsonl")}
        job = AnswerJob.model_validate(body | how)
        course = Moved(job, Journal(tmp_path / "events.jsonl"))
        assert cli.run(job, course, Limits(Path(job.events), job.seconds, lambda: clock[0])) == 1
        return told(tmp_path)

    return asked


@pytest.mark.parametrize("why", ["time", "stop"])
def test_a_limit_ends_it_between_tokens(moved, why):
    events = moved(60.0, 100.0, stop=why == "stop")
    first, second = answers(events)
    assert (first["stopped_by"], second["stopped_by"], second["tokens"]) == (why, why, 0)
    assert 0 < first["tokens"] < 200
    assert events[-1].data["reason"] == {"time": "time_limit", "stop": "stopped"}[why]
    assert "while base answered prompt 1" in events[-1].data["text"]


def test_each_answer_has_its_share_of_the_time(moved):
    events = moved(60.0, 10.0)
    first, second = answers(events)
    assert first["stopped_by"] == second["stopped_by"] == "time"
    assert 30 <= first["seconds"] <= 40 <= 60 <= first["seconds"] + second["seconds"] <= 70
    assert second["tokens"] > 0
    assert events[-1].data["reason"] == "time_limit"


def test_the_guard_ends_what_no_code_of_ours_runs_in(models, tmp_path):
    """As where weights are read for minutes: the process is left with all that was said told."""
    asked = {"models": [{"name": "base", "model": str(models / "base")}], "prompts": [CHAT], "seconds": 1}
    job = AnswerJob.model_validate(asked | {"events": str(tmp_path / "events.jsonl")})
    course = Course(job, Journal(tmp_path / "events.jsonl"))
    course.doing("loading base")
    left: list[int] = []
    with Guard(Limits(Path(job.events), 0.0), course, left.append, patience=0.0):
        until(lambda: left)
    assert left == [1]
    assert [(e.kind, e.data.get("stopped_by")) for e in told(tmp_path)] == [("answer", "time"), ("finished", None)]
    assert told(tmp_path)[-1].data["text"] == "the time of 1 s was over while loading base"
    course.piece("too late", 1)
    assert len(told(tmp_path)) == 2


def test_pieces_never_cut_a_character_in_two():
    tokenizer, told = bytewise.tokenizer(), []
    text = "naïve 猫 🙂" + "�" + "end"
    pieces = Pieces(tokenizer, lambda new, count: told.append(new), iter(float(i) for i in range(1000)).__next__)
    pieces.put(torch.tensor([[1, 2, 3]]))  # the prompt
    for token in tokenizer(text)["input_ids"]:
        pieces.put(torch.tensor([token]))
    pieces.end()
    assert "".join(told) == text
    assert {"ï", "猫", "🙂", "�e"} <= set(told)


def test_bytes_that_are_no_character_are_told_at_the_end():
    tokenizer, told = bytewise.tokenizer(), []
    pieces = Pieces(tokenizer, lambda new, count: told.append(new), lambda: 0.0)
    pieces.put(torch.tensor([[1]]))
    for token in tokenizer("ok猫")["input_ids"][:-1]:
        pieces.put(torch.tensor([token]))
    pieces.end()
    assert told[-1].endswith("�")
    json.dumps("".join(told)).encode("ascii")


def test_by_hand(models, tmp_path):
    """The command itself: answers on a node, stands back behind others, and heeds a signal while it answers."""
    body = {"models": [{"name": "base", "model": "base"}], "prompts": [CHAT] * 20, "nice": 3,
            "sampling": {"max_new_tokens": 400}, "events": str(tmp_path / "events.jsonl")}  # fmt: skip
    (tmp_path / "job.json").write_text(json.dumps(body))
    command = [sys.executable, "-m", "training", "answer", "--print", str(tmp_path / "job.json")]
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=out, cwd=models)
    until(lambda: (tmp_path / "events.jsonl").exists() and any(e.kind == "token" for e in told(tmp_path)))
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == os.getpriority(os.PRIO_PROCESS, 0) + 3
    process.terminate()
    assert process.wait(GENEROUS) == 1
    assert len(answers(told(tmp_path))) == 20
    assert answers(told(tmp_path))[-1]["stopped_by"] == "stop"
    assert told(tmp_path)[-1].data["reason"] == "stopped"
    assert (tmp_path / "out").read_text().startswith(f"\n== base, prompt 1\n{answers(told(tmp_path))[0]['text'][:20]}")


def test_it_requires_a_job(tmp_path):
    (tmp_path / "job.json").write_text('{"prompts": [{"text": " "}]}')
    done = call("answer", str(tmp_path / "job.json"))
    assert done.returncode == 2
    assert "models" in done.stderr
    assert "it is empty" in done.stderr
