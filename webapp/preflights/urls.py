"""Preflights of a cluster, at /fleet/clusters/<name>/preflight."""

from django.urls import path

from . import views

app_name = "preflights"
urlpatterns = [
    path("preflight", views.page, name="page"),
    path("preflight/<int:preflight_id>", views.part, name="part"),
]
