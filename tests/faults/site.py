"""The site as a person reads it: pages, logged in, by the names that tests find things by."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import httpx

from tests.e2e.stack import PASSWORD, Stack

VOID = frozenset({"input", "br", "img", "meta", "link", "hr"})


class Site:
    """`stack`'s pages, as the admin sees them."""

    def __init__(self, stack: Stack):
        self.http = httpx.Client(base_url=stack.url, follow_redirects=True, timeout=60)
        self.post("/login/", username="admin", password=PASSWORD)

    def page(self, path: str) -> str:
        answer = self.http.get(path)
        answer.raise_for_status()
        return answer.text

    def post(self, path: str, **fields: str) -> str:
        """Send a form of the site; return the page that follows."""
        if "csrftoken" not in self.http.cookies:
            self.http.get("/login/")
        data = fields | {"csrfmiddlewaretoken": self.http.cookies["csrftoken"]}
        answer = self.http.post(path, data=data)
        answer.raise_for_status()
        return answer.text

    def run(self, run: int) -> str:
        """Return what stands at the top of a run's page: its state, and every notice below it."""
        header = self.page(f"/runs/{run}/part/header")
        notices = texts(header, "role", "status")
        return " | ".join([*texts(header, "data-testid", "state"), *notices])

    def nodes(self) -> str:
        return self.page("/fleet/nodes/")


def texts(page: str, attribute: str, value: str) -> list[str]:
    """Return the text of every element whose `attribute` is `value`, blanks made one."""
    reader = _Texts(attribute, value)
    reader.feed(page)
    return [re.sub(r"\s+", " ", text).strip() for text in reader.found]


class _Texts(HTMLParser):
    def __init__(self, attribute: str, value: str):
        super().__init__()
        self.wanted, self.depth, self.found = (attribute, value), 0, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        if self.depth:
            self.depth += 1
        elif self.wanted in attrs:
            self.depth = 1
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        if self.depth and tag not in VOID:
            self.depth -= 1

    def handle_data(self, data: str) -> None:
        if self.depth:
            self.found[-1] += data
