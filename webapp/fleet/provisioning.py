"""What people ask of a node's interpreter: to look which are there, to make one, to stop making it."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.db import IntegrityError, transaction
from django.utils import timezone

from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_provision
from webapp.runs import rank_env

from . import changes, lines
from .models import Node, Provision
from .models.node import absolute

LONGEST = 500  # characters of a path
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


@transaction.atomic
def provision(node: Node, actor: str, *, base: str = "", gpu: bool | None = None) -> Provision:
    """Have an interpreter made on the node; raise Refused. `base`: see Provision. `gpu`: None: where it has GPUs."""
    _check(node, base)
    pip_env()  # a setting that can't be read is told now
    found = Provision(node=node, requested_by=actor, base=base, gpu=node.accelerator if gpu is None else gpu)
    try:
        with transaction.atomic():
            found.save()
    except IntegrityError:
        fix = "Wait for its end, or stop it."
        raise Refused([Problem("node", "an interpreter is being made there already", fix)]) from None
    changes.record(node, actor, f"an interpreter is to be made{f' on {base}' if base else ''}")
    advance_provision(found.pk)
    return found


def _check(node: Node, base: str) -> None:
    if node.removed_at:
        raise Refused([Problem("node", "it is removed", "Bring it back first.")])
    if not node.host_key:
        raise Refused([Problem("host_key", "nobody has confirmed it", "Compare and pin it first.")])
    try:
        if base:
            absolute(base)
            lines.check(base)
            MaxLengthValidator(LONGEST)(base)
    except ValidationError:
        raise Refused(
            [Problem("base", f"it is no absolute path of at most {LONGEST} characters", "Such as /usr/bin/python3.12.")]
        ) from None


@transaction.atomic
def cancel(found: Provision, actor: str) -> None:
    """Have it stopped; what was downloaded is kept for a next try. Of one that has ended nothing changes."""
    asked = Provision.objects.filter(pk=found.pk, state__in=["queued", "running"], cancel_asked_at=None)
    if asked.update(cancel_asked_at=timezone.now(), cancelled_by=actor):
        advance_provision(found.pk)


def pip_env() -> dict[str, str]:
    """Return the variables that pip gets on nodes: the settings, and the proxies of all ranks. Raises Refused."""
    proxies = {name: value for name, value in rank_env.operators().items() if name.upper() in PROXIES}
    own = {
        "PIP_INDEX_URL": settings.PIP_INDEX_URL,
        "PIP_EXTRA_INDEX_URL": settings.PIP_EXTRA_INDEX_URL,
        "PIP_FIND_LINKS": settings.PIP_WHEELS,
        "PIP_NO_INDEX": "1" if settings.PIP_NO_INDEX else "",
    }
    return proxies | {name: value for name, value in own.items() if value}
