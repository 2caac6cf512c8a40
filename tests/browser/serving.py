"""The site over rows made by hand, without nodes or workers: python -m tests.browser.serving PORT MODULE:CLASS

Serves the pages from the state folder and the database that the environment names, and reads one command a line from
its input, [name of a method of the class, arguments], answering each with a line of JSON. Ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import django
import uvicorn

HOST = "127.0.0.1"


def main(port: int, kind: str) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    module, _, name = kind.partition(":")
    rows = getattr(import_module(module), name)(Path(settings.STATE_DIR))
    server = serve(port)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, words = json.loads(line)
        print(json.dumps(getattr(rows, name)(**words)), flush=True)
    server.should_exit = True
    return 0


def serve(port: int) -> uvicorn.Server:
    """Return the server, at work in a thread of its own."""
    config = uvicorn.Config(
        "webapp.asgi:application", host=HOST, port=port, log_level="warning", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return server


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
