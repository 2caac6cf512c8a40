"""No page has a serious or critical finding of axe: light and dark, on a desktop and on a phone, all unfolded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from .axe import grave
from .site import Site

pytestmark = pytest.mark.browser
PAGES = [
    "runs", "run", "run-done", "run-failed", "new-run", "queue", "shelf", "checkpoints", "export", "try", "datasets",
    "dataset", "upload", "nodes", "node", "add-node", "preflight", "identities", "destinations", "leftovers", "tokens",
    "add-model", "notices", "compare",
]  # fmt: skip
LOOKS: list[tuple[Literal["light", "dark"], int]] = [("light", 1280), ("dark", 1280), ("dark", 390), ("light", 390)]
UNFOLD = "document.querySelectorAll('details').forEach(e => { e.open = true; })"
IN_THEME = """async theme => document.documentElement.getAttribute("data-bs-theme") === theme
    && (await Promise.all(document.getAnimations().map(a => a.finished.catch(() => 0)))) && true"""


@pytest.fixture(scope="module")
def addresses(site: Site) -> dict[str, str]:
    found: dict[str, str] = site.do("everything")
    assert set(found) == set(PAGES)
    return found


@pytest.fixture(scope="module")
def shared(site: Site, browser: Browser) -> Iterator[Page]:
    """One tab for all pages: a new one each would take half as long as looking at it."""
    context = site.visit(browser, reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_nothing_serious(site: Site, shared: Page, addresses: dict[str, str], name: str) -> None:
    shared.goto(site.url + addresses[name])
    shared.evaluate(UNFOLD)
    shared.wait_for_load_state("networkidle")
    found = findings(shared)
    assert not found, "\n".join(found)


def test_nothing_serious_before_the_log_in(site: Site, browser: Browser) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{site.url}/login/")
    assert not findings(page)
    context.close()


def findings(page: Page) -> list[str]:
    """Return what is serious or critical in any look; a theme changes colours alone."""
    found = []
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(IN_THEME, arg=scheme)
        found += [f"{scheme}, {width} px: {finding}" for finding in grave(page, scheme == "dark")]
    return found
