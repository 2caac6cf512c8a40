"""What a person says about a new token."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms
from django.utils import timezone

from webapp.looks import Looks

from .models.token import Scope

DAYS = [("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("", "never")]


class TokenForm(Looks, forms.Form):
    name = forms.CharField(max_length=100, help_text="What it is for, such as: CI of project X.")
    scope = forms.ChoiceField(choices=Scope.choices, initial=Scope.WRITE)
    days = forms.ChoiceField(label="Expires after", choices=DAYS, initial="90", required=False)

    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=int(days)) if days else None
