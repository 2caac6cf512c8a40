"""Runs, at /runs/."""

from django.urls import path

from .views import act, checkpoints, compare, detail, exports, feed, index, labels, log, many, models, new, queue

app_name = "runs"
urlpatterns = [
    path("", index.runs, name="list"),
    path("many", many.many, name="many"),
    path("compare", compare.compare, name="compare"),
    path("compare/series.json", compare.compared, name="compared"),
    path("compare/series.csv", compare.compared_csv, name="compared_csv"),
    path("new/", new.new, name="new"),
    path("new/panel", new.panel, name="panel"),
    path("models/new/", models.add, name="add_model"),
    path("<int:run_id>/", detail.run, name="detail"),
    path("<int:run_id>/part/<slug:name>", detail.part, name="part"),
    path("<int:run_id>/live", feed.live, name="live"),
    path("<int:run_id>/series.json", feed.series, name="series"),
    path("<int:run_id>/log.json", log.page, name="log"),
    path("<int:run_id>/log.txt", log.download, name="log_download"),
    path("<int:run_id>/series.csv", feed.csv, name="csv"),
    path("<int:run_id>/marks.json", feed.marks, name="marks"),
    path("<int:run_id>/about", labels.about, name="about"),
    path("<int:run_id>/archive", labels.archive, name="archive"),
    path("<int:run_id>/move", queue.move, name="move"),
    path("<int:run_id>/launch", act.launch, name="launch"),
    path("<int:run_id>/stop", act.stop, name="stop"),
    path("<int:run_id>/resume", act.resume, name="resume"),
    path("<int:run_id>/export", act.export, name="export"),
    path("<int:run_id>/export/plan", exports.plan, name="export_plan"),
    path("<int:run_id>/checkpoints/", checkpoints.checkpoints, name="checkpoints"),
    path("<int:run_id>/checkpoints/doomed", checkpoints.doomed, name="checkpoints_doomed"),
    path("<int:run_id>/checkpoints/delete", checkpoints.delete, name="checkpoints_delete"),
    path("<int:run_id>/checkpoints/<int:checkpoint_id>/row", checkpoints.row, name="checkpoint_row"),
    path("<int:run_id>/checkpoints/<int:checkpoint_id>/pin", checkpoints.pin, name="checkpoint_pin"),
    path("<int:run_id>/checkpoints/<int:checkpoint_id>/note", checkpoints.note, name="checkpoint_note"),
    path("<int:run_id>/checkpoints/<int:checkpoint_id>/look", checkpoints.look, name="checkpoint_look"),
]
