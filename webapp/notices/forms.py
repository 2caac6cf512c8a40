"""What a person says of a new subscription; a webhook's address is judged here as it will be at each send."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from training.spec.lint import Refused
from webapp.looks import Looks
from webapp.runs.models import Run

from . import addresses
from .kinds import ENDED, ENDED_LABEL, LABELS
from .models import Subscription

KINDS = [(ENDED, ENDED_LABEL), *((str(kind), words) for kind, words in LABELS.items())]
Way, Scope = Subscription.Way, Subscription.Scope


def ways() -> list[tuple[str, str]]:
    return [(way, words) for way, words in Way.choices if settings.EMAIL_HOST or way != Way.EMAIL]


class SubscriptionForm(Looks, forms.Form):
    """E-mail is offered only where there is a mail server."""

    way = forms.ChoiceField(label="How", choices=ways)
    address = forms.EmailField(label="E-mail address", required=False, max_length=254, help_text="For e-mail.")
    url = forms.CharField(
        label="Webhook's address", required=False, max_length=addresses.MOST,
        help_text="For a webhook: http or https. It gets a signed POST of JSON. Sealed: only its host is shown again.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "https://hooks.example.org/…"}),
    )  # fmt: skip
    scope = forms.ChoiceField(label="About", choices=Scope.choices)
    run = forms.IntegerField(label="Number of the run", required=False, min_value=1, help_text="For one run alone.")
    kinds = forms.MultipleChoiceField(
        label="Tell me of", choices=KINDS, initial=[kind for kind, _ in KINDS],
        widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"}),
    )  # fmt: skip

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if found.get("way") == Way.EMAIL and not found.get("address") and "address" not in self.errors:
            self.add_error("address", "Give the address that e-mail is to go to.")
        if found.get("way") == Way.WEBHOOK and "url" not in self.errors:
            self._check_url(found.get("url") or "")
        if found.get("scope") == Scope.RUN and "run" not in self.errors:
            self._check_run(found.get("run"))
        return found

    def _check_url(self, url: str) -> None:
        if not url:
            self.add_error("url", "Give the webhook's address.")
            return
        try:
            addresses.resolve(addresses.parse(url), private=settings.WEBHOOK_PRIVATE)
        except Refused as refused:
            for problem in refused.problems:
                self.add_error("url", f"{problem.reason[:1].upper()}{problem.reason[1:]}. {problem.fix}")

    def _check_run(self, number: int | None) -> None:
        if number is None or not Run.objects.filter(pk=number).exists():
            self.add_error("run", "There is no such run. Its number stands on its page." if number else "Which run?")
