from django.apps import AppConfig


class TrialsConfig(AppConfig):
    name = "webapp.trials"
    label = "trials"

    def ready(self) -> None:
        from . import told

        told.register()
