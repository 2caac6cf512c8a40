"""Numbered checks of the settings: a wrong one is said at start, with the way out, and is no surprise later."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from webapp.runs import retention

LOCAL = {"localhost", "127.0.0.1", "[::1]", "testserver"}
SHORT_KEY = 32
PACKAGES = {
    "tabler": "@tabler/core/dist/css/tabler.min.css",
    "htmx": "htmx.org/dist/htmx.min.js",
    "uplot": "uplot/dist/uPlot.iife.min.js",
}


@register()
def redis_url(**kwargs: Any) -> list[CheckMessage]:
    url = urlparse(settings.REDIS_URL)
    try:
        good = url.scheme in ("redis", "rediss") and bool(url.hostname) and url.port != 0
    except ValueError:
        good = False
    if good:
        return []
    return [
        Error(
            "SHARDBOARD_REDIS_URL is no address of a Redis",  # the value may hold a password
            hint="Give redis://HOST:PORT/0, or rediss:// for TLS.",
            id="webapp.E001",
        )
    ]


@register()
def secret_key(**kwargs: Any) -> list[CheckMessage]:
    if len(settings.SECRET_KEY) >= SHORT_KEY and not settings.SECRET_KEY.startswith("django-insecure"):
        return []
    return [
        Error(
            f"SHARDBOARD_SECRET_KEY is a default or has fewer than {SHORT_KEY} characters",
            hint="Unset it to have one made and kept in the state folder, or give a long random one.",
            id="webapp.E002",
        )
    ]


@register()
def debug_in_public(**kwargs: Any) -> list[CheckMessage]:
    if not settings.DEBUG or set(settings.ALLOWED_HOSTS) <= LOCAL:
        return []
    return [
        Error(
            f"SHARDBOARD_DEBUG is on while SHARDBOARD_HOSTS opens the site to {', '.join(settings.ALLOWED_HOSTS)}",
            hint="Debug pages show settings and data to anybody: unset SHARDBOARD_DEBUG.",
            id="webapp.E003",
        )
    ]


@register()
def datasets_dir(**kwargs: Any) -> list[CheckMessage]:
    """The nearest folder that exists must take new entries; the rest is made on first use."""
    folder = Path(settings.DATASETS_DIR)
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return []
    return [
        Error(
            f"{folder} can't be written, so no data set can be stored",
            hint=f"Let this user write {nearest}, or set SHARDBOARD_STATE to a folder of its own.",
            id="webapp.E004",
        )
    ]


@register()
def mail(**kwargs: Any) -> list[CheckMessage]:
    if not settings.EMAIL_URL or (settings.EMAIL_HOST and "@" in settings.DEFAULT_FROM_EMAIL):
        return []
    what = "SHARDBOARD_EMAIL_FROM is no address to send from" if settings.EMAIL_HOST else (
        "SHARDBOARD_EMAIL_URL is no address of a mail server"  # the value may hold a password
    )  # fmt: skip
    return [
        Error(
            what,
            hint="Give smtp+starttls://USER:PASSWORD@HOST:587, smtps:// or smtp://, and SHARDBOARD_EMAIL_FROM.",
            id="webapp.E005",
        )
    ]


@register()
def samples_days(**kwargs: Any) -> list[CheckMessage]:
    if retention.days() is not None:
        return []
    return [
        Error(
            f"SHARDBOARD_SAMPLES_DAYS is {settings.SAMPLES_DAYS!r}, no whole number of days",
            hint="Give how many days after a run's end its raw samples are kept, or 0 to keep them for ever.",
            id="webapp.E006",
        )
    ]


@register()
def front_end(**kwargs: Any) -> list[CheckMessage]:
    """Where static files were collected (a container's image), node_modules isn't needed."""
    missing = [
        name
        for name, file in PACKAGES.items()
        if not (settings.NODE_MODULES / file).is_file()
        and not (Path(settings.STATIC_ROOT) / name / file.partition("/dist/")[2]).is_file()
    ]
    if not missing:
        return []
    return [
        Warning(
            f"front-end packages are missing: {', '.join(missing)}; pages will look bare and show no live view",
            hint="Run `make`, or `npm ci --prefix webapp/frontend`.",
            id="webapp.W001",
        )
    ]
