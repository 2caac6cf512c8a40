"""Addresses of the site."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path
from django.views.generic import RedirectView

from webapp.api.health import healthz
from webapp.api.site import urls as api
from webapp.runs.views.shelf import shelf

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="runs:list")),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("accounts/", include("webapp.accounts.urls")),
    path("accounts/notices/", include("webapp.notices.urls")),
    path("runs/", include("webapp.runs.urls")),
    path("queue/", include("webapp.runs.urls_queue")),
    path("exports/", RedirectView.as_view(url="/checkpoints/?show=exported")),
    path("exports/", include("webapp.runs.urls_exports")),
    path("checkpoints/", shelf, name="shelf"),
    path("runs/<int:run_id>/try/", include("webapp.trials.urls")),
    path("datasets/", include("webapp.datasets.urls")),
    path("deliveries/", include("webapp.deliveries.urls")),
    path("fleet/clusters/<slug:name>/", include("webapp.preflights.urls")),
    path("fleet/leftovers/", include("webapp.leftovers.urls")),
    path("fleet/", include("webapp.fleet.urls")),
    path("admin/", admin.site.urls),
    path("healthz", healthz, name="healthz"),
    path("api/v1/", api),
]
