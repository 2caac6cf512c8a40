"""A place that exports are sent to."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings as site
from django.db import models
from django.utils import timezone

from webapp.fleet.vault import WrongKey, seal, unseal

KINDS = {
    "path": "folder on the export's node",
    "node": "folder on another node",
    "s3": "S3-compatible storage",
    "hub": "model hub",
}


class Destination(models.Model):
    """`settings`: the fields of a target of training.spec.deliver, `kind` left out; `node` where the kind is node.

    Made by webapp.deliveries.places. The secrets, variables of the job's env file, are sealed and never shown again.
    """

    name = models.SlugField(max_length=50, unique=True)
    kind = models.CharField(max_length=10, choices=list(KINDS.items()))
    settings = models.JSONField(default=dict)
    node = models.ForeignKey("fleet.Node", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    sealed_secrets = models.TextField(blank=True, editable=False)
    secret_names = models.JSONField(default=list, editable=False)
    made_by = models.ForeignKey(site.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def secrets(self) -> dict[str, str]:
        """Open the secrets; raises WrongKey where SECRET_KEY has changed since."""
        return dict(json.loads(unseal(self.sealed_secrets))) if self.sealed_secrets else {}

    @secrets.setter
    def secrets(self, env: dict[str, str]) -> None:
        self.sealed_secrets = seal(json.dumps(env)) if env else ""
        self.secret_names = sorted(env)

    @property
    def can_be_opened(self) -> bool:
        """Tell whether the secrets, if there are any, can still be read."""
        try:
            return bool(self.secrets) or not self.sealed_secrets
        except WrongKey:
            return False

    @property
    def takes_secrets(self) -> bool:
        return self.kind in ("s3", "hub")

    @property
    def lacks_secret(self) -> bool:
        return self.takes_secrets and not (self.secret_names and self.can_be_opened)

    @property
    def where(self) -> str:
        """The place that names of exports are added to; a hub's repository."""
        found = self.settings
        if self.kind == "s3":
            return f"s3://{found['bucket']}/{found.get('prefix', '')}".rstrip("/")
        return str(found["repo"] if self.kind == "hub" else found["folder"])

    def target(self, name: str) -> dict[str, Any]:
        """Return the target of one export that is called `name` there; a hub's repository has its own name."""
        found = dict(self.settings)
        if self.kind in ("path", "node"):
            found["folder"] = f"{found['folder'].rstrip('/')}/{name}"
        elif self.kind == "s3":
            found["prefix"] = f"{found['prefix']}/{name}" if found.get("prefix") else name
        return {"kind": self.kind, **found}
