"""Data sets: uploaded, refused with line numbers, and rendered as training reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from webapp.datasets.models import Dataset, Version
from webapp.runs.models import ModelSource

from .rows import HOSTILE, World

GOOD = b'{"text": "one two three four"}\n{"text": "five"}\n'
TEMPLATE = "{% for m in messages %}{{ m.role }} : {{ m.content }} {% endfor %}"


def upload(page: Client, content: bytes, **data: Any) -> Any:
    file = SimpleUploadedFile(data.pop("file", "rows.jsonl"), content)
    return page.post("/datasets/upload", {"name": "new", "train": file} | data)


@pytest.fixture
def model(tmp_path: Path) -> ModelSource:
    """A tokenizer of words, with a chat template, as a model folder has it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({"?": 0, "</s>": 1}, unk_token="?"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="?", eos_token="</s>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(tmp_path / "model")
    return ModelSource.objects.create(name="words", location=str(tmp_path / "model"))


def test_it_uploads(page: Client, world: World) -> None:
    answer = upload(page, GOOD)
    version = Version.objects.get(dataset__name="new")
    assert answer.headers["Location"] == f"/datasets/{version.dataset_id}/"
    assert (version.rows, version.format, version.dataset.owner) == (2, "text", world.user)
    assert "holds these rows already" in upload(page, GOOD).wsgi_request._messages._queued_messages[0].message


def test_it_rejects_a_broken_line_by_its_number(page: Client, world: World) -> None:
    answer = upload(page, GOOD + b'{"text": 7}\n{"text": "x"\n')
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "line 3" in text
    assert "line 4" in text
    assert not Dataset.objects.filter(name="new").exists()


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b\x08\x00zip", b'{"text": "caf\xe9"}\n'])
def test_it_rejects_what_is_no_json_lines(page: Client, content: bytes) -> None:
    assert upload(page, content).context["problems"]
    assert not Dataset.objects.filter(name="new").exists()


def test_the_name_of_the_file_means_nothing(page: Client, world: World, settings: Any) -> None:
    upload(page, GOOD, file="../../x.jsonl")
    kept = {path.name for path in Path(settings.DATASETS_DIR).rglob("*.jsonl")}
    assert kept == {"train.jsonl"}


def test_the_pages_show_rows_as_text(page: Client, world: World) -> None:
    assert "chat" in page.get("/datasets/").content.decode()
    world.draft("user of it")
    text = page.get(f"/datasets/{world.version.dataset_id}/").content.decode()
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "user of it" in text


def test_rows_are_rendered_through_the_template_and_cut(page: Client, world: World, model: ModelSource) -> None:
    address = f"/datasets/{world.version.dataset_id}/?model={model.pk}&tokens=3"
    row, *others = page.get(address).context["rendered"]
    whole = f"user : {HOSTILE} assistant : Yes. "
    assert row.trained + row.cut == whole
    assert row.trained.split() == whole.split()[:3]
    assert row.tokens == len(whole.split())
    assert len(others) == 4
    assert page.get(address.replace("tokens=3", "tokens=500")).context["rendered"][0].cut == ""


def test_a_model_that_is_not_here_is_said_and_rows_stay(page: Client, world: World) -> None:
    answer = page.get(f"/datasets/{world.version.dataset_id}/?model={world.model.pk}")
    assert [problem.field for problem in answer.context["problems"]] == ["model"]
    assert len(answer.context["raw"]) == 5


def test_a_template_that_raises_is_said(page: Client, world: World, model: ModelSource) -> None:
    file = Path(model.location) / "chat_template.jinja"
    file.write_text("{{ raise_exception('no system turns') }}")
    answer = page.get(f"/datasets/{world.version.dataset_id}/?model={model.pk}")
    (problem,) = answer.context["problems"]
    assert "no system turns" in problem.reason


def test_an_unknown_version_is_not_found(page: Client, world: World) -> None:
    for number in ("9", "x", "-1"):
        assert page.get(f"/datasets/{world.version.dataset_id}/?version={number}").status_code == 404


def test_a_file_that_has_gone_is_said(page: Client, world: World) -> None:
    (world.version.folder / "train.jsonl").unlink()
    answer = page.get(f"/datasets/{world.version.dataset_id}/")
    assert [problem.field for problem in answer.context["problems"]] == ["dataset"]
