"""One shape for every error: {"error": short, "problems": [{"field", "reason", "fix"}]}."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI, Schema
from ninja.errors import HttpError, ValidationError

from training.spec.jobfile import words
from training.spec.lint import Problem, Refused
from webapp.runs.downloads import CannotSend

log = logging.getLogger(__name__)

DOCS = "/api/v1/docs"
TITLES = {
    400: "bad request",
    401: "not authenticated",
    403: "not allowed",
    404: "not found",
    405: "method not allowed",
    409: "conflict",
    422: "refused",
    500: "internal error",
    503: "not available",
}


class ProblemShape(Schema):
    """One thing that is wrong: where, why, and the way out."""

    field: str
    reason: str
    fix: str


class ErrorShape(Schema):
    """What every answer of 400 and above holds."""

    error: str
    problems: list[ProblemShape]


class Stop(Exception):
    """Ends a request with `status` and one problem."""

    def __init__(self, status: int, field: str, reason: str, fix: str):
        self.status = status
        self.problem = Problem(field, reason, fix)
        super().__init__(str(self.problem))


def answer(status: int, problems: Iterable[Problem]) -> JsonResponse:
    """Return the error answer; 401 names the scheme, as HTTP wants."""
    body = {"error": TITLES.get(status, "error"), "problems": [vars(problem) for problem in problems]}
    response = JsonResponse(body, status=status)
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="shardboard"'
    return response


def no_such_address(request: HttpRequest, **_: Any) -> HttpResponse:
    return answer(404, [Problem("path", f"there is nothing at {request.path}", f"See {DOCS} for what there is.")])


def wrong_method(request: HttpRequest, allowed: Sequence[str]) -> HttpResponse:
    words = ", ".join(sorted(allowed))
    response = answer(405, [Problem("method", f"{request.method} does not work here", f"Use {words}.")])
    response["Allow"] = words
    return response


def register(api: NinjaAPI) -> None:
    """Give every kind of error that a request can end in its answer."""
    for kind, handler in HANDLERS.items():
        api.add_exception_handler(kind, handler)


def _of_field(error: dict[str, Any]) -> Problem:
    """`loc` begins with body, query, path, form or file, and for a body with the parameter's name."""
    where, *rest = [str(part) for part in error["loc"]]
    field = ".".join(rest[1:] if where == "body" and len(rest) > 1 else rest) or where
    if error["type"] == "extra_forbidden":
        return Problem(field, "unknown field", f"Leave it out; {DOCS} lists the fields.")
    if error["type"] == "missing":
        return Problem(field, "it is missing", f"Give it; {DOCS} lists the fields.")
    reason, fix = words(error)
    return Problem(field, reason, fix or f"Change the value; {DOCS} says what fits.")


def _of_http(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, Stop):  # ninja wraps what our parser says about a body
        return answer(error.__cause__.status, [error.__cause__.problem])
    return answer(error.status_code, [Problem("request", error.message, f"See {DOCS}.")])


def _of_form(request: HttpRequest, error: Exception) -> HttpResponse:
    """Django names what is wrong with a body that it can't take apart, or won't for its size."""
    fix = "Send a well-formed body: curl -F name=NAME -F train=@FILE."
    return answer(400, [Problem("body", str(error) or "it can't be read", fix)])


def _of_bug(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return answer(500, [Problem("service", "an error of the service itself", "Its log says more; then try again.")])


# Callable[..., Any]: ninja's own type for a handler takes the class or an instance, and is always given the latter.
HANDLERS: dict[type[Exception], Callable[..., HttpResponse]] = {
    Refused: lambda request, error: answer(422, error.problems),
    Stop: lambda request, error: answer(error.status, [error.problem]),
    CannotSend: lambda request, error: answer(error.status, [error.problem]),
    ValidationError: lambda request, error: answer(422, map(_of_field, error.errors)),
    Http404: lambda request, error: no_such_address(request),
    HttpError: _of_http,
    MultiPartParserError: _of_form,
    SuspiciousOperation: _of_form,
    Exception: _of_bug,
}
