"""`{% load leftovers %}{% leftover_count as left %}`: how many leftovers are known."""

from __future__ import annotations

from django import template

from .. import actions

register = template.Library()


@register.simple_tag
def leftover_count() -> int:
    return actions.there().count()
