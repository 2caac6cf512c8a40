"""The env file reaches the ranks, secrets stay in it, and what can't stand in it is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training.spec import envfile
from training.spec.lint import Refused

from .nodejobs import NodeJob, until

PRINT = "import json, os\nprint(json.dumps(dict(os.environ)))"


def test_it_reaches_the_job(tmp_path: Path) -> None:
    hostile = {"HF_TOKEN": "hf_secret", "EMPTY": "", "ODD": "$(touch pwned) `id` \"'; = # \u2028 é"}
    hostile["NCCL_IB_HCA"] = "=mlx5_0:1,mlx5_1"
    job = NodeJob(tmp_path).put(PRINT, env=envfile.dump(hostile))
    job.start()
    assert job.exit()["reason"] == "completed"
    seen = json.loads(Path(job.folder.log).read_text())
    assert {name: seen[name] for name in hostile} == hostile
    assert seen["SHARDBOARD_JOB"] == str(job.path)
    assert not (job.path / "pwned").exists()


def test_a_secret_is_in_no_argument_and_no_other_file(tmp_path: Path) -> None:
    job = NodeJob(tmp_path).put("import time\nprint('up', flush=True)\ntime.sleep(600)", env="HF_TOKEN=hf_secret\n")
    job.start()
    job.said("up")
    until(lambda: len(job.samples()) > 2)
    for pid in (job.supervisor(), *job.status()["processes"]):
        assert b"hf_secret" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    job.signal("kill")
    for path in job.path.iterdir():
        assert path.name == "env" or b"hf_secret" not in path.read_bytes(), path


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620])
def test_others_may_not_read_it(tmp_path: Path, mode: int) -> None:
    job = NodeJob(tmp_path).put("open('began', 'w')", env="A=b\n")
    Path(job.folder.env).chmod(mode)
    job.start()
    assert job.exit()["reason"] == "launch"
    assert "chmod 600" in job.exit()["text"]
    assert not (job.path / "began").exists()


@pytest.mark.parametrize(
    "text", ["no equals\n", "1A=b\n", "A B=c\n", "=x\n", "A=b\r\n", "A=b\0c\n", "SHARDBOARD_JOB=/x\n"]
)
def test_a_bad_file_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(Refused) as refused:
        envfile.parse("OK=1\n" + text.replace("b", "hunter2"))
    assert "line 2" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("value", ["a\nLD_PRELOAD=/x", "a\rb", "a\0b"])
def test_a_value_of_two_lines_is_refused(value: str) -> None:
    with pytest.raises(Refused, match="line break"):
        envfile.dump({"HF_TOKEN": value})


def test_dump_and_parse_agree() -> None:
    env = {"A": "1", "B": "", "C": "a=b #c", "D": "\u2028x\x0b"}
    assert envfile.parse(envfile.dump(env)) == env
