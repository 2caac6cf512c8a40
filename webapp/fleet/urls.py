"""Clusters, nodes and identities, at /fleet/."""

from django.urls import path

from . import views

app_name = "fleet"
urlpatterns = [
    path("nodes/", views.nodes, name="nodes"),
    path("nodes/cards", views.some_cards, name="cards"),
    path("nodes/add", views.add, name="add"),
    path("nodes/confirm", views.confirm, name="confirm"),
    path("nodes/<slug:name>/", views.node, name="node"),
    path("nodes/<int:node_id>/now", views.now, name="now"),
    path("nodes/<int:node_id>/edit", views.edit, name="edit"),
    path("nodes/<int:node_id>/remove", views.remove, name="remove"),
    path("nodes/<int:node_id>/back", views.bring_back, name="bring_back"),
    path("nodes/<int:node_id>/interpreter", views.interpreter, name="interpreter"),
    path("nodes/<int:node_id>/interpreter/make", views.make_interpreter, name="make_interpreter"),
    path("nodes/<int:node_id>/interpreter/stop", views.stop_making, name="stop_making"),
    path("nodes/<int:node_id>/pythons", views.look_for_pythons, name="look_for_pythons"),
    path("nodes/<int:node_id>/check", views.check, name="check"),
    path("nodes/<int:node_id>/service", views.service, name="service"),
    path("nodes/<int:node_id>/repin", views.repin, name="repin"),
    path("identities/", views.identities, name="identities"),
    path("identities/agent", views.agent, name="agent"),
    path("identities/paste", views.paste, name="paste"),
    path("identities/<int:identity_id>/delete", views.delete_identity, name="delete_identity"),
    path("identities/<int:identity_id>/key", views.replace_key, name="replace_key"),
    path("identities/<int:identity_id>/next", views.next_key, name="next_key"),
]
