"""A site with these rows: made, and logged in to."""

from __future__ import annotations

import os
import time
from pathlib import Path


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
