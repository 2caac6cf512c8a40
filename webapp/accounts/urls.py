"""Tokens, at /accounts/."""

from django.urls import path

from . import views

app_name = "accounts"
urlpatterns = [
    path("tokens/", views.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", views.revoke, name="revoke"),
]
