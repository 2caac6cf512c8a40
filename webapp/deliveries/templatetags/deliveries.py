"""`{% load deliveries %}{% deliveries_of export %}`: an export's deliveries, and the button that makes one."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import RequestContext

from webapp.runs.models import Export

from ..parts import context as part

register = template.Library()


@register.inclusion_tag("deliveries/part.html", takes_context=True)
def deliveries_of(context: RequestContext, export: Export) -> dict[str, Any]:
    request = context["request"]
    return {**part(export, request.user), "request": request, "csrf_token": context.get("csrf_token", "")}
