"""manage.py make_identity NAME: print the identity's public key; its pair is made on first use."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.fleet.enrol import make_identity


class Command(BaseCommand):
    help = "Print the public key of an SSH identity, made on first use."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(make_identity(options["name"]).public_key.strip())
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from None
