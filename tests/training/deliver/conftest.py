"""What deliveries are made of and go to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.training.deliver import seaweed
from tests.training.deliver.gate import Gate
from tests.training.deliver.harness import make_export, until


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return make_export(tmp_path / "export")


@dataclass
class S3:
    """A started server behind a gate."""

    gate: Gate
    keys: dict[str, dict[str, str]]

    def target(self, prefix: str, **fields: object) -> dict[str, Any]:
        common = {"kind": "s3", "endpoint": self.gate.url, "bucket": "models", "path_style": True, "part_megabytes": 5}
        return common | {"prefix": prefix} | fields

    def client(self) -> Any:
        """A client of the server itself, made without ours."""
        import botocore.session

        return botocore.session.Session().create_client(
            "s3",
            endpoint_url=f"http://{self.gate.behind}",
            aws_access_key_id=self.keys["all"]["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.keys["all"]["AWS_SECRET_ACCESS_KEY"],
            region_name="us-east-1",
        )


def _has_bucket(client: Any) -> bool:
    """Make the bucket; False while the server still gathers its parts, and answers requests all the same."""
    try:
        client.create_bucket(Bucket="models")
    except client.exceptions.BucketAlreadyOwnedByYou:
        return True
    except (client.exceptions.ClientError, client.exceptions.BucketAlreadyExists):
        return False
    client.put_object(Bucket="models", Key="ready", Body=b"x")
    return True


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    keys = {user: dict(zip(names, map(str, pair), strict=True)) for user, (*pair, _) in seaweed.KEYS.items()}
    with seaweed.server(tmp_path_factory.mktemp("seaweed")) as url, Gate(url) as gate:
        found = S3(gate, keys)
        until(lambda: _has_bucket(found.client()))
        yield found
        gate.open()
        gate.shutdown()


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The server, with the credentials of the user who may do everything in the environment."""
    for name, value in s3_server.keys["all"].items():
        monkeypatch.setenv(name, value)
    yield s3_server
    s3_server.gate.open()
