"""Runs, at /runs/."""

from django.urls import path

from .views import act, detail, feed, index, models, new

app_name = "runs"
urlpatterns = [
    path("", index.runs, name="list"),
    path("new/", new.new, name="new"),
    path("new/panel", new.panel, name="panel"),
    path("models/new/", models.add, name="add_model"),
    path("<int:run_id>/", detail.run, name="detail"),
    path("<int:run_id>/part/<slug:name>", detail.part, name="part"),
    path("<int:run_id>/live", feed.live, name="live"),
    path("<int:run_id>/series.json", feed.series, name="series"),
    path("<int:run_id>/launch", act.launch, name="launch"),
    path("<int:run_id>/stop", act.stop, name="stop"),
    path("<int:run_id>/resume", act.resume, name="resume"),
    path("<int:run_id>/export", act.export, name="export"),
]
