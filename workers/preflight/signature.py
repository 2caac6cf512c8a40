"""What has to stay as it is for an open port to be believed open: nodes, addresses, interfaces, versions, boots."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from webapp.preflights.models import Preflight

from ..group import Member
from .interface import Way

BELIEVED = timedelta(hours=24)
FACTS = ("hostname", "boot", "python", "versions", "cuda", "nccl")


def of(members: Sequence[Member], ways: Mapping[str, Way], facts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one hash for all nodes together."""
    rows = []
    for member in sorted(members, key=lambda m: m.node_id):
        way, said = ways[member.name], facts[member.name]
        known = {name: said.get(name) for name in FACTS}
        rows.append([member.node_id, member.release, member.slot.address, way.interface, way.address, known])
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def proven_at(signature: str) -> datetime | None:
    """Return when these nodes, as they are, last had their ports open both ways; None: not within a day."""
    since = timezone.now() - BELIEVED
    times = Preflight.objects.filter(signature=signature, ended_at__gte=since).order_by("-ended_at")
    return times.values_list("ended_at", flat=True).first()
