"""What runs on nodes and should not, at /fleet/leftovers/."""

from django.urls import path

from . import views

app_name = "leftovers"
urlpatterns = [
    path("", views.page, name="page"),
    path("rows", views.rows, name="rows"),
    path("look", views.look, name="look"),
    path("<int:leftover_id>/end", views.end, name="end"),
]
