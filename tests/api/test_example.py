"""The example of docs/api.md, run as it stands, with curl and jq against the served site.

The test stands in for the workers alone: it moves the run and the export on, and keeps the model's files on a
host that is reached over real SSH.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from webapp.runs import lifecycle
from webapp.runs.models import Export, ModelSource, Run
from webapp.runs.states import RunState

from .conftest import World, checkpoint, metrics
from .server import served
from .test_downloads import CONTENT, Downloads, there  # noqa: F401  a fixture

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parents[2]
ROW = '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'


def example() -> str:
    found = re.search(r"```sh\n(.*?)```", (ROOT / "docs" / "api.md").read_text("utf-8"), re.DOTALL)
    assert found
    return found[1]


def start(script: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    (folder / "train.jsonl").write_text(ROW)
    settings = {"PATH": os.environ["PATH"], "CI_COMMIT": "0a1b2c", "POLL": "0.2"} | environment
    return subprocess.Popen(["sh", "-c", script], cwd=folder, env=settings, text=True, stdout=-1, stderr=-2)


def until(process: subprocess.Popen[str], found: Callable[[], Any]) -> Any:
    """Wait for a row that the script makes; fail with what the script said where it ends first."""
    while (row := found()) is None:
        try:
            raise AssertionError(f"ended with {process.wait(timeout=0.1)}: {process.communicate()[0]}")
        except subprocess.TimeoutExpired:
            continue
    return row


def finish(run: Run, feed: Any, *, well: bool) -> None:
    attempt = run.attempt
    assert attempt is not None
    feed(attempt, metrics((12, 2.5)))
    checkpoint(attempt, 12)
    for state in (RunState.PREPARING, RunState.STARTING, RunState.RUNNING):
        lifecycle.move(run, state, actor="test", cause="test")
    end = RunState.SUCCEEDED if well else RunState.FAILED
    lifecycle.move(run, end, actor="test", cause="test", text="" if well else "the disk is full on n1")


@pytest.fixture
def names(world: World, settings: Any, tmp_path: Path) -> None:
    """What the example names."""
    settings.DATASETS_DIR = tmp_path / "datasets"
    world.cluster.name = "demo"
    world.cluster.save()
    ModelSource.objects.create(name="tiny-llama-5M", location="/models/tiny")


def test_it_works(there: Downloads, world: World, names: None, feed: Any, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "ci"
    folder.mkdir()
    with served() as address:
        process = start(example(), folder, API=f"{address}/api/v1", TOKEN=there.secret)
        run = until(process, lambda: Run.objects.filter(name="nightly").first())
        finish(run, feed, well=True)
        export = until(process, lambda: Export.objects.filter(checkpoint__attempt__run=run).first())
        model = there.folder.parents[3] / str(run.pk) / "exports" / str(export.pk) / "model"
        model.parent.mkdir(parents=True)
        there.folder.rename(model)
        files = Export.objects.get(pk=there.export.pk).files
        Export.objects.filter(pk=export.pk).update(state="ready", node=world.nodes[0], files=files)
        output, _ = process.communicate(timeout=120)
        again = start(example(), folder, API=f"{address}/api/v1", TOKEN=there.secret)
        said, _ = again.communicate(timeout=120)
    assert process.returncode == 0, output
    assert again.returncode == 0, said
    assert Export.objects.filter(checkpoint__attempt__run=run).count() == 1
    assert '"loss": 2.5' in output
    assert {path.name: path.read_bytes() for path in (folder / "model").iterdir()} == CONTENT
    assert Run.objects.filter(name="nightly").count() == 1


def test_a_run_that_fails_fails_the_job(secret: str, names: None, feed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "ci"
    folder.mkdir()
    with served() as address:
        process = start(example(), folder, API=f"{address}/api/v1", TOKEN=secret)
        finish(until(process, Run.objects.filter(name="nightly").first), feed, well=False)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "the disk is full on n1" in output


def test_a_wrong_token_fails_the_job_and_says_so(names: None, tmp_path: Path) -> None:
    folder = tmp_path / "ci"
    folder.mkdir()
    with served() as address:
        process = start(example(), folder, API=f"{address}/api/v1", TOKEN="sb_wrong")
        process.communicate(timeout=120)
    assert process.returncode != 0
    assert "the token is wrong" in (folder / "dataset.json").read_text()
