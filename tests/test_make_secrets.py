"""A deployment's secrets: made once, kept when they are there, consistent with one another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "deploy" / "make_secrets.py"


def make(folder: Path) -> dict[str, str]:
    subprocess.run([sys.executable, str(SCRIPT), str(folder)], check=True, capture_output=True)
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_they_fit_together(tmp_path: Path) -> None:
    made = make(tmp_path)
    assert made["database_url"] == f"postgres://shardboard:{made['postgres_password']}@postgres:5432/shardboard"
    assert made["redis_url"] == f"redis://:{made['redis_password']}@redis:6379/0"
    assert f"requirepass {made['redis_password']}\n" in made["redis.conf"]
    assert len({made["secret_key"], made["postgres_password"], made["redis_password"]}) == 3


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    assert make(tmp_path) == make(tmp_path)


def test_ones_own_are_kept_and_used(tmp_path: Path) -> None:
    (tmp_path / "postgres_password").write_text("mine\n")
    made = make(tmp_path)
    assert made["postgres_password"] == "mine\n"
    assert made["database_url"] == "postgres://shardboard:mine@postgres:5432/shardboard"
