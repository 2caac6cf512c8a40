from django.apps import AppConfig


class DeliveriesConfig(AppConfig):
    name = "webapp.deliveries"
    label = "deliveries"

    def ready(self) -> None:
        from . import delivered

        delivered.register()
