"""Tabler's classes on Django's form fields."""

from __future__ import annotations

from django import forms

CLASSES = {
    forms.CheckboxInput: "form-check-input",
    forms.Select: "form-select",
}


class Looks:
    """Mix into a form: every widget gets the class that fits it, and `is-invalid` where it has an error."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():  # type: ignore[attr-defined]
            css = next((c for kind, c in CLASSES.items() if isinstance(field.widget, kind)), "form-control")
            wrong = self.is_bound and name in self.errors  # type: ignore[attr-defined]
            field.widget.attrs.setdefault("class", f"{css} is-invalid" if wrong else css)
