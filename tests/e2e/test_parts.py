"""Parts of a page that come anew by themselves, in a real browser: where one stands stays, what is old says so."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .person import Person
from .stack import Stack

pytestmark = pytest.mark.e2e

ANEW = """htmx.ajax('GET', document.getElementById('cards').getAttribute('hx-get'),
    {source: '#cards', target: '#cards', swap: 'outerHTML'}).catch(() => null)"""  # as its own poll, only now


def test_focus_outlives_a_swap_and_a_page_that_is_cut_off_says_so(stack: Stack, person: Person) -> None:
    page, told = person.page, person.at("cut-off")
    page.goto(f"{stack.url}/fleet/nodes/")
    page.get_by_role("link", name="Details").last.focus()
    held = "[document.activeElement.textContent, document.activeElement.getAttribute('href')]"
    before = page.evaluate(held)
    assert before[0] == "Details"
    page.evaluate("document.getElementById('cards').dataset.old = '1'")
    page.evaluate(ANEW)
    expect(page.locator("#cards[data-old]")).to_have_count(0)
    assert page.evaluate(held) == before
    page.context.set_offline(True)
    page.evaluate(ANEW)
    expect(told).to_contain_text("the service does not answer")
    page.context.set_offline(False)
    page.evaluate(ANEW)
    expect(told).to_be_hidden()
    page.context.clear_cookies()
    page.evaluate(ANEW)
    expect(told).to_contain_text("Your session has ended")
    expect(page.locator("#cards [data-testid=node]").first).to_be_visible()
