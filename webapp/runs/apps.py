from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class RunsConfig(AppConfig):
    name = "webapp.runs"
    label = "runs"

    def ready(self) -> None:
        import webapp.checks  # noqa: F401  registers itself

        from . import exported, hints, serieskeys

        exported.register()

        def moved(using: str, **_: Any) -> None:
            serieskeys.forget()  # ids may be given anew
            hints.write(using)

        post_migrate.connect(moved, sender=self, weak=False)
