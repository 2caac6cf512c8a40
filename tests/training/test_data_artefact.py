"""Data is tokenised once: by one process, under a name that says all it was made of, whole or not at all."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.training.attempts import Attempts
from tests.training.launch import ROOT, events, of_kind
from tests.training.tokens import CHATML, TAGGED, chat, job
from training.data.artefact import prepare
from training.data.read import read
from training.data.tokenise import heed_stop
from training.data.tokenise import main as tokenise_here
from training.endings import Ended
from training.journal import Journal
from training.loading.tokenizer import load_tokenizer
from training.spec.folder import JobFolder
from training.spec.job import TrainJob
from training.spec.lint import Refused

ROWS = [{"messages": chat(f"What is {n} + {n}?", f"It is {2 * n}.")} for n in range(30)]
LONG = [{"prompt": "long " * 200, "completion": " 4"}, {"prompt": "2+2=", "completion": " 4"}]


@pytest.fixture
def tokenizer(attempts: Attempts) -> Any:
    return AutoTokenizer.from_pretrained(attempts.model)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "tokens").iterdir() if not path.name.startswith("."))


def test_the_second_time_it_is_only_read(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    described = job(tmp_path, attempts.model, ROWS)
    first, second = prepare(described, tokenizer), prepare(described, tokenizer)
    assert (first.made, second.made) == (True, False)
    assert first.tokens.path == second.tokens.path == tmp_path / "tokens" / first.facts()["artefact"]
    assert first.counts == second.counts
    assert list(first.train()) == list(second.train())
    assert first.test() is None
    assert [file["filename"] for file in second.train().cache_files] == [str(second.tokens.rows("train"))]


def changed_rows(job: TrainJob, tokenizer: Any) -> TrainJob:
    path = Path(job.train)
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"It is 2.", b"It is 3."))  # of the same size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    return job


def changed_setting(job: TrainJob, tokenizer: Any) -> TrainJob:
    data = job.recipe.data.model_copy(update={"max_length": 63})
    return job.model_copy(update={"recipe": job.recipe.model_copy(update={"data": data})})


def changed_tokenizer(job: TrainJob, tokenizer: Any) -> TrainJob:
    tokenizer.add_tokens(["What is"])
    return job


def changed_template(job: TrainJob, tokenizer: Any) -> TrainJob:
    tokenizer.chat_template = CHATML + "x"
    return job


@pytest.mark.parametrize("change", [changed_rows, changed_setting, changed_tokenizer, changed_template])
def test_whatever_changes_makes_another(
    attempts: Attempts, tokenizer: Any, tmp_path: Path, change: Callable[[TrainJob, Any], TrainJob]
) -> None:
    described = job(tmp_path, attempts.model, ROWS)
    first = prepare(described, tokenizer)
    second = prepare(change(described, tokenizer), tokenizer)
    assert second.made
    assert names(tmp_path) == sorted({first.tokens.path.name, second.tokens.path.name})


def test_the_same_rows_elsewhere_have_the_same_name(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    tokenizer(["a", "longer"], padding=True)  # leaves its mark in a fast tokenizer
    found = {prepare(job(tmp_path / place, attempts.model, ROWS), tokenizer).tokens.path.name for place in "ab"}
    assert len(found) == 1


def test_what_a_killed_maker_left_is_taken_for_nothing(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    described = job(tmp_path, attempts.model, ROWS)
    whole = prepare(described, tokenizer)
    torn = tmp_path / "tokens" / f"{whole.tokens.unfinished}torn"
    shutil.copytree(whole.tokens.path, torn)
    shutil.rmtree(whole.tokens.path)
    assert prepare(described, tokenizer).made
    assert not torn.exists()


def test_a_killed_maker_is_followed_by_the_next(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    described = job(tmp_path, attempts.model, ROWS)

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    child = multiprocessing.get_context("fork").Process(target=prepare, args=(described, tokenizer, die))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert names(tmp_path) == []
    assert prepare(described, tokenizer).made
    assert list((tmp_path / "tokens").glob(".*.new-*")) == []


def test_of_several_at_once_one_makes_it(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    described = job(tmp_path, attempts.model, ROWS)
    context = multiprocessing.get_context("fork")
    gate, told = context.Barrier(3), context.Queue()

    def one() -> None:
        gate.wait(60)
        prepared = prepare(described, tokenizer)
        told.put((prepared.made, len(prepared.train())))

    children = [context.Process(target=one) for _ in range(3)]
    for child in children:
        child.start()
    found = sorted(told.get(timeout=60) for _ in children)
    for child in children:
        child.join(60)
    assert found == [(False, 30), (False, 30), (True, 30)]


def test_a_folder_that_cant_be_written_is_refused(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    described = job(tmp_path, attempts.model, ROWS)
    (tmp_path / "tokens").symlink_to("/proc")  # nobody may make a file there, not even root
    with pytest.raises(Refused, match="tokens can't be kept in"):
        prepare(described, tokenizer)


def test_a_stop_ends_it_between_batches(attempts: Attempts, tokenizer: Any, tmp_path: Path) -> None:
    described = job(tmp_path, attempts.model, ROWS)
    (tmp_path / "stop").touch()
    with pytest.raises(Ended, match="asked to stop before training began"):
        prepare(described, tokenizer, lambda: heed_stop(described))
    assert names(tmp_path) == []


def put(described: TrainJob) -> str:
    path = Path(described.events).with_name("recipe.json")
    path.write_text(described.model_dump_json())
    return str(path)


def tokenise(described: TrainJob, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "training", "tokenise", put(described), *command],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_makes_it_tells_of_it_and_goes_on(attempts: Attempts, tmp_path: Path) -> None:
    described = job(
        tmp_path, attempts.model, LONG, format="prompt-completion", train_on="completion", untrained_rows=0.5
    )
    done = tokenise(described, "sh", "-c", "echo then $TOKENIZERS_PARALLELISM; exit 7")
    assert (done.returncode, done.stdout) == (7, "then false\n"), done.stderr
    told = events(JobFolder(tmp_path))
    assert [event.kind for event in told] == ["phase", "data", "warning"]
    assert told[0].data == {"name": "tokenising"}
    (name,) = names(tmp_path)
    assert told[1].data["artefact"] == name
    assert told[1].data["sha256"] == hashlib.sha256(Path(described.train).read_bytes()).hexdigest()
    assert {key: told[1].data[key] for key in ("rows", "kept", "untrained", "made", "test")} == {
        "rows": 2,
        "kept": 1,
        "untrained": 1,
        "made": True,
        "test": None,
    }
    assert told[2].data["text"] == "train: 50% of rows keep no trained token (1 of 2) and are left out"
    assert sorted(path.name for path in (tmp_path / "tokens" / name).iterdir()) == ["counts.json", "train.arrow"]


def test_the_command_says_why_it_failed_and_starts_nothing(attempts: Attempts, tmp_path: Path) -> None:
    described = job(tmp_path, attempts.model, [{"messages": []}])
    assert tokenise_here([put(described), "false"]) == 1
    (finished,) = of_kind(JobFolder(tmp_path), "finished")
    assert finished.data["reason"] == "data"
    assert "train.jsonl, line 1: it has no list `messages`" in finished.data["text"]


def test_a_template_of_the_recipe_takes_the_place_of_the_models(attempts: Attempts, tmp_path: Path) -> None:
    described = job(tmp_path, attempts.model, ROWS, template=TAGGED, train_on="assistant")
    tokenizer = load_tokenizer(described)
    assert tokenizer.chat_template == TAGGED
    row = prepare(described, tokenizer).train()[0]
    assert tokenizer.decode([label for label in row["labels"] if label != -100]) == "It is 0.<|im_end|>"


@pytest.mark.parametrize(
    ("every", "share", "told"),
    [(5, 0.0, "but there are no test rows"), (0, 0.2, "they are never evaluated on"), (5, 0.2, ""), (0, 0.0, "")],
)
def test_an_evaluation_that_nothing_comes_of_is_told(
    attempts: Attempts, tokenizer: Any, tmp_path: Path, every: int, share: float, told: str
) -> None:
    asked = job(tmp_path, attempts.model, ROWS, test_share=share)
    optimisation = asked.recipe.optimisation.model_copy(update={"evaluate_every": every})
    asked = asked.model_copy(update={"recipe": asked.recipe.model_copy(update={"optimisation": optimisation})})
    read(asked, tokenizer, Journal(asked.events))
    texts = [event.data["text"] for event in of_kind(asked.folder, "warning")]
    assert len(texts) == bool(told)
    assert told in "".join(texts)
