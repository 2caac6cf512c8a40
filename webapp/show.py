"""How pages print things: ages, sizes, durations, states. Loaded into every template (see settings)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import groupby

from django import template
from django.conf import settings
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from training.spec.faults import SENTENCES

register = template.Library()

NOTHING = "\N{EN DASH}"
UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
WORDS = {"d": "day", "h": "hour", "min": "minute", "s": "second"}
# Glyph and Tabler colour of every state of a run or an export: the glyph and the word carry it without colour.
STATES = {
    "draft": ("✎", "secondary"),
    "queued": ("◷", "azure"),
    "preparing": ("⚙", "azure"),
    "planning": ("?", "azure"),
    "planned": ("◇", "secondary"),
    "gathering": ("⇄", "azure"),
    "starting": ("▷", "azure"),
    "running": ("▶", "blue"),
    "stopping": ("◧", "orange"),
    "stopped": ("■", "secondary"),
    "cancelled": ("■", "secondary"),
    "succeeded": ("✓", "green"),
    "ready": ("✓", "green"),
    "answered": ("✓", "green"),
    "done": ("✓", "green"),
    "failed": ("✕", "red"),
}


@dataclass(frozen=True)
class Bar:
    """One memory with its limit, in bytes. `note`: what else there is to say of it."""

    label: str
    used: float
    total: float
    note: str = ""


@register.filter
def why(reason: str) -> str:
    """Return the sentence of a reason, which is kept as a word; another word as it is."""
    return {str(word): sentence for word, sentence in SENTENCES.items()}.get(reason, reason)


@register.filter
def duration(value: timedelta | float | None) -> str:
    """Return `value` (a timedelta or seconds) as its two largest units: '2 h 5 min'."""
    if value is None:
        return ""
    left = int(value.total_seconds() if isinstance(value, timedelta) else value)
    parts = []
    for size, unit in UNITS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2]) or "0 s"


@register.filter
def in_words(value: timedelta | float) -> str:
    """Return `value` as `duration` does, with its units spelled out: '10 minutes', '1 hour 30 minutes'."""
    parts = duration(value).split()
    return " ".join(
        f"{count} {WORDS[unit]}{'' if count == '1' else 's'}"
        for count, unit in zip(parts[::2], parts[1::2], strict=True)
    )


def age(moment: datetime, now: datetime | None = None) -> str:
    """Return '3 min ago'; a moment in the future reads 'in 3 min'."""
    seconds = ((now or timezone.now()) - moment).total_seconds()
    size, unit = next(((s, u) for s, u in UNITS if abs(seconds) >= s), (1, "s"))
    # An age is whole units gone by; of a time to come the nearest, or what ends in 90 days would at once read 89.
    count = int(seconds // size) if seconds > 0 else round(-seconds / size)
    if count < 1 or (unit == "s" and count < 5):
        return "just now"
    return f"{count} {unit} ago" if seconds > 0 else f"in {count} {unit}"


@register.filter
def ago(moment: datetime | None) -> str | SafeString:
    """Return the age, with the exact time on hover; the page's script keeps it fresh."""
    if moment is None:
        return NOTHING
    exact = moment.astimezone(timezone.get_current_timezone())
    return format_html(
        '<time datetime="{}" title="{}" data-ago>{}</time>',
        exact.isoformat(),
        f"{exact:%Y-%m-%d %H:%M:%S %Z}",
        age(moment),
    )


@register.filter
def size(count: float | None) -> str:
    """Return bytes as '1.5 GB' (powers of 1000, as disks and hubs count)."""
    if count is None:
        return NOTHING
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1000
    raise AssertionError("the last unit returns")


@register.filter
def figure(value: float | str | None) -> str:
    """Return a metric's value in four digits; what is not finite keeps its name."""
    if value is None:
        return NOTHING
    return value if isinstance(value, str) else f"{value:.4g}"


@register.filter
def fact(value: object) -> str:
    """Return a reported fact as a person reads it: a large whole number with its thousands apart."""
    if value is None or value == "":
        return NOTHING
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@register.filter
def setting(value: object) -> str:
    """Return a recipe's value as a person reads it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return ", ".join(setting(each) for each in value) or "empty"
    return NOTHING if value is None else str(value) or "empty"


@register.filter
def words(name: str) -> str:
    """Return `world_size` as 'world size'."""
    return name.replace("_", " ")


@register.filter
def hint(text: str) -> SafeString:
    """Return a field's description with what stands between backticks as code."""
    parts = text.split("`")
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if i % 2 else part,) for i, part in enumerate(parts))
    )


@register.filter
def preset_value(value: str, kind: str) -> str:
    """Return a form's text for a preset's value as a person reads it."""
    if kind == "switch":
        return "on" if value else "off"
    return (value if len(value) <= 40 else f"{value[:39]}\N{HORIZONTAL ELLIPSIS}") or "empty"


@register.filter
def counted(number: float) -> str:
    """Return a count in three digits: '12.3 M'."""
    for unit in ("", " k", " M", " G", " T"):
        if abs(number) < 1000 or unit == " T":
            return f"{number:.3g}{unit}"
        number /= 1000
    raise AssertionError("the last unit returns")


@register.filter
def money(amount: float) -> str:
    """Return an amount with the currency of the settings: '12.30 $'."""
    return f"{amount:,.2f} {settings.CURRENCY}"


@register.filter
def percent(part: float, whole: float) -> int:
    """Return `part` of `whole` in per cent, 0 to 100."""
    return max(0, min(100, round(100 * part / whole))) if whole else 0


@register.filter
@cache  # a list has one on every row
def state_badge(state: str) -> SafeString:
    glyph, colour = STATES.get(state, ("·", "secondary"))
    return format_html(
        '<span class="badge bg-{}-lt state" data-state="{}"><span aria-hidden="true">{}</span> {}</span>',
        colour,
        state,
        glyph,
        state,
    )


@register.filter
def sparkline(values: list[float | None] | None) -> SafeString | str:
    """Return a small curve of `values`; None breaks the line."""
    finite = [v for v in values or [] if v is not None]
    if len(finite) < 2 or values is None:
        return ""
    low, span = min(finite), (max(finite) - min(finite)) or 1.0
    wide, high = 80 / (len(values) - 1), 18 / span
    points = ["" if v is None else f"{i * wide:.1f} {19 - (v - low) * high:.1f}" for i, v in enumerate(values)]
    lines = ["M" + " ".join(line) for there, line in groupby(points, bool) if there]
    return format_html(
        '<svg class="sparkline" viewBox="0 0 80 20" width="80" height="20" role="img" aria-label="{}">'
        '<path d="{}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>',
        f"loss from {finite[0]:.4g} to {finite[-1]:.4g}",
        " ".join(lines),
    )
