"""Which interpreters a node has. Asked with a fixed script: nothing that a person typed is part of it."""

from __future__ import annotations

import json

from django.utils import timezone

from training.spec.provision import Found
from webapp.fleet.models import Node
from webapp.fleet.ssh import Host, SshError

from ..preflight import asked
from ..preflight.node import member_of
from . import remote

# Each candidate says of itself what it is, "$1" besides; one that can't is left out. `-I`: no module of anybody's.
SCRIPT = """\
ask='import json, sys, importlib.util as u
print(json.dumps([sys.argv[1], list(sys.version_info[:3]), bool(u.find_spec("venv") and u.find_spec("ensurepip"))]))'
for p in "$@" /usr/bin/python3* /usr/local/bin/python3* /opt/*/bin/python3 "$HOME"/.pyenv/versions/*/bin/python3 \\
    "$HOME"/.local/share/uv/python/*/bin/python3 "$HOME"/*conda*/bin/python3 "$HOME"/miniforge3/bin/python3; do
  case "$p" in *-config|*[0-9]t) continue;; esac
  [ -x "$p" ] && timeout 20 "$p" -I -c "$ask" "$p" </dev/null 2>/dev/null
done
true"""


async def pythons(host: Host, wanted: str = "") -> list[Found]:
    """Return those found, one a path, also of `wanted` where there is one; raise SshError."""
    out = await host.check(["sh", "-c", SCRIPT, "find", *([wanted] if wanted else [])])
    found: dict[str, Found] = {}
    for line in out.splitlines():
        if each := _read(line):
            found.setdefault(each.path, each)
    return list(found.values())


def _read(line: str) -> Found | None:
    """What a login printed is no answer."""
    try:
        path, (major, minor, micro), venv = json.loads(line)
        return Found(str(path), (int(major), int(minor), int(micro)), bool(venv))
    except (ValueError, TypeError):
        return None


def keep(node_id: int, found: list[Found]) -> None:
    rows = [{"path": each.path, "words": each.words, "fits": each.fits} for each in found]
    Node.objects.filter(pk=node_id).update(pythons=rows, pythons_at=timezone.now())


def find_pythons(node_id: int) -> None:
    """Look, for the node's page; a node that can't be asked says so as its problem."""
    node = Node.objects.select_related("identity").filter(pk=node_id).first()
    if node is None:
        return
    asked_at = timezone.now()
    try:
        keep(node_id, remote.ask(node, "", lambda member, host: pythons(host)))
    except SshError as error:
        asked.keep(member_of(node), asked_at, {}, [error.problem])
