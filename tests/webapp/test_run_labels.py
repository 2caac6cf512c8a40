"""Tags, notes, the archive and a clone's edits, on the page of a run."""

from __future__ import annotations

from django.test import Client

from webapp.runs import actions
from webapp.runs.models import Run

from .rows import HOSTILE, Feed, World


def test_it_works(page: Client, world: World) -> None:
    run = world.draft()
    told = page.post(f"/runs/{run.pk}/about", {"tags": "Sweep, a", "notes": HOSTILE}, headers={"HX-Request": "true"})
    text = told.content.decode()
    assert text.startswith('<section id="part-about"')
    assert 'href="/runs/?tag=sweep"' in text
    assert "<img src=x" not in text
    run.refresh_from_db()
    assert run.notes == HOSTILE
    assert page.post(f"/runs/{run.pk}/about", {}, follow=True).redirect_chain == [(f"/runs/{run.pk}/#part-about", 302)]
    assert not run.tags.exists()


def test_it_rejects_with_nothing_lost(page: Client, world: World) -> None:
    run = world.draft()
    text = page.post(f"/runs/{run.pk}/about", {"tags": "x" * 41, "notes": "kept as typed"}).content.decode()
    assert "At most 40 fit" in text
    assert "kept as typed</textarea>" in text
    run.refresh_from_db()
    assert run.notes == ""


def test_an_ended_run_is_archived_and_taken_out(page: Client, stopped: Feed) -> None:
    address = f"/runs/{stopped.run.pk}/"
    assert 'data-testid="archive"' in page.get(address).content.decode()
    text = page.post(f"{address}archive", {"archived": "yes"}, follow=True).content.decode()
    assert 'data-testid="unarchive"' in text
    assert "by ada: lists leave it out" in text
    page.post(f"{address}archive", {"archived": "no"})
    assert Run.objects.get().archived_at is None


def test_one_that_has_not_ended_is_not(page: Client, world: World) -> None:
    run = world.draft()
    answer = page.post(f"/runs/{run.pk}/archive", {"archived": "yes"}, follow=True)
    assert "the run is draft" in str(next(iter(answer.context["messages"])))
    assert 'data-testid="archive"' not in answer.content.decode()


def test_a_clone_shows_its_edits(page: Client, world: World) -> None:
    source = world.draft("source")
    clone = actions.clone(source, world.user, {"optimisation": {"max_steps": 5}, "export": {"at_end": True}})
    edits = page.get(f"/runs/{clone.pk}/").context["parts"]["about"]["edits"]
    assert ("optimisation.max_steps", 12, 5) in edits
    text = page.get(f"/runs/{clone.pk}/part/about").content.decode()
    assert "<ins>5</ins>" in text
    same = actions.clone(source, world.user)
    assert "In nothing but its name" in page.get(f"/runs/{same.pk}/part/about").content.decode()
