"""The web server as a process of its own, over the rows of this one."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext

from training.spec.ports import free_port
from workers.local import stack
from workers.local.ports import HOST

WHOLE = 1_000_000  # more events than any run here has


class Web:
    """`url` is its address. Django is set up in this process, and looks at the same rows."""

    def __init__(self, port: int):
        self.url = f"http://{HOST}:{port}"

    @classmethod
    @contextmanager
    def started(cls, folder: Path) -> Iterator[Web]:
        port = free_port(HOST)
        with (folder / "web.log").open("wb") as log:
            process = subprocess.Popen(stack.web(port).argv, stdout=log, stderr=log)
        web = cls(port)
        try:
            while not web.answers():
                assert process.poll() is None, (folder / "web.log").read_text("utf-8")
                time.sleep(0.05)
            yield web
        finally:
            process.terminate()
            process.wait(timeout=60)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/login/", timeout=10):
                return True
        except OSError:
            return False

    def cookie(self) -> str:
        """Return the header of somebody who is logged in."""
        from django.conf import settings

        return f"{settings.SESSION_COOKIE_NAME}={_apart(_session)}"

    def visit(self, browser: Browser) -> BrowserContext:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(120_000)
        name, _, value = self.cookie().partition("=")
        context.add_cookies([{"name": name, "value": value, "url": self.url}])
        return context

    def events(self, run: int) -> list[Any]:
        """Return all that the run's journal holds, as rows or folded."""
        from webapp.runs.replay import replayed

        return _apart(lambda: replayed(run, 0, WHOLE))


def _session() -> str:
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get())
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def _apart(look: Any) -> Any:
    """Ask the database in a thread: where Playwright is up, its event loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(look).result()
