"""Subscriptions to notices, at /accounts/notices/."""

from django.urls import path

from . import views

app_name = "notices"
urlpatterns = [
    path("", views.index, name="index"),
    path("part", views.part, name="part"),
    path("<int:subscription_id>/test", views.test, name="test"),
    path("<int:subscription_id>/delete", views.delete, name="delete"),
]
