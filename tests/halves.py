"""Which tests run on which database: `pytest --half=rows` are those for PostgreSQL, `--half=rest` the others.

Without it all run, on whatever database is set. On PostgreSQL run the tests that touch rows, without what starts ranks
or a browser, or is about hosts more than rows: it is the stricter of the two. On SQLite they run again only where the
SQL is ours; browsers ask pages and routes there, in tests/browser and tests/e2e.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
ROWS = ("accounts", "api", "datasets", "fleet", "live", "notices", "runs", "webapp", "workers")
BOTH = ("live", "runs", "api/test_series.py", "webapp/test_runs_list.py")
HOSTS = (
    "datasets/test_ingest.py", "datasets/test_preview.py", "fleet/test_idle.py", "fleet/test_pool.py",
    "fleet/test_ways.py", "workers/local", "workers/test_behind_a_jump_host.py", "workers/test_delivering.py",
    "workers/test_export_goes_on.py", "workers/test_exporting.py", "workers/test_kills.py", "workers/test_lost.py",
    "workers/test_provision.py", "workers/test_restarts.py", "workers/test_shards.py", "workers/test_stop.py",
    "workers/test_watch.py",
)  # fmt: skip
APART = ("ranks", "e2e", "root")  # markers


def chosen(items: Iterable[pytest.Item], half: str) -> list[pytest.Item]:
    """Return those of `items` that are in `half`: rows or rest."""
    return [item for item in items if (_is_rows(item) if half == "rows" else _is_rest(item))]


def _is_rows(item: pytest.Item) -> bool:
    apart = any(item.get_closest_marker(name) for name in APART)
    return _within(item, ROWS) and not _within(item, HOSTS) and not apart


def _is_rest(item: pytest.Item) -> bool:
    return not _is_rows(item) or _within(item, BOTH)


def _within(item: pytest.Item, places: Iterable[str]) -> bool:
    return any(item.path.is_relative_to(ROOT / place) for place in places)
