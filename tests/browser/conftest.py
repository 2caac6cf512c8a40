"""One site for all tests here, and a browser a file: see tests/e2e/conftest.py for why not one for all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.browser import chromium

from .site import Site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Site]:
    started = Site(tmp_path_factory.mktemp("site"), redis_url)
    yield started
    started.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(site: Site, browser: Browser) -> Iterator[Page]:
    context = site.visit(browser)
    yield context.new_page()
    context.close()
