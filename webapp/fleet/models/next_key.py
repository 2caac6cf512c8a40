"""The key that is to take the place of an identity's."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from ..vault import seal, unseal
from .identity import Identity
from .node import Node


class NextKey(models.Model):
    """Made, put on the nodes by a person, tried on each of them, and only then the identity's own.

    `asked_at`: when somebody had it tried, null: never. `tried`: node id (as text) -> what kept it out there, empty:
    it was let in. `tried_at`: when all had answered.
    """

    identity = models.OneToOneField(Identity, on_delete=models.CASCADE, related_name="next_key")
    public_key = models.TextField(editable=False)
    sealed_private_key = models.TextField(editable=False)
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    made_by = models.CharField(max_length=150, editable=False)
    asked_at = models.DateTimeField(null=True, blank=True, editable=False)
    tried = models.JSONField(default=dict, editable=False)
    tried_at = models.DateTimeField(null=True, blank=True, editable=False)

    def __str__(self) -> str:
        return f"next key of {self.identity}"

    @property
    def private_key(self) -> str:
        return unseal(self.sealed_private_key)

    @private_key.setter
    def private_key(self, value: str) -> None:
        self.sealed_private_key = seal(value)

    @property
    def is_being_tried(self) -> bool:
        return self.asked_at is not None and (self.tried_at is None or self.tried_at < self.asked_at)

    def answers(self) -> list[tuple[Node, str | None]]:
        """Return each node of the identity with what kept the key out: empty: let in, None: not tried."""
        nodes = self.identity.nodes.filter(removed_at=None)
        return [(node, self.tried.get(str(node.pk))) for node in nodes]
