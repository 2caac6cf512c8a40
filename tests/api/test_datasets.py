"""POST /datasets, GET /datasets, GET /datasets/{id}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from webapp.datasets.models import Dataset

from .conftest import Caller, refused, strictly

LINE = b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "id": 7}\n'


@pytest.fixture(autouse=True)
def store(settings: Any, tmp_path: Path) -> Path:
    settings.DATASETS_DIR = tmp_path / "datasets"
    return settings.DATASETS_DIR


def upload(content: bytes = LINE, name: str = "train.jsonl") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def test_it_works(call: Caller) -> None:
    answer = call.upload("/datasets", {"name": "chat", "train": upload(LINE * 3), "test": upload()})
    body = strictly(answer)
    assert answer.status_code == 201
    assert (body["name"], body["owner"], body["created"]) == ("chat", "ada", True)
    assert (body["latest"]["rows"], body["latest"]["test_rows"], body["latest"]["format"]) == (3, 1, "messages")
    assert (body["dropped"], body["roles"]) == ({"id": 4}, {"user": 4, "assistant": 4})
    shown = strictly(call.get(f"/datasets/{body['id']}"))
    assert shown == {key: body[key] for key in shown}
    assert strictly(call.get("/datasets")) == {"items": [shown], "next": None}


def test_the_same_again_is_the_same(call: Caller) -> None:
    first = strictly(call.upload("/datasets", {"name": "chat", "train": upload()}))
    answer = call.upload("/datasets", {"name": "chat", "train": upload()})
    assert answer.status_code == 200
    assert strictly(answer)["versions"] == first["versions"]
    assert strictly(answer)["created"] is False


def test_a_broken_line_is_named_and_nothing_stored(call: Caller, store: Path) -> None:
    answer = call.upload("/datasets", {"name": "chat", "train": upload(LINE + b"{\n")})
    assert "expected one JSON object" in refused(answer, 422, "train, line 2, column 2")
    assert not Dataset.objects.exists()
    assert not list(store.iterdir())


@pytest.mark.parametrize("name", ["../../x.jsonl", "/etc/passwd", "..\\x", "a\x01b"])
def test_the_name_of_an_uploaded_file_is_no_path(call: Caller, store: Path, name: str) -> None:
    assert call.upload("/datasets", {"name": "chat", "train": upload(name=name)}).status_code == 201
    assert [len(folder.name) for folder in store.iterdir()] == [64]


def test_what_is_missing_is_said(call: Caller) -> None:
    refused(call.upload("/datasets", {"train": upload()}), 422, "name")
    refused(call.upload("/datasets", {"name": "chat"}), 422, "train")
    refused(call.upload("/datasets", {"name": "chat", "train": "not a file"}), 422, "train")
    refused(call.upload("/datasets", {"name": "chat", "train": upload(), "format": "csv"}), 422, "format")
    refused(call.post("/datasets", json.dumps({"name": "chat"})), 422, "train")
    refused(call.get("/datasets/1"), 404, "id")


def test_a_multipart_body_that_is_none(call: Caller) -> None:
    for kind in ("multipart/form-data", "multipart/form-data; boundary=x", "multipart/form-data; boundary=\x00"):
        answer = call.client.post("/api/v1/datasets", b"--y\r\n\r\n", content_type=kind, headers=call.headers)
        assert answer.status_code in (400, 422)
