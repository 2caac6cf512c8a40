"""One part on one database: python -m tests.bench.store.one sqlite|postgres ingest|windows"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from ..following import service


def main(engine: str, part: str) -> int:
    with tempfile.TemporaryDirectory(prefix="shardboard-store-") as name, ExitStack() as stack:
        folder = Path(name)
        os.environ["SHARDBOARD_STATE"] = str(folder / "state")
        os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
        stack.enter_context(service.database(engine == "postgres"))
        stack.enter_context(service.private_redis(folder / "redis"))
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        from . import ingest, windows

        return {"ingest": ingest, "windows": windows}[part].measured(engine, folder)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
