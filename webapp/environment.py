"""Typed readers of the environment. A secret may also come from the file that NAME_FILE names."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "") or default


def flag(name: str, default: bool = False) -> bool:
    value = text(name)
    return default if not value else value.lower() in {"1", "true", "yes", "on"}


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def secret(name: str) -> str:
    """Return the secret from NAME_FILE, else from NAME, else an empty string."""
    path = text(f"{name}_FILE")
    return Path(path).read_text("utf-8").strip() if path else text(name)


def kept_secret(path: Path) -> str:
    """Return the secret kept in `path`, made on first use; of two that race, one wins for both."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_when_written(path)
    with os.fdopen(handle, "w") as file:
        value = secrets.token_urlsafe(48)
        file.write(value)
    return value


def _read_when_written(path: Path) -> str:
    value = path.read_text("utf-8")
    while not value:  # the winner of the race is between open and write
        value = path.read_text("utf-8")
    return value
