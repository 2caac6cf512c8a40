"""A site with these rows: made, logged in to, and served as it is deployed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from training.spec.ports import free_port

LATE = 60.0  # seconds for the web server to be there


def ready(folder: Path, runs: int, compared: int, points: int) -> tuple[str, list[int]]:
    """Return the key of a session that is logged in, and the runs with long series."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from . import rows, series

    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    began = time.monotonic()
    world = rows.make(folder, runs)
    long_ones = series.make(world, compared, points)
    print(f"made {runs:,} runs, and {compared} of {points:,} steps, in {time.monotonic() - began:.0f} s", flush=True)
    client = Client()
    client.force_login(world.user)
    return client.cookies["sessionid"].value, long_ones


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address of a web server of one process."""
    port = free_port("127.0.0.1")
    command = ["uvicorn", "webapp.asgi:application", "--host", "127.0.0.1", "--port", str(port), "--lifespan", "off"]
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", *command, "--no-access-log"], stdout=log, stderr=log)
    base = f"http://127.0.0.1:{port}"
    try:
        _answers(base, folder / "web.log")
        yield base
    finally:
        process.terminate()
        process.wait(timeout=20)


def _answers(base: str, log: Path) -> None:
    end = time.monotonic() + LATE
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{base}/static/logo.svg", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(log.read_text("utf-8")[-2000:])
