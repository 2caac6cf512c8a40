"""The rows that a first look needs: the cluster with both hosts, models, data set.

Run again, it changes what moved (ports, keys) and leaves what a person may have changed.
"""

from __future__ import annotations

import getpass
import sys
from io import StringIO

from django.core.management import call_command
from django.db import connection

from webapp.datasets.models import Dataset
from webapp.fleet.models import Cluster, Identity, Node
from webapp.runs.models import ModelSource

from .hostkey import public_host_key
from .place import Place
from .ports import HOST
from .prepare import DATASET, MODELS

CLUSTER = "demo"
IDENTITY = "loopback"
INTERFACE = "lo"


def register_all(place: Place, ports: dict[str, int]) -> None:
    """`ports` has the port of each loopback host by its name; other names in it are left alone."""
    identity = _identity()
    place.authorized_keys.write_text(identity.public_key.strip() + "\n", "utf-8")
    cluster, _ = Cluster.objects.get_or_create(name=CLUSTER, defaults={"notes": "Two hosts on this machine."})
    for name in ports.keys() - {"redis"}:
        _node(place, name, ports[name], cluster, identity)
    for name in MODELS:
        ModelSource.objects.update_or_create(name=name, defaults={"location": str(place.model(name))})
    _dataset(place)
    connection.close()


def _identity() -> Identity:
    found = Identity.objects.filter(name=IDENTITY).first()
    if found is None:
        call_command("make_identity", IDENTITY, stdout=StringIO())
        found = Identity.objects.get(name=IDENTITY)
    return found


def _node(place: Place, name: str, port: int, cluster: Cluster, identity: Identity) -> None:
    """Its host key is known first-hand, so it is pinned without asking."""
    facts = {
        "python": sys.executable,
        "scratch": str(place.scratch(name)),
        "address": HOST,
        "port": port,
        "user": getpass.getuser(),
        "identity": identity,
        "host_key": public_host_key(place.node(name)),
    }
    fixed = {
        "cluster": cluster,
        "processes": 1,
        "accelerator": False,
        "internal_address": HOST,
        "interface": INTERFACE,
    }
    # a person may have changed the rest since
    Node.objects.update_or_create(name=name, defaults=facts, create_defaults={**facts, **fixed})


def _dataset(place: Place) -> None:
    if not Dataset.objects.filter(name=DATASET).exists():
        folder = place.samples(DATASET)
        call_command("add_dataset", DATASET, str(folder / "train.jsonl"), "--test", str(folder / "test.jsonl"))
