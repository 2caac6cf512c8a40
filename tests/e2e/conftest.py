"""A browser, and a person at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from .browser import chromium
from .person import Person
from .stack import Stack


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser a file: while Playwright is up its event loop runs, and no asynchronous test can run its own."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


@pytest.fixture
def person(page: Page, stack: Stack) -> Person:
    person = Person(page, stack.url)
    person.log_in()
    return person
