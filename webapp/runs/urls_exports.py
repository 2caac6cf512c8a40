"""Exports, at /exports/."""

from django.urls import path

from .views import exports

app_name = "exports"
urlpatterns = [
    path("<int:export_id>/", exports.export, name="detail"),
    path("<int:export_id>/part", exports.part, name="part"),
    path("<int:export_id>/plan", exports.panel, name="panel"),
    path("<int:export_id>/card", exports.card, name="card"),
    path("<int:export_id>/start", exports.start, name="start"),
    path("<int:export_id>/cancel", exports.cancel, name="cancel"),
    path("<int:export_id>/resume", exports.resume, name="resume"),
]
