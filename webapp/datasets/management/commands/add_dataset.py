"""Register a data set: manage.py add_dataset NAME TRAIN [--test FILE] [--owner USER]

The same rows again change nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from training.spec.lint import Refused
from webapp.datasets.ingest import FORMATS, register


class Command(BaseCommand):
    help = "Register JSON Lines files as the newest version of a data set."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("train", type=Path)
        parser.add_argument("--test", type=Path)
        parser.add_argument("--format", choices=FORMATS, default="")
        parser.add_argument("--owner", help="user name")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = get_user_model().objects.filter(username=options["owner"]).first()
        if options["owner"] and owner is None:
            raise CommandError(f"there is no user {options['owner']!r}")
        try:
            done = register(options["name"], options["train"], options["test"], owner, options["format"])
        except Refused as refused:
            raise CommandError("\n".join(str(problem) for problem in refused.problems)) from None
        except OSError as error:
            raise CommandError(str(error)) from None
        version, word = done.version, "new" if done.created else "there already"
        self.stdout.write(
            f"data set {version.dataset_id}: {version}, {version.rows} rows, {version.test_rows} test, {word}"
        )
        if done.dropped:
            self.stdout.write("left out: " + ", ".join(f"{key} in {n}" for key, n in done.dropped.items()))
