from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "webapp.runs"
    label = "runs"

    def ready(self) -> None:
        import webapp.checks  # noqa: F401  registers itself

        from . import exported

        exported.register()
