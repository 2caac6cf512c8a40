"""Make the deployment's secrets, each once: python deploy/make_secrets.py FOLDER

Files that are there already are kept, so your own may be put there first. Every container that mounts the folder
runs as another user, so the files are readable to all who reach them: only mount the folder where it is needed.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path


def main(folder: Path) -> None:
    _once(folder / "secret_key", lambda: secrets.token_urlsafe(48))
    postgres = _once(folder / "postgres_password", lambda: secrets.token_hex(24))
    _once(folder / "database_url", lambda: f"postgres://shardboard:{postgres}@postgres:5432/shardboard")
    redis = _once(folder / "redis_password", lambda: secrets.token_hex(24))
    _once(folder / "redis_url", lambda: f"redis://:{redis}@redis:6379/0")
    # Nothing on disk: what a lost Redis held were reminders, and the sweep sends those again.
    _once(folder / "redis.conf", lambda: f'requirepass {redis}\nsave ""\nappendonly no\n')


def _once(path: Path, make: Callable[[], str]) -> str:
    """Return what the file says; write it whole or not at all where it isn't there."""
    if not path.exists():
        new = path.with_name(f".{path.name}.new")
        new.write_text(make(), "utf-8")
        new.chmod(0o444)
        os.replace(new, path)
        print(f"made {path}")
    return path.read_text("utf-8").strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
