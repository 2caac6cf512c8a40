"""Register a base model: manage.py add_model NAME LOCATION [--revision COMMIT]; asked twice, it is one."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.runs.models import ModelSource


class Command(BaseCommand):
    help = "Register a base model: a folder that every node can read, or a hub id."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("location", help="absolute folder on the nodes, or a hub id")
        parser.add_argument("--revision", default="", help="commit of a hub id")

    def handle(self, *args: Any, **options: Any) -> None:
        source = ModelSource.objects.filter(name=options["name"]).first() or ModelSource(name=options["name"])
        source.location, source.revision = options["location"], options["revision"]
        try:
            source.full_clean()
        except ValidationError as error:
            raise CommandError("; ".join(f"{k}: {' '.join(v)}" for k, v in error.message_dict.items())) from None
        source.save()
        self.stdout.write(f"model {source.pk}: {source.name} at {source.location}")
