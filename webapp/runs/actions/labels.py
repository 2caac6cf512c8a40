"""What people keep of a run beside what it did: tags, notes, and whether lists show it."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from training.spec.lint import Problem, Refused

from .. import lifecycle
from ..models import Run, Tag

MOST_TAGS, LONGEST_TAG = 20, 40
LONGEST_NOTES = 10_000


def tags_of(names: Iterable[str]) -> list[str]:
    """Return tags as they are kept: in small letters, single spaces, each once, sorted. Raises Refused."""
    found = sorted({Tag.kept(name) for name in names} - {""})
    if problems := [problem for name in found if (problem := _tag_problem(name))]:
        raise Refused(problems)
    if len(found) > MOST_TAGS:
        raise Refused([Problem("tags", f"there are {len(found)}", f"A run has at most {MOST_TAGS}.")])
    return found


def _tag_problem(name: str) -> Problem | None:
    if len(name) > LONGEST_TAG:
        why = f"{name[:LONGEST_TAG]!r}... has {len(name)} characters"
        return Problem("tags", why, f"At most {LONGEST_TAG} fit.")
    if "," in name or any(ord(c) < 32 or ord(c) == 127 for c in name):
        return Problem("tags", f"{name!r} has a comma or a control character", "Leave them out: commas part tags.")
    return None


@transaction.atomic
def set_tags(run: Run, names: Iterable[str]) -> list[str]:
    """Give a run these tags in the place of those it has; return them as they are kept."""
    wanted = tags_of(names)
    lifecycle.lock(run.pk)
    have = set(run.tags.values_list("name", flat=True))
    run.tags.exclude(name__in=wanted).delete()
    Tag.objects.bulk_create([Tag(run=run, name=name) for name in wanted if name not in have])
    return wanted


@transaction.atomic
def add_tags(run: Run, names: Iterable[str]) -> list[str]:
    """Give a run these tags beside those it has; return all."""
    fresh = tags_of(names)
    if not fresh:
        raise Refused([Problem("tags", "none is given", "Type one, or several with commas between them.")])
    lifecycle.lock(run.pk)
    return set_tags(run, [*fresh, *run.tags.values_list("name", flat=True)])


@transaction.atomic
def write_notes(run: Run, text: str) -> None:
    """Write down what is to be known of a run; empty: nothing."""
    text = text.replace("\r\n", "\n").strip()
    if len(text) > LONGEST_NOTES:
        raise Refused([Problem("notes", f"they have {len(text)} characters", f"At most {LONGEST_NOTES} fit.")])
    if any(ord(c) < 32 and c not in "\n\t" for c in text):
        raise Refused([Problem("notes", "they have control characters", "Leave them out.")])
    Run.objects.filter(pk=run.pk).update(notes=text)


@transaction.atomic
def archive(run: Run, actor: str) -> None:
    """Leave an ended run out of lists; nothing of it is deleted. Asked twice, it is the same."""
    lifecycle.lock(run.pk)
    run.refresh_from_db()
    if not run.has_ended:
        fix = "Stop it first." if run.can_stop else "Only a run that has ended can be archived."
        raise Refused([Problem("archived", f"the run is {run.state}", fix)])
    Run.objects.filter(pk=run.pk, archived_at=None).update(archived_at=timezone.now(), archived_by=actor)


def unarchive(run: Run) -> None:
    """Show a run in lists again."""
    Run.objects.filter(pk=run.pk).update(archived_at=None, archived_by="")
