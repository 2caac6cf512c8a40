"""A started site with rows made by hand (see serving), and a person's way into it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext

from training.spec.ports import free_port

from .serving import HOST

ROOT = Path(__file__).resolve().parents[2]


class Site:
    """`url` is its address, `do` changes what its pages show: by a method of the class that `rows` names."""

    def __init__(self, folder: Path, redis_url: str, rows: str = "tests.browser.acts:Rows"):
        port = free_port(HOST)
        self.url, self.log = f"http://{HOST}:{port}", folder / "site.log"
        folder.mkdir(parents=True, exist_ok=True)
        env = os.environ | {"SHARDBOARD_STATE": str(folder), "SHARDBOARD_REDIS_URL": redis_url}
        env |= {"SHARDBOARD_DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.browser.serving", str(port), rows],
                cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        assert self._answer() == "ready"

    def do(self, act: str, **words: Any) -> Any:
        """Call a method of the rows; return what it returned."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps([act, words]) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.log.read_text("utf-8")[-4000:]
        return json.loads(line)

    def visit(self, browser: Browser, **looks: Any) -> BrowserContext:
        """Return a context of somebody who is logged in."""
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-GB"} | looks)
        context.set_default_timeout(60_000)  # only ends a test that would hang
        name, value = self.do("session")
        context.add_cookies([{"name": name, "value": value, "url": self.url}])
        return context

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(timeout=30)
