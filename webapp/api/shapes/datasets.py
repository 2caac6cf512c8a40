"""How a data set looks outside."""

from __future__ import annotations

from datetime import datetime

from ninja import Schema

from webapp.datasets.models import Dataset, Version


class VersionOut(Schema):
    """`digest` names the content: the same rows, the same digest."""

    id: int
    number: int
    digest: str
    format: str
    rows: int
    test_rows: int
    bytes: int
    created_at: datetime

    @classmethod
    def of(cls, row: Version) -> VersionOut:
        same = ("id", "number", "digest", "format", "rows", "test_rows", "bytes", "created_at")
        return cls(**{name: getattr(row, name) for name in same})


class DatasetOut(Schema):
    """`latest` is what a run gets that names the data set."""

    id: int
    name: str
    owner: str | None
    created_at: datetime
    latest: VersionOut | None
    versions: list[VersionOut]

    @classmethod
    def of(cls, row: Dataset) -> DatasetOut:
        versions = [VersionOut.of(version) for version in row.versions.all()]
        return cls(
            id=row.pk,
            name=row.name,
            owner=row.owner.get_username() if row.owner else None,
            created_at=row.created_at,
            latest=versions[0] if versions else None,
            versions=versions,
        )


class UploadOut(DatasetOut):
    """`created`: false where the newest version already holds these rows. `dropped`: keys left out, and how often."""

    created: bool
    dropped: dict[str, int]
    blank_lines: int
    roles: dict[str, int]
