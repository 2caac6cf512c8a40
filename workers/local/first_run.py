"""The run that `make demo` launches once."""

from __future__ import annotations

from django.db import connection

from webapp.datasets.models import Dataset
from webapp.fleet.models import Cluster
from webapp.runs import actions
from webapp.runs.models import ModelSource, Run

from .admin import ADMIN, admin
from .prepare import DATASET
from .register import CLUSTER

PRESET = "smollm2-135m-demo"
MODEL = "SmolLM2-135M-Instruct"


def first_run() -> tuple[Run, bool]:
    """Return the newest run and False, or the first, just launched, and True."""
    try:
        if newest := Run.objects.first():
            return newest, False
        return _launch(), True
    finally:
        connection.close()


def _launch() -> Run:
    version = Dataset.objects.get(name=DATASET).latest
    assert version is not None, "the data set was registered with its first version"
    model, cluster = ModelSource.objects.get(name=MODEL), Cluster.objects.get(name=CLUSTER)
    run = actions.create(actions.Order("First run", PRESET, {}, model, version, cluster), admin())
    actions.launch(run, ADMIN)
    return run
