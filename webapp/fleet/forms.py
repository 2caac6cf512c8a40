"""What a person says about a node or an identity."""

from __future__ import annotations

from collections.abc import Mapping

from django import forms
from django.utils.html import format_html

from training.spec.lint import Refused
from webapp.looks import Looks

from . import lines
from .labels import labels_of
from .models import DESCRIBED, Cluster, Identity, Node


class NodeForm(Looks, forms.ModelForm):
    """`cluster` is a name: a new one makes the cluster.

    `opened_python`: the interpreter that the page showed when it was made. One can be made meanwhile, and is then not
    overwritten by what the page still has.
    """

    cluster = forms.SlugField(max_length=50, help_text="An existing one, or a new name.")

    class Meta:
        model = Node
        fields = ["name", *DESCRIBED, "identity", "jump", "labels", "notes"]
        labels = {"processes": "Ranks", "accelerator": "It has GPUs", "python": "Interpreter"}
        help_texts = {
            "address": "Host name or IP address that this service reaches over SSH.",
            "user": "Logs in with the identity's key; needs no root.",
            "identity": "Its public key must be in that user's ~/.ssh/authorized_keys.",
        }

    jump = forms.ModelChoiceField(
        Node.objects.filter(removed_at=None),
        required=False,
        label="Jump host",
        empty_label="reached directly",
        help_text="Node through which this one is reached.",
    )
    labels = forms.CharField(
        max_length=700, required=False, help_text="Words to find it by, and to ask for it, such as: a100 nvlink."
    )

    field_order = ["cluster", "name", "address", "port", "user", "identity"]

    def __init__(self, data: Mapping[str, str] | None = None, *args: object, **kwargs: object) -> None:
        self.opened_python = data.get("opened_python") if data else None
        super().__init__(data, *args, **kwargs)
        self.fields["cluster"].widget.attrs["list"] = "clusters"
        self.fields["notes"].widget.attrs["rows"] = 3
        self.initial["labels"] = " ".join(self.initial.get("labels") or [])
        if self.opened_python is None:
            self.opened_python = self.instance.python

    def clusters(self) -> list[str]:
        return list(Cluster.objects.values_list("name", flat=True))

    def clean_cluster(self) -> str:
        return str(self.cleaned_data["cluster"])

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        taken = Node.objects.filter(name=name).exclude(pk=self.instance.pk).exclude(removed_at=None).first()
        if taken:
            text = '<a href="{}">{}</a> was removed: bring it back, or choose another name.'
            raise forms.ValidationError(format_html(text, taken.get_absolute_url(), taken))
        return name

    def clean_python(self) -> str:
        typed, now = str(self.cleaned_data["python"]), self.instance.python
        opened = now if self.opened_python is None else self.opened_python
        if typed == opened:
            return now
        if now in (opened, typed):
            return typed
        self.opened_python = now
        raise forms.ValidationError(f"It has become {now or 'none'} while this page was open; say which it is to be.")

    def clean_labels(self) -> list[str]:
        try:
            return labels_of(self.cleaned_data["labels"])
        except Refused as refused:
            problem = refused.problems[0]
            raise forms.ValidationError(f"{problem.reason}. {problem.fix}") from None

    def construct(self) -> Node:
        """Return the node as described, not stored and without its cluster."""
        data = {name: self.cleaned_data[name] for name in self.Meta.fields}
        return Node(**data)


class IdentityForm(Looks, forms.Form):
    name = forms.CharField(max_length=100, help_text="What it is for, such as: gpu-cluster.")

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        lines.check(name)
        if Identity.objects.filter(name=name).exists():
            raise forms.ValidationError("There is an identity of that name; choose another.")
        return name


class PasteForm(IdentityForm):
    private_key = forms.CharField(
        max_length=20_000,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 5, "autocomplete": "off", "spellcheck": "false"}),
        help_text="The whole file, without a passphrase. Kept sealed, and never shown again.",
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget.attrs["id"] = "paste-name"
        self.fields["private_key"].widget.attrs["id"] = "paste-key"


class AgentForm(IdentityForm):
    """`keys`: the public keys that the agent holds."""

    public_key = forms.ChoiceField(label="Key", widget=forms.RadioSelect)

    def __init__(self, keys: list[str], *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.fields["public_key"].choices = [(key, key) for key in keys]  # type: ignore[attr-defined]
        if self.is_bound:  # looks at what is wrong have been asked for before there were choices
            self.full_clean()
