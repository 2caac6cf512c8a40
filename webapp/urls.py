"""Addresses of the site."""

from django.contrib import admin
from django.urls import path

from webapp.api.site import urls as api

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", api),
]
