"""Make a run with a ready export, for a benchmark: python -m tests.bench.big_export NODE FILES.json

FILES.json: [{name, size, sha256}] of the model folder. Prints {run, export, folder, session}: where the files are
to lie on the node, and the session cookie of the admin. Uses the service's own settings and database.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()

from django.conf import settings  # noqa: E402 - after Django is set up
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.utils import timezone  # noqa: E402

from training.spec.folder import Scratch  # noqa: E402
from webapp.datasets.models import Version  # noqa: E402
from webapp.fleet.models import Node  # noqa: E402
from webapp.runs import actions  # noqa: E402
from webapp.runs.models import Attempt, Checkpoint, Export, ModelSource, Run  # noqa: E402


def make(node: Node, files: list[dict[str, Any]]) -> dict[str, Any]:
    user = get_user_model().objects.get(username="admin")
    order = actions.Order(
        "a run with a large export", "tiny", {}, ModelSource.objects.get(name="tiny-llama-5M"),
        Version.objects.latest("pk"), node.cluster,
    )  # fmt: skip
    run = actions.create(order, user)
    export = _export(run, node, files)
    folder = Scratch(PurePosixPath(node.scratch)).export(run.pk, export.pk).model
    return {"run": run.pk, "export": export.pk, "folder": str(folder), "session": _session(user)}


def _export(run: Run, node: Node, files: list[dict[str, Any]]) -> Export:
    now = timezone.now()
    attempt = Attempt.objects.create(run=run, number=1, ended_at=now)
    actions.place(attempt, [node])
    checkpoint = Checkpoint.objects.create(attempt=attempt, step=6, nodes=1, world_size=1, completed_at=now)
    return Export.objects.create(
        checkpoint=checkpoint, dtype="bfloat16", node=node, slot=vars(node.slot()), state="ready", files=files,
        bytes=sum(file["size"] for file in files), ended_at=now,
    )  # fmt: skip


def _session(user: Any) -> str:
    """Log in as a browser would have; return the cookie."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"


if __name__ == "__main__":
    print(json.dumps(make(Node.objects.get(name=sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))))
