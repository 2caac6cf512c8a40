"""Data sets, at /datasets/."""

from django.urls import path

from . import views

app_name = "datasets"
urlpatterns = [
    path("", views.index, name="list"),
    path("upload", views.upload, name="upload"),
    path("<int:dataset_id>/", views.detail, name="detail"),
]
