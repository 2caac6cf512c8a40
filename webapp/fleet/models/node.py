"""One host reached over SSH."""

from __future__ import annotations

import math

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.urls import reverse

from training.spec.plan import NodeSlot

from .. import lines
from .cluster import Cluster
from .identity import Identity

absolute = RegexValidator(r"^/[^\0\n]*$", "Give an absolute path, such as /opt/shardboard/bin/python.")
host = RegexValidator(r"^[A-Za-z0-9._:-]+$", "Give a host name or an IP address.")
login = RegexValidator(r"^[A-Za-z_][A-Za-z0-9._-]*$", "Give a user name as the node knows it.")
device = RegexValidator(r"^[A-Za-z0-9._:-]+$", "Give an interface as `ip link` shows it, such as eth0.")

NO_PYTHON = "it has no interpreter yet"  # why a node is out of service that one is to be made for


class Nodes(models.QuerySet["Node"]):
    def known(self) -> Nodes:
        """Return those that are reached: the key is pinned, and they are not removed. Drained ones are among them."""
        return self.filter(removed_at=None).exclude(host_key="")


# What is said of a node in plain values, in the order in which people are shown it.
DESCRIBED = (
    "address",
    "port",
    "user",
    "python",
    "scratch",
    "processes",
    "accelerator",
    "internal_address",
    "interface",
    "gpu_hour_price",
)


# They reach the nodes: in commands, in files and as settings of ranks.
ONE_LINE = ("address", "user", "python", "scratch", "internal_address", "interface")


class Node(models.Model):
    """A host, its pinned key and what is on it. `host_key` is empty until a person has confirmed it.

    Changed through webapp.fleet.enrol and webapp.fleet.actions, which write down who did what. A node that is removed
    keeps its row, out of service, for as long as runs tell of it.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="nodes")
    name = models.SlugField(max_length=50, unique=True)
    address = models.CharField(max_length=253, validators=[host])
    port = models.PositiveIntegerField(default=22, validators=[MinValueValidator(1), MaxValueValidator(65535)])
    user = models.CharField(max_length=32, validators=[login])
    identity = models.ForeignKey(Identity, on_delete=models.PROTECT, related_name="nodes")
    host_key = models.TextField(blank=True, editable=False, help_text="Pinned public host key, OpenSSH format.")
    python = models.CharField(
        max_length=500,
        blank=True,
        validators=[absolute],
        help_text="Absolute path of the interpreter; empty: have one made on its page, out of service till then.",
    )
    pythons = models.JSONField(default=list, blank=True, editable=False, help_text="Interpreters found on it.")
    pythons_at = models.DateTimeField(null=True, blank=True, editable=False)
    scratch = models.CharField(max_length=500, validators=[absolute], help_text="Absolute path of the scratch folder.")
    processes = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1), MaxValueValidator(64)], help_text="Ranks: one per GPU."
    )
    accelerator = models.BooleanField("has GPUs", default=True)
    internal_address = models.CharField(
        max_length=253, blank=True, validators=[host], help_text="Address that the other nodes reach; empty: the same."
    )
    interface = models.CharField(
        max_length=15,
        blank=True,
        validators=[device],
        help_text="Network interface between nodes; empty: the preflight chooses it.",
    )
    gpu_hour_price = models.FloatField(
        "price per GPU hour",
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="From it runs tell what they cost; empty: they do not.",
    )
    jump = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="behind",
        help_text="Node through which this one is reached; empty: directly.",
    )
    labels = models.JSONField(default=list, blank=True, help_text="Words by which runs can ask for it.")
    notes = models.TextField(blank=True)
    in_service = models.BooleanField(default=True, help_text="Drained nodes finish what they do and take nothing new.")
    drained_at = models.DateTimeField(null=True, blank=True, editable=False)
    drained_by = models.CharField(max_length=150, blank=True, editable=False)
    drained_why = models.CharField(max_length=200, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)
    removed_by = models.CharField(max_length=150, blank=True, editable=False)
    facts = models.JSONField(default=dict, blank=True, editable=False, help_text="What the last check found.")
    checked_at = models.DateTimeField(null=True, blank=True, editable=False)
    problem = models.TextField(blank=True, editable=False, help_text="Why it is not ready; empty: ready.")

    objects = Nodes.as_manager()

    class Meta:
        ordering = ["cluster", "name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("fleet:node", args=[self.name])

    def clean(self) -> None:
        """Raise ValidationError where a field is more than a line, a price no number, or the way a circle."""
        lines.check_fields({name: getattr(self, name) for name in ONE_LINE})
        if self.gpu_hour_price is not None and not math.isfinite(self.gpu_hour_price):  # no limit refuses nan
            raise ValidationError({"gpu_hour_price": "Give a number."})
        hop, seen = self.jump, []
        while hop is not None:
            circle = hop.name in seen or (hop.pk == self.pk and self.pk is not None)
            seen.append(hop.name)
            if circle:
                raise ValidationError({"jump": f"the way would be a circle: {self.name}, {', '.join(seen)}"})
            hop = hop.jump

    @property
    def ready(self) -> bool:
        """Tell whether it takes new runs: in service, its key pinned, and nothing wrong at the last check."""
        return self.in_service and bool(self.host_key) and self.checked_at is not None and not self.problem

    def slot(self) -> NodeSlot:
        """Return its place in a launch."""
        return NodeSlot(
            name=self.name,
            address=self.internal_address or self.address,
            python=self.python,
            scratch=self.scratch,
            processes=self.processes,
            accelerator=self.accelerator,
            interface=self.interface,
        )
