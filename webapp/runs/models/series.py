"""One metric of one attempt over steps or time."""

from __future__ import annotations

import math

from django.db import models

from training.spec.events import ODD, strict

from .attempt import Attempt


class Series(models.Model):
    """`axis`: `step` (optimizer steps) or `time` (seconds since the epoch, the node's clock).

    Names: the keys of `metrics` events (`loss`, `learning_rate`, ...), `eval/<key>`, and per node
    `node<rank>/ram_used`, `node<rank>/gpu<i>/used` (bytes) and so on.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="series")
    name = models.CharField(max_length=100)
    axis = models.CharField(max_length=4, choices=[("step", "step"), ("time", "time")])

    class Meta:
        verbose_name_plural = "series"
        constraints = [models.UniqueConstraint(fields=["attempt", "name"], name="series_once")]

    def __str__(self) -> str:
        return f"{self.attempt} {self.name}"


class Point(models.Model):
    """`value` is null where the number is not finite; `odd` then says which (databases disagree on NaN)."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="points")
    x = models.FloatField()
    value = models.FloatField(null=True)
    odd = models.CharField(max_length=9, blank=True, choices=[(name, name) for name in ODD])

    class Meta:
        constraints = [models.UniqueConstraint(fields=["series", "x"], name="point_once")]

    def __str__(self) -> str:
        return f"{self.x}: {self.shown}"

    @property
    def shown(self) -> float | str | None:
        """The value as JSON can carry it."""
        return self.odd or self.value

    @classmethod
    def of(cls, series: Series, x: float, number: float) -> Point:
        """Return a point that is not stored yet."""
        value, odd = cls.columns(number)
        return cls(series=series, x=x, value=value, odd=odd)

    @staticmethod
    def columns(number: float) -> tuple[float | None, str]:
        """Return `value` and `odd` of a number."""
        return (number, "") if math.isfinite(number) else (None, str(strict(number)))
