from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def store(settings: Any, tmp_path: Path) -> Path:
    """A place of this test's own for data sets."""
    settings.DATASETS_DIR = tmp_path / "datasets"
    return settings.DATASETS_DIR
