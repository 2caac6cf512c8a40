"""The schema is a good OpenAPI document, its page needs no foreign host, and no input that fits it fails us."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webapp.api.site import api
from webapp.runs import actions

from .conftest import ROOT, Caller, Feed, World, metrics, strictly


def schema() -> dict[str, Any]:
    answer = Client().get(f"{ROOT}/openapi.json")
    assert answer.status_code == 200
    return strictly(answer)


def test_every_reference_leads_somewhere() -> None:
    found = schema()
    for name in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(found)):
        assert name in found["components"]["schemas"]


def test_operations_are_named_once_described_and_say_how_they_fail() -> None:
    operations = [o for path in schema()["paths"].values() for o in path.values()]
    assert len({o["operationId"] for o in operations}) == len(operations) >= 20
    for operation in operations:
        assert operation["description"]
        assert "4XX" in operation["responses"]


def test_all_that_was_promised_is_there() -> None:
    have = {(method.upper(), path.removeprefix(ROOT)) for path, o in schema()["paths"].items() for method in o}
    runs = "/runs/{run_id}"
    promised = {
        ("POST", "/runs"), ("GET", "/runs"), ("GET", runs), ("GET", f"{runs}/events"), ("GET", f"{runs}/log"),
        ("GET", f"{runs}/series/{{name}}"), ("POST", f"{runs}/stop"), ("POST", f"{runs}/resume"),
        ("POST", f"{runs}/clone"), ("POST", f"{runs}/exports"), ("GET", "/exports/{export_id}"),
        ("POST", "/exports/{export_id}/deliveries"), ("POST", "/deliveries/{delivery_id}/cancel"),
        ("POST", "/exports/{export_id}/start"), ("POST", "/exports/{export_id}/cancel"),
        ("POST", "/exports/{export_id}/resume"),
        ("GET", "/exports/{export_id}/files/{name}"), ("GET", "/exports/{export_id}/archive"), ("POST", "/datasets"),
        ("GET", "/datasets"), ("GET", "/datasets/{dataset_id}"), ("GET", "/clusters"), ("GET", "/nodes/{node_id}"),
        ("GET", "/presets"), ("GET", "/models"), ("GET", "/healthz"),
    }  # fmt: skip
    assert promised <= have


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = Client().get(f"{ROOT}/docs")
    assert page.status_code == 200
    links = re.findall(r'(?:src|href)="([^"]+)"', page.content.decode())
    assert any("swagger-ui" in link for link in links)
    assert all(link.startswith("/static/") for link in links)
    assert not re.search(rb"<script>[^<]", page.content)  # the site's policy allows no inline script
    assert Client().get(f"{ROOT}/").url == f"{ROOT}/docs"  # type: ignore[attr-defined]


def test_the_files_of_the_page_are_here() -> None:
    from django.contrib.staticfiles.finders import find

    assert Path(str(find("ninja/swagger-ui-bundle.js"))).stat().st_size > 10_000


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)
RECIPE = st.dictionaries(st.sampled_from(["model", "data", "optimisation", "fsdp", "precision", "x"]), ANY_JSON)
FIELDS = {
    "name": st.text() | ANY_JSON, "preset": st.sampled_from(["tiny", "no"]) | ANY_JSON, "recipe": RECIPE | ANY_JSON,
    "model": st.sampled_from(["tiny", 1]) | ANY_JSON, "dataset": st.sampled_from(["chat", "chat@1", 1]) | ANY_JSON,
    "cluster": st.just("pair") | ANY_JSON, "launch": st.booleans() | ANY_JSON,
    "checkpoint": ANY_JSON, "dtype": ANY_JSON,
}  # fmt: skip
BODY = st.fixed_dictionaries({}, optional=FIELDS) | ANY_JSON
POSTS = [path for path, operations in api.get_openapi_schema(path_prefix="/")["paths"].items() if "post" in operations]
GETS = [path for path, operations in api.get_openapi_schema(path_prefix="/")["paths"].items() if "get" in operations]
IDS = st.sampled_from(["1", "0", "99", "9" * 25, "-1", "x", "%00"])
FAST = settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def past(world: World, feed: Feed) -> None:
    feed(actions.launch(world.run(), "ada"), metrics((1, 1.0), (2, "NaN")))


def answered(answer: Any) -> None:
    """Whatever came in, the answer is ours: never a 5xx but for what is not there to ask, always our shape."""
    assert answer.status_code < 500 or answer.status_code == 503, answer.content
    body = strictly(answer) if answer.status_code != 302 and answer.content else {}
    if answer.status_code >= 400 and "missing" not in body:
        assert set(body) == {"error", "problems"}


@pytest.mark.parametrize("path", POSTS)
def test_no_body_fails_us(call: Caller, world: World, past: None, path: str) -> None:
    @FAST
    @given(body=BODY, key=IDS)
    def check(body: Any, key: str) -> None:
        answered(call.post(re.sub(r"\{\w+\}", key, path), body))

    check()


@pytest.mark.parametrize("path", GETS)
def test_no_query_fails_us(call: Caller, world: World, past: None, path: str) -> None:
    words = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30) | IDS
    names = st.sampled_from(["state", "q", "cursor", "limit", "after", "points", "tail"])

    @FAST
    @given(query=st.dictionaries(names, words), key=IDS)
    def check(query: dict[str, str], key: str) -> None:
        address = re.sub(r"\{\w+\}", key, path)
        answered(call.client.get(ROOT + address, query, headers=call.headers))

    check()
