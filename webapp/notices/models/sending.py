"""One message to one subscription: a fact that is there before anything is sent, and until it has arrived."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone

from ..retries import TRIES
from .subscription import Subscription


class SendingSet(models.QuerySet["Sending"]):
    def waiting(self) -> SendingSet:
        return self.filter(sent_at=None, given_up_at=None)

    def due(self, now: datetime) -> SendingSet:
        return self.waiting().filter(due_at__lte=now, subscription__user__is_active=True).order_by("due_at", "pk")


class Sending(models.Model):
    """`key`: what it is about, once for each subscription. `body`: what is said, as a webhook gets it but for `id`.

    `due_at` is raised, and `tries` counted, by whoever tries; one that dies in between is tried again. `problem`: why
    the last try failed, never what the other side answered.
    """

    subscription = models.ForeignKey(Subscription, on_delete=models.CASCADE, related_name="sendings")
    key = models.CharField(max_length=60)
    body = models.JSONField()
    made_at = models.DateTimeField(default=timezone.now, db_index=True)
    due_at = models.DateTimeField(default=timezone.now)
    tries = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True, blank=True)
    given_up_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=300, blank=True)

    objects = SendingSet.as_manager()
    most = TRIES  # for pages

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["subscription", "key"], name="sending_once")]
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(sent_at=None, given_up_at=None), name="sending_waiting")
        ]

    def __str__(self) -> str:
        return f"{self.key} to {self.subscription.where}"

    @property
    def settled(self) -> bool:
        return bool(self.sent_at or self.given_up_at)
