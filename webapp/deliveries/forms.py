"""What staff says of a destination; the fields of each kind are those of its target in training.spec.deliver."""

from __future__ import annotations

from functools import cache
from typing import Any

from django import forms
from pydantic.fields import FieldInfo

from training.spec.deliver import SECRETS, HubTarget, PathTarget, S3Target
from webapp.fleet.models import Node
from webapp.looks import Looks

from . import places
from .models import Destination

TARGETS: dict[str, type[PathTarget | S3Target | HubTarget]] = {
    "path": PathTarget,
    "node": PathTarget,
    "s3": S3Target,
    "hub": HubTarget,
}
LABELS = {
    "path_style": "Bucket in the path",
    "insecure": "Allow plain http anywhere",
    "part_megabytes": "Size of a part, in MB",
}
HELP = {
    "folder": "Absolute path on the node, which must be there. Each export gets a folder of its own in it.",
    "prefix": "What the objects' names begin with; each export gets a prefix of its own below it.",
}


class _Fields(forms.ModelForm):
    """A secret's field is empty when it comes, and left empty keeps what there is."""

    kind = ""

    def __init__(self, data: Any = None, *, instance: Destination) -> None:
        super().__init__(data, instance=instance, initial={**instance.settings, "node": instance.node_id})
        for name in instance.secret_names:
            self.fields[name].required = False
            self.fields[name].help_text = "There is one; enter another to replace it, or for another endpoint."


class DestinationForm(Looks, _Fields):
    class Meta:
        model = Destination
        fields = ["name"]
        help_texts = {"name": "As people choose it: letters, digits, hyphens, underscores."}

    def settings(self) -> dict[str, Any]:
        """Return what was said of the target, without its secrets."""
        return {name: self.cleaned_data[name] for name in TARGETS[self.kind].model_fields if name != "kind"}

    def secrets(self) -> dict[str, str]:
        return {name: self.cleaned_data.get(name, "") for name in places.secret_fields(self.kind)}

    def described(self) -> Destination:
        """Return the destination with name and node, not stored."""
        self.instance.node = self.cleaned_data.get("node")
        return self.instance


@cache
def form_of(kind: str) -> type[DestinationForm]:
    """Return the form of a kind of destination."""
    fields: dict[str, Any] = {"kind": kind}
    if kind == "node":
        pinned = Node.objects.filter(removed_at=None).exclude(host_key="").order_by("name")
        fields["node"] = forms.ModelChoiceField(pinned, help_text="It receives the folder, through this service.")
    for name, info in TARGETS[kind].model_fields.items():
        if name != "kind":
            fields[name] = _field(name, info)
    fields |= {name: _secret(kind, name) for name in places.secret_fields(kind)}
    return type(f"{kind.title()}Form", (DestinationForm,), fields)


def _field(name: str, info: FieldInfo) -> forms.Field:
    label = LABELS.get(name, name.replace("_", " ").capitalize())
    help_text = HELP.get(name, info.description or "")
    initial = None if info.is_required() else info.default
    if info.annotation is bool:
        return forms.BooleanField(label=label, required=False, initial=initial, help_text=help_text)
    kind = forms.IntegerField if info.annotation is int else forms.CharField
    return kind(label=label, required=info.is_required(), initial=initial, help_text=help_text)


def _secret(kind: str, name: str) -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": "new-password"}, render_value=False)
    help_text = "Sealed, and never shown again."
    return forms.CharField(label=name, required=name in SECRETS[kind][0], help_text=help_text, widget=widget)
