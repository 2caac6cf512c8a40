"""What a person gives for a new version of a data set."""

from __future__ import annotations

from django import forms

from webapp.looks import Looks

from .ingest import MAX_NAME


class UploadForm(Looks, forms.Form):
    name = forms.CharField(max_length=MAX_NAME, help_text="A name that exists gets a new version.")
    train = forms.FileField(
        label="Training rows",
        allow_empty_file=True,
        help_text="JSON Lines in UTF-8: one object a line, with messages (role and content), prompt and completion,"
        " or text.",
    )
    test = forms.FileField(
        label="Test rows",
        required=False,
        allow_empty_file=True,
        help_text="Evaluated during training, never trained on.",
    )
