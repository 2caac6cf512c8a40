"""Make an API token and print it, and nothing else, on stdout: manage.py create_token USER"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from webapp.accounts.models import Token
from webapp.accounts.models.token import Scope


class Command(BaseCommand):
    help = "Make an API token for a user and print it. It is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", default="command line", help="what the token is for")
        parser.add_argument("--scope", choices=Scope.values, default=Scope.WRITE.value)
        parser.add_argument("--days", type=int, help="days until it expires; without it, it doesn't")

    def handle(self, *args: Any, **options: Any) -> None:
        users = get_user_model()
        user = users.objects.filter(**{users.USERNAME_FIELD: options["user"]}).first()
        if user is None:
            raise CommandError(f"there is no user {options['user']!r}; make one with manage.py createsuperuser")
        if not user.is_active:
            raise CommandError(f"{options['user']} may not log in; activate the account first")
        expires = timezone.now() + timedelta(days=_days(options["days"])) if options["days"] is not None else None
        _, secret = Token.issue(user, options["name"][:100], options["scope"], expires)
        self.stdout.write(secret)


def _days(days: int) -> int:
    if not 1 <= days <= 3650:
        raise CommandError("--days: give 1 to 3650")
    return days
