"""manage.py add_dataset, add_model."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from webapp.datasets.models import Version
from webapp.runs.models import ModelSource

pytestmark = pytest.mark.django_db


def run(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def test_it_works(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "id": 1}\n')
    assert "1 rows, 1 test, new" in run("add_dataset", "d", str(path), "--test", str(path))
    assert "left out: id in 2" in run("add_dataset", "d2", str(path), "--test", str(path))
    assert "there already" in run("add_dataset", "d", str(path), "--test", str(path))
    assert Version.objects.count() == 2


def test_it_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("x\n")
    with pytest.raises(CommandError, match="train, line 1, column 1"):
        run("add_dataset", "d", str(path))
    with pytest.raises(CommandError, match="No such file"):
        run("add_dataset", "d", str(tmp_path / "none"))
    with pytest.raises(CommandError, match="no user"):
        run("add_dataset", "d", str(path), "--owner", "nobody")


def test_a_model_is_added_once_and_can_be_moved() -> None:
    run("add_model", "m", "/models/a")
    run("add_model", "m", "meta-llama/Llama-2-70b-hf", "--revision", "abc")
    assert ModelSource.objects.get().location == "meta-llama/Llama-2-70b-hf"


@pytest.mark.parametrize("location", ["relative", "../x", "a/b/c", ""])
def test_a_model_that_is_nowhere(location: str) -> None:
    with pytest.raises(CommandError, match="location"):
        run("add_model", "m", location)
    assert not ModelSource.objects.exists()
