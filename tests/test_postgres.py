"""The tests' own PostgreSQL really serves, and the site keeps connections to one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg

ASKED = """
import json
import os
from concurrent.futures import ThreadPoolExecutor
import psycopg
import webapp.asgi
from django.db import connection

def request():
    "As a thread of a request does: ask, and close at its end."
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid(), current_setting('application_name')")
            return cursor.fetchone()
    finally:
        connection.close()

def apart():
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(request).result()

kept = [apart() for _ in range(6)]
with psycopg.connect(os.environ["SHARDBOARD_DATABASE_URL"]) as other:
    other.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s) AS pid", [[pid for pid, _ in set(kept)]])
print(json.dumps([kept, apart()]))
"""


def test_it_serves(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("select current_setting('server_version_num')::int").fetchone()
    assert row is not None
    assert row[0] >= 150000


def test_the_site_s_threads_share_connections_and_none_gets_a_dead_one(postgres_url: str, tmp_path: Path) -> None:
    url = f"{postgres_url}?application_name=the-site"
    env = os.environ | {"SHARDBOARD_DATABASE_URL": url, "SHARDBOARD_STATE": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", ASKED],
        cwd=Path(__file__).parents[1],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    kept, after = json.loads(run.stdout)
    pids = {pid for pid, _ in kept}
    assert len(pids) < len(kept)
    assert after[0] not in pids
    assert {name for _, name in [*kept, after]} == {"the-site"}  # what the address asks for holds
