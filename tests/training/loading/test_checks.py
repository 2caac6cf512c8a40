"""What is checked before a model trains."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from transformers import AutoConfig, AutoModelForCausalLM

from tests.training.attempts import Attempts
from tests.training.launch import recipe
from training.loading.checks import check_vocabulary, check_wrapping
from training.loading.tokenizer import load_tokenizer
from training.spec.job import TrainJob
from training.spec.lint import Refused


def job(model: Path, **overrides: object) -> TrainJob:
    return TrainJob(
        recipe=recipe(**overrides),
        model=str(model),
        train="train.jsonl",
        checkpoints="checkpoints",
        events="events.jsonl",
        nodes=1,
        node_rank=0,
    )


def test_messages_need_a_chat_template(attempts: Attempts, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(job(attempts.model))
    tokenizer.chat_template = None
    tokenizer.save_pretrained(tmp_path)
    AutoConfig.from_pretrained(attempts.model).save_pretrained(tmp_path)
    with pytest.raises(Refused, match="no chat template"):
        load_tokenizer(job(tmp_path))
    assert load_tokenizer(job(tmp_path, data={"format": "text"}))


@pytest.mark.parametrize(("name", "content"), [("config.json", "{"), ("config.json", "[]"), ("tokenizer.json", "{")])
def test_a_torn_folder_is_refused(attempts: Attempts, tmp_path: Path, name: str, content: str) -> None:
    broken = Path(shutil.copytree(attempts.model, tmp_path / "model"))
    (broken / name).write_text(content)
    with pytest.raises(Refused, match="model: its config or tokenizer can't be read"):
        load_tokenizer(job(broken))


def test_a_tokenizer_larger_than_the_model_is_refused(attempts: Attempts) -> None:
    tokenizer, config = load_tokenizer(job(attempts.model)), AutoConfig.from_pretrained(attempts.model)
    check_vocabulary(config, tokenizer, "base")
    tokenizer.add_tokens(["<|one more|>"])
    with pytest.raises(Refused, match=r"4097 entries and the model 4096 rows.*resize-embeddings --model base"):
        check_vocabulary(config, tokenizer, "base")


def test_a_wrap_class_that_is_not_there_is_refused(attempts: Attempts) -> None:
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(attempts.model))
    check_wrapping(recipe(), model)
    check_wrapping(recipe(fsdp={"wrap_classes": ["LlamaDecoderLayer"]}), model)
    with pytest.raises(Refused, match="Did you mean LlamaDecoderLayer"):
        check_wrapping(recipe(fsdp={"wrap_classes": ["LLaMADecoderLayer"]}), model)
