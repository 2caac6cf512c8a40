"""A private PostgreSQL for as long as a command runs: python -m tests.postgres COMMAND...

The command gets SHARDBOARD_DATABASE_URL. As root the server runs as nobody, since it refuses root.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from training.spec.ports import free_port

USER = "postgres"  # within the server
UNPRIVILEGED = ("nobody", "nogroup")  # on every Debian; a user postgres is only where its package was set up whole


class Missing(RuntimeError):
    """No PostgreSQL server is installed."""


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Yield the URL of an empty server on a free port of loopback; raise Missing."""
    programs = binaries()
    with tempfile.TemporaryDirectory(prefix="shardboard-postgres-") as name:
        folder, port = Path(name), free_port("127.0.0.1")
        if os.geteuid() == 0:
            owner = pwd.getpwnam(UNPRIVILEGED[0])
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data = folder / "data"
        # nothing here outlives the tests: no wait for the disk
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off -c synchronous_commit=off"
        _run(programs / "initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        _run(programs / "pg_ctl", "-D", data, "-o", settings, "-l", folder / "log", "-w", "start")
        try:
            yield f"postgres://{USER}@127.0.0.1:{port}/postgres"
        finally:
            _run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def binaries() -> Path:
    """Return the folder of initdb and pg_ctl, the newest where Debian has several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent
    if on_path := shutil.which("initdb"):
        return Path(on_path).resolve().parent
    raise Missing("no PostgreSQL server is installed: apt-get install postgresql")


def _run(*command: str | Path) -> None:
    words = [str(word) for word in command]
    if os.geteuid() == 0:
        user, group = UNPRIVILEGED
        words = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *words]
    done = subprocess.run(words, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout}")


def main(command: list[str]) -> int:
    try:
        with server() as url:
            environment = {**os.environ, "SHARDBOARD_DATABASE_URL": url}
            return subprocess.run(command, env=environment, check=False).returncode
    except Missing as reason:
        print(f"tests on PostgreSQL can't run: {reason}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
