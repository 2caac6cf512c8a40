"""Servers that deliveries go to, each a process of its own on a port of the system's choice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.training.deliver.harness import ROOT, make_export, until


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return make_export(tmp_path / "export")


@dataclass
class S3:
    """The started server; see s3_server.py."""

    folder: Path
    endpoint: str
    keys: dict[str, list[str]]

    def env(self, user: str = "all") -> dict[str, str]:
        key, secret = self.keys[user]
        return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}

    def target(self, prefix: str, **fields: object) -> dict[str, Any]:
        common = {"kind": "s3", "endpoint": self.endpoint, "bucket": "models", "path_style": True, "part_megabytes": 5}
        return common | {"prefix": prefix} | fields

    @property
    def parts(self) -> int:
        """How many parts were taken so far."""
        path = self.folder / "parts"
        return int(path.read_text() or 0) if path.exists() else 0

    def requests(self) -> list[str]:
        return (self.folder / "log").read_text().splitlines()

    def client(self) -> Any:
        """An ordinary client, none of ours."""
        import boto3

        key, secret = self.keys["all"]
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            region_name="us-east-1",
        )


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    folder = tmp_path_factory.mktemp("s3")
    with (folder / "out").open("wb") as out:
        command = [sys.executable, "-m", "tests.training.deliver.s3_server", str(folder)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)
    try:
        until(lambda: (folder / "server.json").exists() or process.poll() is not None)
        assert process.poll() is None, (folder / "out").read_text()
        yield S3(folder, **json.loads((folder / "server.json").read_text()))
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The server, with the credentials of the user who may do everything in the environment."""
    for name, value in s3_server.env().items():
        monkeypatch.setenv(name, value)
    (s3_server.folder / "hold").unlink(missing_ok=True)
    return s3_server
