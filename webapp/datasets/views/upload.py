"""Upload JSON Lines as the newest version of a data set."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from training.spec.lint import Refused
from webapp.people import person

from ..forms import UploadForm
from ..ingest import Registered, take


def upload(request: HttpRequest) -> HttpResponse:
    """All rows must be good, or nothing is stored; what is wrong comes back with line numbers."""
    form = UploadForm(request.POST or None, request.FILES or None, initial={"name": request.GET.get("name", "")})
    problems = []
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            done = take(data["name"], data["train"].file, data["test"] and data["test"].file, person(request))
        except Refused as refused:
            problems = refused.problems
        else:
            messages.success(request, said(done))
            return redirect("datasets:detail", done.version.dataset_id)
    status = 422 if form.is_bound else 200
    return render(request, "datasets/upload.html", {"form": form, "problems": problems}, status=status)


def said(done: Registered) -> str:
    """Return in a sentence what was kept and what was left out."""
    version = done.version
    if not done.created:
        return f"{version} holds these rows already: nothing new is stored."
    kept = f"{version}: {version.rows} rows" + (f" and {version.test_rows} test rows" if version.test_rows else "")
    roles = ", ".join(f"{count} {role}" for role, count in sorted(done.roles.items()))
    left = ", ".join(f"{key} ({count})" for key, count in sorted(done.dropped.items()))
    return f"{kept} stored." + (f" Turns: {roles}." if roles else "") + (f" Keys left out: {left}." if left else "")
