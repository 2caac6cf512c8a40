"""Parts of the service that end while a run trains: the run never notices, and no line is lost."""

from __future__ import annotations

import subprocess
import sys
import time

import httpx

from tests.e2e.stack import ROOT, until

from .case import Told, case
from .field import Field

GROUP = "the service"
TRAINS = "running"


def _killed(field: Field, name: str) -> Told:
    """End a part as the kernel would; wait until it is back and the numbers flow."""
    run = field.long()
    began = time.monotonic()
    gone = field.stack.kill(name)
    until(f"the {name} to be back", lambda: _back(field, name, gone))
    until("the service to be healthy", field.stack.healthy)
    back = time.monotonic() - began
    field.goes_on(run)
    seen = field.site.run(run)
    assert "running" in seen.split("|")[0], seen
    return Told(run, f"{seen}; the part was back after {back:.1f} s", TRAINS, back)


def _back(field: Field, name: str, gone: int) -> bool:
    try:
        return field.stack.child(name).pid != gone
    except LookupError:
        return False


@case(GROUP, "kill -9 of the worker")
def worker_killed(field: Field) -> Told:
    return _killed(field, "worker")


@case(GROUP, "kill -9 of the follower")
def follower_killed(field: Field) -> Told:
    return _killed(field, "follower")


@case(GROUP, "kill -9 of beat")
def beat_killed(field: Field) -> Told:
    return _killed(field, "beat")


@case(GROUP, "kill -9 of the web server")
def web_killed(field: Field) -> Told:
    return _killed(field, "web")


@case(GROUP, "kill -9 of Redis")
def redis_killed(field: Field) -> Told:
    return _killed(field, "redis")


@case(GROUP, "kill -9 of `make up` itself, with all that it started; then started again")
def everything_killed(field: Field) -> Told:
    run = field.long()
    at = field.told(run)["step"]
    assert field.stack.launcher is not None
    field.stack.launcher.kill()
    field.stack.launcher.wait()
    began = time.monotonic()
    until("the site to be gone", lambda: not _answers(field.stack.url))
    noticed = time.monotonic() - began
    field.stack.start()
    after = field.reached(run, at + 2)
    return Told(run, f"no page; after the start step {after}, {field.site.run(run)}", TRAINS, noticed)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code > 0
    except httpx.HTTPError:
        return False


SEND = """
import sys
from concurrent.futures import ThreadPoolExecutor
from workers.app import app
with ThreadPoolExecutor(8) as pool:
    list(pool.map(lambda _: app.send_task("workers.advance_run", args=[int(sys.argv[1])]), range(40)))
"""


@case(GROUP, "the same task delivered forty times while the run trains")
def delivered_again(field: Field) -> Told:
    run = field.long()
    send(field, run)
    field.goes_on(run, 3)
    told = field.told(run)
    assert len(told["attempts"]) == 1
    for host in field.hosts[:2]:
        assert len([p for p in field.of(run, host) if "supervise" in p.cmdline()]) == 1
    return Told(run, field.site.run(run), TRAINS)


def send(field: Field, run: int) -> None:
    """Deliver the run's task forty times."""
    env = field.stack.env | {"SHARDBOARD_REDIS_URL_FILE": str(field.stack.state / "redis" / "url")}
    subprocess.run([sys.executable, "-c", SEND, str(run)], cwd=ROOT, env=env, check=True)
