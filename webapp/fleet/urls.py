"""Clusters, nodes and identities, at /fleet/."""

from django.urls import path

from . import views

app_name = "fleet"
urlpatterns = [
    path("nodes/", views.nodes, name="nodes"),
    path("nodes/cards", views.cards, name="cards"),
    path("nodes/add", views.add, name="add"),
    path("nodes/confirm", views.confirm, name="confirm"),
    path("nodes/<int:node_id>/check", views.check, name="check"),
    path("nodes/<int:node_id>/service", views.service, name="service"),
    path("nodes/<int:node_id>/repin", views.repin, name="repin"),
    path("identities/", views.identities, name="identities"),
]
