"""Who wants to be told of what, and where."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.fleet.vault import seal, unseal
from webapp.runs.models import Run

from ..kinds import ENDED, ENDED_LABEL, label


class Subscription(models.Model):
    """One person's. `run` where the scope is one run; `kinds`: of kinds.Kind, and kinds.ENDED for the end of a run.

    A webhook's address may hold a token, so it is sealed like its secret; `shown` is its host. `site`: the address
    that links of messages begin with, as the person saw it.
    """

    class Scope(models.TextChoices):
        MINE = "mine", "all my runs"
        ALL = "all", "all runs"
        RUN = "run", "one run"

    class Way(models.TextChoices):
        EMAIL = "email", "e-mail"
        WEBHOOK = "webhook", "webhook"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="subscriptions")
    scope = models.CharField(max_length=10, choices=Scope)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, blank=True, related_name="subscriptions")
    kinds = models.JSONField(default=list)
    way = models.CharField(max_length=10, choices=Way)
    address = models.EmailField(blank=True)
    shown = models.CharField(max_length=300, blank=True)
    sealed_url = models.TextField(blank=True, editable=False)
    sealed_secret = models.TextField(blank=True, editable=False)
    site = models.CharField(max_length=300)
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=models.Q(scope="run") ^ models.Q(run=None), name="subscription_to_one_run")
        ]

    def __str__(self) -> str:
        return f"{self.get_way_display()} to {self.where} about {self.about}"

    @property
    def where(self) -> str:
        return self.address if self.way == self.Way.EMAIL else self.shown

    @property
    def about(self) -> str:
        return f"run {self.run_id}" if self.scope == self.Scope.RUN else self.get_scope_display()

    @property
    def words(self) -> list[str]:
        return [ENDED_LABEL if kind == ENDED else label(kind) for kind in self.kinds]

    @property
    def url(self) -> str:
        """Open the address; raises WrongKey where SECRET_KEY has changed since."""
        return unseal(self.sealed_url)

    @url.setter
    def url(self, url: str) -> None:
        self.sealed_url = seal(url)

    @property
    def secret(self) -> str:
        """Open the secret; raises WrongKey where SECRET_KEY has changed since."""
        return unseal(self.sealed_secret)

    @secret.setter
    def secret(self, secret: str) -> None:
        self.sealed_secret = seal(secret)
