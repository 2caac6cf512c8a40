"""Start everything on this machine: python -m workers.local {up,demo}

up: Redis, two loopback SSH hosts, the site, a worker, the follower, beat. demo: the same, and a first run.
Ctrl-C ends all of it, training on the loopback hosts included. What is kept lies in SHARDBOARD_STATE.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from . import broker, prepare
from .children import GaveUp
from .place import PROJECT, CannotStart, Place
from .ports import web_port
from .say import say
from .session import Session
from .stack import Stack, build

ADMIN_PASSWORD = "SHARDBOARD_ADMIN_PASSWORD"  # noqa: S105  a name, not a password


def main(argv: list[str]) -> int:
    """Run until told to end; 1 with the reason where it can't."""
    parser = argparse.ArgumentParser(prog="python -m workers.local", description="Start everything on this machine.")
    parser.add_argument("what", choices=["up", "demo"])
    options = parser.parse_args(argv)
    try:
        return start(demo=options.what == "demo")
    except (CannotStart, GaveUp, TimeoutError) as reason:
        print(f"shardboard: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def start(*, demo: bool) -> int:
    port = web_port()
    place = Place.from_environment()
    with place.lock():
        os.chdir(PROJECT)  # what is started finds its modules from here
        # Taken out, so that nothing started later, training on the hosts included, has it in its environment.
        password = os.environ.pop(ADMIN_PASSWORD, "")
        stack = build(place, port)
        prepare.samples(place)
        register(place, stack)
        return asyncio.run(Session(place, stack, demo, password).run())


def register(place: Place, stack: Stack) -> None:
    """Set Django up for this state folder; bring tables and rows up to date."""
    os.environ["SHARDBOARD_REDIS_URL_FILE"] = str(broker.url_file(place.redis))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django

    django.setup()
    say("bringing the database up to date: some 10 seconds the first time")
    prepare.tables()
    from .register import register_all

    register_all(place, stack.ports)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
