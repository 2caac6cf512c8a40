"""A button that copies, on a page that came over plain HTTP from another machine: browsers give it no clipboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .site import Site

pytestmark = pytest.mark.browser


def test_what_can_not_be_copied_is_selected(site: Site, page: Page) -> None:
    page.add_init_script("delete Navigator.prototype.clipboard")
    page.goto(f"{site.url}/accounts/tokens/")
    page.locator("[name=name]").fill("from a laptop")
    page.locator("[name=name]").press("Enter")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Selected: copy it")).to_be_visible()
    assert page.evaluate("getSelection().toString()") == page.get_by_test_id("token-secret").inner_text()
