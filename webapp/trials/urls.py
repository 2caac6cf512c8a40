"""Trials of a run, at /runs/<id>/try/."""

from django.urls import path

from . import views

app_name = "trials"
urlpatterns = [
    path("", views.new, name="new"),
    path("history", views.history, name="history"),
    path("ask", views.ask, name="ask"),
    path("fixed", views.fixed, name="fixed"),
    path("<int:trial_id>/", views.trial, name="trial"),
    path("<int:trial_id>/part", views.part, name="part"),
    path("<int:trial_id>/cancel", views.cancel, name="cancel"),
]
