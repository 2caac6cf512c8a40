"""Destinations and deliveries, at /deliveries/."""

from django.urls import path

from .views import destinations, send

app_name = "deliveries"
urlpatterns = [
    path("destinations/", destinations.index, name="destinations"),
    path("destinations/add/<slug:kind>", destinations.add, name="add"),
    path("destinations/<int:destination_id>/", destinations.edit, name="edit"),
    path("destinations/<int:destination_id>/forget", destinations.forget, name="forget"),
    path("destinations/<int:destination_id>/delete", destinations.delete, name="delete"),
    path("exports/<int:export_id>/send", send.send, name="send"),
    path("exports/<int:export_id>/part", send.part, name="part"),
    path("<int:delivery_id>/cancel", send.cancel, name="cancel"),
]
