from django.apps import AppConfig


class PreflightsConfig(AppConfig):
    name = "webapp.preflights"
    label = "preflights"
