from django.apps import AppConfig


class LeftoversConfig(AppConfig):
    name = "webapp.leftovers"
    label = "leftovers"
