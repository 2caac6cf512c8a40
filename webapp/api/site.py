"""The API put together, and its addresses: mounted at /api/v1/ by webapp/urls.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from . import (
    catalogue,
    checkpoints,
    datasets,
    deliveries,
    export_actions,
    exports,
    health,
    identities,
    leftovers,
    node_actions,
    nodes,
    notices,
    preflights,
    problems,
    queue,
    run_actions,
    runs,
    trials,
)
from .access import Access
from .wire import StrictParser, StrictRenderer

ABOUT = """Fine-tunes as rows: make a run, watch it, export the model. Every request needs
`Authorization: Bearer TOKEN` (`manage.py create_token USER`); a logged-in browser may read.
Every error is `{"error", "problems": [{"field", "reason", "fix"}]}`."""


class Api(NinjaAPI):
    """Says in its schema what every error looks like."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        schema = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        shapes = problems.ErrorShape.model_json_schema(ref_template="#/components/schemas/{model}")
        schema["components"]["schemas"] |= shapes.pop("$defs") | {"ErrorShape": shapes}
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorShape"}}}
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"]["4XX"] = {
                    "description": "What is wrong, why, and the way out",
                    "content": content,
                }
        return schema


api = Api(
    title="Shardboard",
    version="1",
    description=ABOUT,
    auth=Access(),
    parser=StrictParser(),
    renderer=StrictRenderer(),
    urls_namespace="api",
)
problems.register(api)
PARTS = (
    runs, run_actions, checkpoints, export_actions, exports, deliveries, trials, datasets,
    catalogue, nodes, node_actions, identities, preflights, leftovers, queue, notices, health,
)  # fmt: skip
for part in PARTS:
    api.add_router("", part.router)

View = Callable[..., Any]


def _open(view: View) -> View:
    """Answer 401 ourselves instead of sending to the log-in page, and say 405 in our own shape."""
    if iscoroutinefunction(view):

        @wraps(view)
        async def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            return _shaped(request, await view(request, *args, **kwargs))

    else:

        @wraps(view)
        def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            return _shaped(request, view(request, *args, **kwargs))

    return login_not_required(answered)


def _shaped(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if isinstance(response, HttpResponseNotAllowed):
        return problems.wrong_method(request, response["Allow"].split(", "))
    return response


def _addresses() -> list[URLPattern]:
    own = [pattern for pattern in api.urls[0] if isinstance(pattern, URLPattern)]
    for pattern in own:
        pattern.callback = _open(_to_docs if pattern.name == "api-root" else pattern.callback)
    return [*own, path("<path:rest>", csrf_exempt(_open(problems.no_such_address)))]


def _to_docs(request: HttpRequest) -> HttpResponse:
    return redirect("api:openapi-view")


urls = (_addresses(), "api", "api")
