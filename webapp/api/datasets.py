"""Data sets: upload, list, read."""

from __future__ import annotations

from typing import BinaryIO, cast

from django.http import HttpRequest
from ninja import File, Form, Router, UploadedFile
from ninja.responses import Status

from webapp.datasets.ingest import take
from webapp.datasets.models import Dataset

from .finders import by_id, user_of
from .paging import Cursor, Limit, Page, newest_first
from .shapes.datasets import DatasetOut, UploadOut

router = Router(tags=["datasets"])
ROWS = Dataset.objects.select_related("owner").prefetch_related("versions")


@router.post("/datasets", response={201: UploadOut, 200: UploadOut}, operation_id="create_dataset")
def create_dataset(
    request: HttpRequest,
    name: Form[str],
    train: File[UploadedFile],
    test: UploadedFile | None = File(None),  # noqa: B008  how ninja tells an optional file
    format: Form[str] = "",
) -> Status[UploadOut]:
    """Upload JSON Lines as the newest version of the data set `name`, made where there is none of that name.

    Rows are `messages`, `prompt` with `completion`, or `text`; other keys are left out and counted in `dropped`. All
    rows must be good, or nothing is stored. 200 in place of 201: the newest version holds the same rows already.
    """
    done = take(name, _bytes(train), _bytes(test) if test else None, user_of(request), format)
    shown = DatasetOut.of(by_id(ROWS.all(), done.version.dataset_id, "dataset"))
    out = UploadOut(
        created=done.created, dropped=done.dropped, blank_lines=done.blank_lines, roles=done.roles, **shown.dict()
    )
    return Status(201 if done.created else 200, out)


def _bytes(upload: UploadedFile) -> BinaryIO:
    return cast(BinaryIO, upload.file)


@router.get("/datasets", response=Page[DatasetOut], operation_id="list_datasets")
def list_datasets(request: HttpRequest, cursor: Cursor = "", limit: Limit = 50) -> Page[DatasetOut]:
    """List data sets, newest first."""
    found, after = newest_first(ROWS.all(), cursor, limit)
    return Page[DatasetOut](items=[DatasetOut.of(row) for row in found], next=after)


@router.get("/datasets/{int:dataset_id}", response=DatasetOut, operation_id="read_dataset")
def read_dataset(request: HttpRequest, dataset_id: int) -> DatasetOut:
    """Read a data set with its versions."""
    return DatasetOut.of(by_id(ROWS.all(), dataset_id, "dataset"))
