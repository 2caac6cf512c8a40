"""What each kind of job does beyond being supervised; webapp.runs.jobkinds has its rows."""

from __future__ import annotations

from typing import Any

from ..deliver.delivering import Delivering
from ..export.exporting import Exporting
from ..trials.answering import Answering
from .work import Work

WORKS: dict[str, Work[Any]] = {work.model.KIND: work for work in (Exporting(), Delivering(), Answering())}
