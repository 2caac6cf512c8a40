"""What a run can be made of: presets, models, clusters and their nodes."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from training.spec import presets
from webapp.fleet.models import Cluster
from webapp.runs.models import ModelSource

from .paging import Page
from .shapes.fleet import ClusterOut

router = Router(tags=["catalogue"])


class PresetOut(Schema):
    """A named recipe; `nodes` and `processes` say what placement it was written for."""

    name: str
    title: str
    nodes: int
    processes: int
    recipe: dict[str, Any]


class ModelOut(Schema):
    """A base model: a folder that every node can read, or a hub id with its revision."""

    id: int
    name: str
    location: str
    revision: str


@router.get("/presets", response=Page[PresetOut], operation_id="list_presets")
def list_presets(request: HttpRequest) -> Page[PresetOut]:
    """List the presets with their whole recipes."""
    found = [presets.load(name) for name in presets.names()]
    return Page[PresetOut](
        items=[PresetOut(**(vars(preset) | {"recipe": preset.recipe.model_dump(mode="json")})) for preset in found]
    )


@router.get("/models", response=Page[ModelOut], operation_id="list_models")
def list_models(request: HttpRequest) -> Page[ModelOut]:
    """List the base models."""
    rows = ModelSource.objects.all()
    return Page[ModelOut](
        items=[ModelOut(id=m.pk, name=m.name, location=m.location, revision=m.revision) for m in rows]
    )


@router.get("/clusters", response=Page[ClusterOut], operation_id="list_clusters")
def list_clusters(request: HttpRequest) -> Page[ClusterOut]:
    """List the clusters with their nodes."""
    return Page[ClusterOut](items=[ClusterOut.of(cluster) for cluster in Cluster.objects.all()])
