"""By hand a broken job file is refused with field, reason and way out, every field at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.answer.cli import main as answer
from training.export.cli import main as export
from training.export.planning import main as plan
from training.spec.answer import AnswerJob
from training.spec.job import ExportJob, PlanJob
from training.spec.jobfile import read_job
from training.spec.lint import Refused


def refused(model: type, text: str) -> dict[str, tuple[str, str]]:
    with pytest.raises(Refused) as caught:
        read_job(model, text.encode())
    return {found.field: (found.reason, found.fix) for found in caught.value.problems}


def test_every_wrong_field_is_named_with_a_way_out() -> None:
    found = refused(ExportJob, '{"checkpoint": "/c", "dtyp": "x", "dtype": "int3", "model": 5, "events": "/e"}')
    assert set(found) == {"out", "dtyp", "dtype", "model"}
    assert found["dtyp"] == ("unknown field", "Did you mean dtype?")
    assert found["model"][0] == "it should be a text"
    assert 'got "int3"' in found["dtype"][0]
    assert found["out"][0] == "it is missing"
    prompts = refused(AnswerJob, '{"prompts": ["hi"], "models": []}')
    assert prompts["prompts.0"][0] == "it should be an object"
    assert prompts["models"][0] == "at least 1 needed, 0 given"
    assert refused(ExportJob, "{")["job"][0].startswith("it is no JSON (line 1: ")
    assert set(refused(ExportJob, "[1]")) == {"job"}


def test_what_may_be_secret_is_not_repeated() -> None:
    text = '{"job": 3, "env": {"HF_TOKEN": ["hf_verysecret"]}, "coming": {"a": "many"}}'
    assert "hf_verysecret" not in str(refused(PlanJob, text))


@pytest.mark.parametrize("command", [export, plan, answer])
def test_a_command_says_it_in_one_line(command: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "job.json"
    path.write_text('{"events": 3}')
    assert callable(command)
    assert command([str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}: ")
    assert "events: it should be a text. " in line
