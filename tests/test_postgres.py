"""The tests' own PostgreSQL really serves."""

import psycopg


def test_it_serves(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("select current_setting('server_version_num')::int").fetchone()
    assert row is not None
    assert row[0] >= 150000
