"""What axe finds in a page. Rules: https://github.com/dequelabs/axe-core/blob/develop/doc/rule-descriptions.md"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

AXE = Path(__file__).resolve().parents[2] / "webapp" / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
GRAVE = ("serious", "critical")
RUN = """async options => (await axe.run(document, options)).violations.map(({id, impact, nodes}) =>
    [impact, id, nodes.map(n => `${n.html.slice(0, 200)} ${n.any.map(a => a.message).join("; ")}`)])"""
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}


def grave(page: Page, only_colours: bool = False) -> list[str]:
    """Return the serious and critical findings in what the page shows now, one a line."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(AXE.read_text("utf-8") + ";0")  # past the page's policy, which forbids foreign scripts
    found = page.evaluate(RUN, (COLOURS if only_colours else {}) | {"resultTypes": ["violations"]})
    return [f"{impact} {rule}: {node}" for impact, rule, nodes in found if impact in GRAVE for node in nodes]
