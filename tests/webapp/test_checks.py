"""Numbered checks of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks

from webapp import checks


def ids() -> list[str]:
    return [str(message.id) for message in run_checks() if str(message.id).startswith("webapp.")]


def test_good_settings_pass(settings: Any, tmp_path: Path) -> None:
    settings.DATASETS_DIR = tmp_path / "not" / "made" / "yet"
    assert [name for name in ids() if name != "webapp.W001"] == []


@pytest.mark.parametrize(
    "url", ["", "localhost:6379", "http://localhost", "redis://", "redis://h:port/0", "redis://h:99999"]
)
def test_a_malformed_redis_url(settings: Any, url: str) -> None:
    settings.REDIS_URL = url
    assert "webapp.E001" in ids()


@pytest.mark.parametrize("key", ["short", "django-insecure-" + "x" * 50])
def test_a_default_secret_key(settings: Any, key: str) -> None:
    settings.SECRET_KEY = key
    assert "webapp.E002" in ids()


def test_debug_on_a_public_host(settings: Any) -> None:
    settings.DEBUG, settings.ALLOWED_HOSTS = True, ["train.example.org"]
    assert "webapp.E003" in ids()


def test_a_data_set_folder_that_can_not_be_written(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    settings.DATASETS_DIR = tmp_path / "file" / "datasets"
    assert "webapp.E004" in ids()


@pytest.mark.parametrize(("days", "wrong"), [("0", False), ("90", False), ("-1", True), ("1.5", True), ("", True)])
def test_days_that_samples_are_kept(settings: Any, days: str, wrong: bool) -> None:
    settings.SAMPLES_DAYS = days
    assert ("webapp.E006" in ids()) == wrong


def test_missing_front_end_packages_are_a_warning_with_a_way_out(settings: Any, tmp_path: Path) -> None:
    settings.NODE_MODULES = settings.STATIC_ROOT = tmp_path
    (warning,) = checks.front_end()
    assert (warning.id, "npm ci" in warning.hint) == ("webapp.W001", True)
    for name, file in checks.PACKAGES.items():
        collected = tmp_path / name / file.partition("/dist/")[2]
        collected.parent.mkdir(parents=True)
        collected.touch()
    assert checks.front_end() == []
