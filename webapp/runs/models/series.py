"""One metric of one attempt over steps or time."""

from __future__ import annotations

import math

from django.db import models

from training.spec.events import ODD, strict

from .attempt import Attempt


class Series(models.Model):
    """`axis`: `step` (optimizer steps) or `time` (seconds since the epoch, the node's clock).

    Names: the keys of `metrics` events (`loss`, `learning_rate`, ...), `eval/<key>`, and per node
    `node<rank>/ram_used`, `node<rank>/gpu<i>/used` (bytes) and so on; `at`: when each step's line was written.

    Over steps, `last_x` is the greatest, and there the value is `last_value`: null where the number is not finite,
    `last_odd` then says which (databases disagree on NaN).
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="series")
    name = models.CharField(max_length=100)
    axis = models.CharField(max_length=4, choices=[("step", "step"), ("time", "time")])
    floor = models.PositiveSmallIntegerField(db_default=0, help_text="The lowest level of chunks that is whole.")
    last_x = models.FloatField(null=True)
    last_value = models.FloatField(null=True)
    last_odd = models.CharField(max_length=9, blank=True, db_default="", choices=[(name, name) for name in ODD])

    class Meta:
        verbose_name_plural = "series"
        constraints = [models.UniqueConstraint(fields=["attempt", "name"], name="series_once")]

    def __str__(self) -> str:
        return f"{self.attempt} {self.name}"

    @property
    def last(self) -> float | str | None:
        """The last value as JSON can carry it; None over time, and before there is one."""
        return self.last_odd or self.last_value


def columns(number: float) -> tuple[float | None, str]:
    """Return `last_value` and `last_odd` of a number."""
    return (number, "") if math.isfinite(number) else (None, str(strict(number)))
