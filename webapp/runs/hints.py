"""What SQLite is told of the tables that the list of runs is read from, so that it reads them out of their indexes.

PostgreSQL counts by itself. SQLite, which is told nothing, finds a run's loss by the unique index of sketches, though
a wide row has to be read behind it, and an owner's runs by the index of owners, though another has all that the list
asks for: in both cases three times as slow with 10,000 runs. Figures written down once serve as well as counted ones
(https://sqlite.org/lang_analyze.html) and are the same everywhere. A table that a migration makes anew loses its own:
they are written after each.
"""

from __future__ import annotations

from django.db import connections

# By table and by its index's columns: how many rows are alike in its first column, its first two, and so on. Those that
# are not archived are put at a tenth of what one owner has, so that the index that covers is taken for both.
HINTS = {
    "runs_run": {
        "archived_at,state,ended_at,id,owner_id,model_id,dataset_id,step,created_at,name": [10_000, 2_000, *[1] * 8],
        "owner_id": [100_000],
        "model_id": [100_000],
        "dataset_id": [100_000],
    },
    "runs_sketch": {"run_id,last": [1, 1], "run_id": [1]},
}
ROWS = 2**20  # as many as SQLite takes any other table to have: joins with those are ordered as they were
READ = "ANALYZE sqlite_schema"  # counts nothing; else a connection reads figures when it is opened
COLUMNS = "SELECT group_concat(name) FROM (SELECT name FROM pragma_index_info(%s) ORDER BY seqno)"


def write(using: str) -> None:
    """Write them down where the database is SQLite."""
    if connections[using].vendor != "sqlite":
        return
    with connections[using].cursor() as cursor:
        cursor.execute(READ)  # makes the table of figures where there is none
        for table, hints in HINTS.items():
            cursor.execute("DELETE FROM sqlite_stat1 WHERE tbl = %s", [table])
            cursor.execute("SELECT name FROM pragma_index_list(%s)", [table])
            for (index,) in cursor.fetchall():
                columns = cursor.execute(COLUMNS, [index]).fetchone()[0]
                if alike := hints.get(columns):
                    figures = " ".join(map(str, [ROWS, *alike]))
                    cursor.execute("INSERT INTO sqlite_stat1 VALUES (%s, %s, %s)", [table, index, figures])
        cursor.execute(READ)
