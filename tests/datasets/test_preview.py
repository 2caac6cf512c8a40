"""Rows through a model's chat template, as training reads them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from training.spec.lint import Refused
from webapp.datasets.ingest import take
from webapp.datasets.models import Version
from webapp.datasets.preview import LONGEST, first_rows, render_rows
from webapp.runs.models import ModelSource

pytestmark = pytest.mark.django_db
CHAT = {"messages": [{"role": "user", "content": "Grüße ☃?"}, {"role": "assistant", "content": "Yes."}]}
RENDERED = "<|im_start|>user\nGrüße ☃?<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    command = [sys.executable, "-m", "training", "sample-model", "tiny", str(folder)]
    assert subprocess.run(command, check=False).returncode == 0
    return folder


@pytest.fixture
def model(tiny: Path) -> ModelSource:
    return ModelSource.objects.create(name="tiny", location=str(tiny))


def version(*rows: Any) -> Version:
    return take("set", io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows))).version


def test_it_works(model: ModelSource) -> None:
    found = render_rows(version(*[CHAT] * 5), model, count=3)
    assert len(found) == 3
    assert [row.number for row in found] == [1, 2, 3]
    assert (found[0].trained, found[0].cut) == (RENDERED, "")
    assert found[0].tokens > 10


def test_what_the_assistant_says_is_marked(model: ModelSource) -> None:
    (row,) = render_rows(version(CHAT), model, 1, train_on="assistant")
    assert row.trained == "Yes.<|im_end|>"
    assert "".join(piece.text for piece in row.pieces) == RENDERED
    assert [piece.kind for piece in row.pieces] == ["given", "trained", "given"]
    assert 0 < row.trained_tokens < row.tokens


def test_a_completion_is_marked_with_its_end(model: ModelSource) -> None:
    pair = version({"prompt": "2+2=", "completion": "4"})
    (row,) = render_rows(pair, model, 1, train_on="completion")
    assert [(piece.kind, piece.text) for piece in row.pieces] == [("given", "2+2="), ("trained", "4<|im_end|>")]
    with pytest.raises(Refused, match="rows of prompt-completion can't be trained on 'assistant' alone"):
        render_rows(pair, model, 1, train_on="assistant")


def test_the_marks_are_those_that_training_makes(model: ModelSource, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    from tests.training.tokens import job
    from training.data.artefact import prepare

    described = job(tmp_path, Path(model.location), [CHAT], train_on="assistant")
    labels = prepare(described, AutoTokenizer.from_pretrained(model.location)).train()[0]["labels"]
    (row,) = render_rows(version(CHAT), model, 1, train_on="assistant")
    assert (len(labels), sum(label != -100 for label in labels)) == (row.tokens, row.trained_tokens)


def test_what_is_behind_the_cut_is_not_trained(model: ModelSource) -> None:
    whole, row = (render_rows(version(CHAT), model, 1, max_length=n)[0] for n in (1024, 3))
    assert (row.trained, row.trained + row.cut) == ("<|im_start|>user", RENDERED)
    assert row.tokens == whole.tokens > 3


def test_of_a_megabyte_a_page_gets_the_start(model: ModelSource) -> None:
    row = render_rows(version({"text": "word " * 200_000}), model, 1)[0]
    assert len(row.trained + row.cut) == LONGEST
    assert row.tokens > 200_000


def test_the_tokens_are_those_that_training_counts(model: ModelSource) -> None:
    from transformers import AutoTokenizer

    ids = AutoTokenizer.from_pretrained(model.location).apply_chat_template(CHAT["messages"], return_dict=False)
    assert render_rows(version(CHAT), model, 1)[0].tokens == len(ids)


def test_a_text_ends_with_the_end_token(model: ModelSource) -> None:
    assert render_rows(version({"text": "once"}), model, 1)[0].trained == "once<|im_end|>"


def test_rows_are_shown_as_stored() -> None:
    assert first_rows(version(CHAT | {"id": 3}), 2) == [CHAT]


def test_a_model_that_the_service_does_not_see(tmp_path: Path) -> None:
    model = ModelSource.objects.create(name="far", location=str(tmp_path / "none"))
    with pytest.raises(Refused, match="not on this host: there is no folder"):
        render_rows(version(CHAT), model, 3)


def test_a_tokenizer_that_is_broken(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    model = ModelSource.objects.create(name="broken", location=str(tmp_path))
    with pytest.raises(Refused, match="can't be read"):
        render_rows(version(CHAT), model, 3)


@pytest.mark.parametrize(
    ("template", "said"),
    [("", "no chat template"), ("{{ raise_exception('roles must alternate') }}", "roles must alternate")],
)
def test_a_template_that_does_not_take_the_rows(tiny: Path, tmp_path: Path, template: str, said: str) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((tiny / name).read_bytes())
    if template:
        (tmp_path / "chat_template.jinja").write_text(template)
    model = ModelSource.objects.create(name="other", location=str(tmp_path))
    with pytest.raises(Refused, match=said):
        render_rows(version(CHAT), model, 3)


def test_a_file_that_is_gone(model: ModelSource) -> None:
    made = version(CHAT)
    (made.folder / "train.jsonl").unlink()
    with pytest.raises(Refused, match="can't be read"):
        render_rows(made, model, 3)


def test_no_torch_is_imported(tiny: Path) -> None:
    code = (
        "import django, sys; django.setup()\n"
        "from webapp.datasets import preview\n"
        "from webapp.runs.models import ModelSource\n"
        "preview._tokenizer(ModelSource(location=sys.argv[1]))\n"
        "sys.exit('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tiny)]
    environment = {"DJANGO_SETTINGS_MODULE": "webapp.settings", "PATH": "/usr/bin:/bin"}
    assert subprocess.run(command, env=environment, check=False).returncode == 0
