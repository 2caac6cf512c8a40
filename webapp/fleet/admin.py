"""Clusters, nodes, identities and claims in the admin."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from webapp.dispatch import check_node
from webapp.facts import FactsAdmin

from . import changes
from .models import Claim, Cluster, Identity, NextKey, Node, NodeChange, Provision
from .ssh import fingerprint


@admin.register(Cluster)
class ClusterAdmin(admin.ModelAdmin):
    list_display = ["name", "notes"]
    search_fields = ["name", "notes"]


@admin.register(Node)
class NodeAdmin(admin.ModelAdmin):
    """What has rules of its own is changed on the node's page alone: its key, where both fingerprints are seen, its
    service and interpreter, its cluster and the way to it.
    """

    list_display = [
        "name",
        "cluster",
        "address",
        "port",
        "processes",
        "accelerator",
        "in_service",
        "ready",
        "checked_at",
        "removed_at",
    ]
    list_filter = [
        "cluster",
        "in_service",
        "accelerator",
        ("problem", admin.EmptyFieldListFilter),
        ("removed_at", admin.EmptyFieldListFilter),
    ]
    search_fields = ["name", "address", "problem"]
    list_select_related = ["cluster"]
    readonly_fields = [
        "cluster",
        "identity",
        "pinned",
        "python",
        "jump",
        "labels",
        "in_service",
        "drained_at",
        "drained_by",
        "drained_why",
        "problem",
        "checked_at",
        "facts",
        "pythons",
        "removed_at",
    ]
    actions = ["check_nodes"]

    @admin.display(boolean=True)
    def ready(self, node: Node) -> bool:
        return node.ready

    @admin.display(description="pinned host key")
    def pinned(self, node: Node) -> str:
        return fingerprint(node.host_key) or "none"

    @admin.action(description="Check: can it train?")
    def check_nodes(self, request: HttpRequest, nodes: object) -> None:
        for node in nodes:  # type: ignore[attr-defined]
            check_node(node.pk)
        self.message_user(request, "The checks are under way; look again in a few seconds.")

    def save_model(self, request: HttpRequest, node: Node, form: object, change: bool) -> None:
        before = Node.objects.get(pk=node.pk)
        super().save_model(request, node, form, change)
        if text := changes.differences(before, node):
            changes.record(node, request.user.get_username(), text)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # a node without a confirmed key is no node: it is added on the site

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False  # it is removed on the site, which says what would be lost


@admin.register(Identity)
class IdentityAdmin(FactsAdmin):
    """The sealed private key is in no field."""

    list_display = ["name", "kind", "public_fingerprint", "created_at"]
    list_filter = ["kind"]
    search_fields = ["name", "public_key"]
    fields = ["name", "kind", "public_key", "created_at"]

    @admin.display(description="fingerprint")
    def public_fingerprint(self, identity: Identity) -> str:
        return fingerprint(identity.public_key)


@admin.register(NextKey)
class NextKeyAdmin(FactsAdmin):
    """The sealed private key is in no field."""

    list_display = ["identity", "made_by", "made_at", "asked_at", "tried_at"]
    search_fields = ["identity__name", "public_key"]
    fields = ["identity", "public_key", "made_by", "made_at", "asked_at", "tried", "tried_at"]


@admin.register(Provision)
class ProvisionAdmin(FactsAdmin):
    list_display = ["node", "state", "step", "base", "requested_by", "created_at", "ended_at"]
    list_filter = ["state", "created_at"]
    search_fields = ["node__name", "reason", "base"]
    list_select_related = ["node"]


@admin.register(NodeChange)
class NodeChangeAdmin(FactsAdmin):
    list_display = ["node", "text", "actor", "at"]
    list_filter = ["node__cluster", "at"]
    search_fields = ["node__name", "text", "actor"]
    list_select_related = ["node"]


@admin.register(Claim)
class ClaimAdmin(FactsAdmin):
    list_display = ["node", "gpu", "attempt", "since"]
    list_filter = ["node__cluster"]
    search_fields = ["node__name", "=attempt__run__id"]
    list_select_related = ["node", "attempt"]
