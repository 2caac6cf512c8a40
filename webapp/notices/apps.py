from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "webapp.notices"
    label = "notices"

    def ready(self) -> None:
        from . import moves, part

        part.register()
        moves.register()
