"""manage.py add_node CLUSTER NAME --address ... : add a node, or change the one of that name.

The host key is pinned from a file (--host-key), or from the host itself where its fingerprint is the one
given (--fingerprint). With neither, the command says what the host shows, and changes nothing. Of a node that is there
whatever is not given stays as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from training.spec.lint import Problem, Refused
from webapp.fleet import enrol
from webapp.fleet.models import DESCRIBED, Identity, Node
from webapp.fleet.ssh import fingerprint


class Command(BaseCommand):
    help = "Add a node to a cluster (made where missing), or change the node of that name."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster")
        parser.add_argument("name")
        parser.add_argument("--address", required=True)
        parser.add_argument("--port", type=int, help="(of a new node: 22)")
        parser.add_argument("--user", required=True)
        parser.add_argument("--identity", required=True, help="name of an SSH identity (see make_identity)")
        parser.add_argument("--python", help="absolute path of the interpreter; '' or none given: one is to be made")
        parser.add_argument("--scratch", required=True, help="absolute path of the scratch folder on the node")
        parser.add_argument("--processes", type=int, help="ranks: one per GPU (of a new node: 1)")
        kind = parser.add_mutually_exclusive_group()
        kind.add_argument("--accelerator", dest="accelerator", action="store_true", default=None, help="it has GPUs")
        kind.add_argument("--cpu", dest="accelerator", action="store_false", help="the node has no GPU")
        parser.add_argument("--internal-address", help="address that the other nodes reach")
        parser.add_argument("--interface", help="network interface between nodes")
        parser.add_argument("--gpu-hour-price", type=float, help="what a GPU costs an hour")
        parser.add_argument("--jump", help="name of the node through which it is reached; '' for none")
        parser.add_argument("--label", action="append", help="word to find it by; may be given again")
        parser.add_argument("--host-key", type=Path, help="file with the node's public host key")
        parser.add_argument("--fingerprint", default="", help="SHA256:... of the key that the host must show")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            node, is_new = self._node(options)
            node.host_key = _host_key(node, options)
            enrol.put_node(node, options["cluster"])
        except Refused as refused:
            raise CommandError("\n".join(map(str, refused.problems))) from None
        self.stdout.write(f"{node}: {'added' if is_new else 'changed'}, {fingerprint(node.host_key)} pinned")

    def _node(self, options: dict[str, Any]) -> tuple[Node, bool]:
        identity = Identity.objects.filter(name=options["identity"]).first()
        if identity is None:
            fix = f"Make it: manage.py make_identity {options['identity']}"
            raise Refused([Problem("identity", f"none is called {options['identity']!r}", fix)])
        found = Node.objects.filter(name=options["name"]).first()
        node = found or Node(name=options["name"])
        node.identity = identity
        if options["jump"] is not None:
            node.jump = _jump(options["jump"])
        if options["label"] is not None:
            node.labels = options["label"]
        for key in DESCRIBED:
            if options[key] is not None:
                setattr(node, key, options[key])
        return node, found is None


def _jump(name: str) -> Node | None:
    if not name:
        return None
    found = Node.objects.filter(name=name, removed_at=None).first()
    if found is None:
        raise Refused([Problem("jump", f"no node is called {name!r}", "Add the jump host first.")])
    return found


def _host_key(node: Node, options: dict[str, Any]) -> str:
    given = ""
    if path := options["host_key"]:
        try:
            given = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Refused([Problem("host_key", str(error), "Name a file that can be read.")]) from None
        enrol.checked_key(given)  # an empty file is no key either
    return enrol.confirmed_key(node, given, options["fingerprint"])
