"""The new-run form in a real browser: every setting within reach, none in the way."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .person import Person
from .stack import Stack

pytestmark = pytest.mark.e2e


def test_settings_unfold_and_only_what_means_something_is_in_sight(stack: Stack, person: Person) -> None:
    page = person.page
    page.goto(f"{stack.url}/runs/new/")
    person.at("preset").select_option("tiny")
    page.locator("#load-preset").click()
    person.at("name").fill("by hand")
    for name, label in (("model", "tiny-llama-5M"), ("cluster", "demo"), ("dataset", "code-chat")):
        option = person.at(name).locator("option", has_text=label).first
        person.at(name).select_option(option.get_attribute("value"))
    rank, method = page.locator('[name="method.rank"]'), page.locator("[data-group=method]")
    expect(method).to_be_hidden()
    page.get_by_text("All settings").click()
    method.locator("summary").click()
    expect(rank).to_be_hidden()
    page.locator('[name="method.kind"]').select_option("lora")
    rank.fill("8")
    expect(method.locator("[data-differing]")).to_have_text("2 differ from the preset")
    expect(page.locator("#all-settings > summary [data-differing]")).to_have_text("2 differ from the preset")
    expect(person.at("fits")).to_have_text("✓ can run")
    expect(person.at("planned-rate")).to_contain_text("step 12")
    person.at("save-draft").click()
    page.wait_for_url("**/runs/*/")
    recipe = stack.run(int(page.url.rstrip("/").rpartition("/")[2]))["recipe"]
    assert (recipe["method"]["kind"], recipe["method"]["rank"]) == ("lora", 8)
