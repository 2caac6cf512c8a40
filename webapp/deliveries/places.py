"""Make, change and delete destinations: everything is checked first, and raises Refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from training.spec import envfile
from training.spec.deliver import SECRETS, missing_secrets, parse_target
from training.spec.lint import Problem, Refused

from .models import Delivery, Destination
from .models.destination import KINDS

LONGEST_SECRET = 4000
ADDRESS = ("endpoint", "insecure")  # fields of a target: who gets the secrets, and whether others can read along


def secret_fields(kind: str) -> tuple[str, ...]:
    """Return the variables that a destination of this kind needs, then those that it also takes."""
    needed, also = SECRETS.get(kind, ((), ()))
    return (*needed, *also)


def save(
    destination: Destination, settings: Mapping[str, Any], secrets: Mapping[str, str], user: User | None
) -> Destination:
    """Store `destination`, whose name, kind and node are set. An empty secret leaves the one that there is.

    Where another server gets them, the secrets are asked for anew: who may change an address need not know them.
    """
    kind = destination.kind
    if kind not in KINDS:
        raise Refused([Problem("kind", f"{kind!r} is no kind of destination", f"Choose {', '.join(KINDS)}.")])
    found = _settings(kind, settings)
    moved = goes_elsewhere(destination, found)
    known = destination.secrets if destination.can_be_opened and not moved else {}
    given = {name: value.strip() for name, value in secrets.items() if value.strip()}
    kept = {name: value for name, value in (known | given).items() if name in secret_fields(kind)}
    if problems := [*_node_problems(destination), *_secret_problems(given), *missing_secrets(_spelled(kind), kept)]:
        raise Refused([_worded(problem, moved=moved) for problem in problems])
    destination.settings, destination.secrets = found, kept
    destination.changed_at = timezone.now()
    destination.made_by = destination.made_by or user
    destination.save()
    return destination


def _settings(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    found = parse_target({**settings, "kind": _spelled(kind)})
    return found.model_dump(mode="json", exclude={"kind"})


def goes_elsewhere(destination: Destination, settings: Mapping[str, Any]) -> bool:
    """Tell whether with `settings` the secrets that are kept would go to another server, or in another way."""
    return bool(destination.sealed_secrets) and _address(destination.settings) != _address(settings)


def secrets_for(delivery: Delivery) -> dict[str, str]:
    """Return the secrets that the delivery's job gets; raise Refused where they are now for another server."""
    kept = delivery.destination
    if kept is None or not kept.sealed_secrets:
        return {}
    if goes_elsewhere(kept, delivery.target):
        raise Refused([Problem("destination", f"the endpoint of {kept} was changed since", "Send it again.")])
    return kept.secrets


def _address(settings: Mapping[str, Any]) -> list[Any]:
    return [settings.get(name) for name in ADDRESS]


def _spelled(kind: str) -> str:
    """A folder on another node is described as one on the export's own."""
    return "path" if kind == "node" else kind


def _node_problems(destination: Destination) -> list[Problem]:
    if destination.kind == "node" and destination.node is None:
        return [Problem("node", "none is chosen", "Choose the node that receives.")]
    return []


def _secret_problems(given: Mapping[str, str]) -> list[Problem]:
    long = [Problem(name, "it is too long for a secret", "Paste the key alone.") for name in given
            if len(given[name]) > LONGEST_SECRET]  # fmt: skip
    try:
        envfile.dump(dict(given))
    except Refused as refused:
        return [*long, *refused.problems]
    return long


def _worded(problem: Problem, *, moved: bool) -> Problem:
    """On a node the way out is an environment variable; here it is the field of that name."""
    if problem.field in secret_fields("s3") + secret_fields("hub") and "environment" in problem.reason:
        why = "the one that is kept is not for another server" if moved else "it is missing"
        return Problem(problem.field, why, "Enter it; it is sealed and never shown again.")
    return problem


@transaction.atomic
def forget_secrets(destination: Destination) -> None:
    """Delete the secrets; deliveries are refused until they are entered again."""
    destination.secrets = {}
    destination.changed_at = timezone.now()
    destination.save(update_fields=["sealed_secrets", "secret_names", "changed_at"])


def delete(destination: Destination) -> None:
    """Delete a destination that nothing is under way to; what was delivered there stays, and so do its records."""
    active = destination.deliveries.exclude(state__in=destination.deliveries.model.STATES.ended)
    if active.exists():
        raise Refused([Problem("destination", "a delivery to it is under way", "Cancel it, or wait for its end.")])
    destination.delete()
