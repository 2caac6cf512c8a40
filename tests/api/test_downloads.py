"""GET /exports/{id}/files/{name} and /exports/{id}/archive, from a node over real SSH."""

from __future__ import annotations

import hashlib
import io
import json
import random
import tarfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from tests.sshd import Sshd
from webapp.fleet.ssh import make_identity, pool
from webapp.runs import actions
from webapp.runs.models import Export

from .conftest import ROOT, World, checkpoint, refused

pytestmark = pytest.mark.django_db(transaction=True)
CONTENT = {
    "config.json": b"{}",
    "model-00001-of-00002.safetensors": random.Random(1).randbytes(3_000_001),
    "model-00002-of-00002.safetensors": random.Random(2).randbytes(70_000),
    "empty": b"",
}


@dataclass
class Downloads:
    """An export on a node: `folder` is where its files lie."""

    export: Export
    sshd: Sshd
    folder: Path
    secret: str
    base: str

    async def get(self, path: str, method: str = "get", **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        ask = getattr(AsyncClient(raise_request_exception=False), method)
        return await ask(f"{self.base}{path}", headers={"Authorization": f"Bearer {self.secret}"} | named)


@pytest.fixture
def there(world: World, secret: str, tmp_path: Path) -> Iterator[Downloads]:
    pair = make_identity()
    sshd = Sshd(pair.public)
    node = world.nodes[0]
    node.identity.private_key, node.identity.public_key = pair.private, pair.public
    node.identity.save()
    node.address, node.port, node.host_key, node.scratch = "127.0.0.1", sshd.port, sshd.host_key, str(tmp_path)
    node.save()
    run = world.run(name="My Llama / one")
    export = actions.export(run, world.user, checkpoint(actions.launch(run, "ada"), 6))
    folder = tmp_path / "runs" / str(run.pk) / "exports" / str(export.pk) / "model"
    folder.mkdir(parents=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    files = [{"name": n, "size": len(c), "sha256": hashlib.sha256(c).hexdigest()} for n, c in CONTENT.items()]
    made = {"state": "ready", "made_dtype": "bfloat16", "node": node, "slot": vars(node.slot()), "files": files}
    Export.objects.filter(pk=export.pk).update(**made)
    yield Downloads(export, sshd, folder, secret, f"{ROOT}/exports/{export.pk}")
    sshd.finish()


async def body(answer: Any) -> bytes:
    return b"".join([part async for part in answer])


def problem(answer: Any, status: int, field: str) -> str:
    return refused(answer, status, field)


BIG = "model-00001-of-00002.safetensors"


@pytest.mark.parametrize("name", list(CONTENT))
async def test_a_file_is_sent_whole(there: Downloads, name: str) -> None:
    answer = await there.get(f"/files/{name}")
    assert answer.status_code == 200
    assert await body(answer) == CONTENT[name]
    assert answer["Content-Length"] == str(len(CONTENT[name]))
    assert answer["ETag"] == f'"{hashlib.sha256(CONTENT[name]).hexdigest()}"'
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [("bytes=0-0", 0, 1), ("bytes=1000000-", 1_000_000, 3_000_001), ("bytes=-5", 2_999_996, 3_000_001)],
)
async def test_a_range_is_sent(there: Downloads, header: str, start: int, end: int) -> None:
    answer = await there.get(f"/files/{BIG}", Range=header)
    assert answer.status_code == 206
    assert await body(answer) == CONTENT[BIG][start:end]
    assert answer["Content-Range"] == f"bytes {start}-{end - 1}/3000001"
    assert answer["Content-Length"] == str(end - start)


async def test_a_range_behind_the_end(there: Downloads) -> None:
    answer = await there.get(f"/files/{BIG}", Range="bytes=3000001-")
    assert (answer.status_code, answer["Content-Range"]) == (416, "bytes */3000001")


async def test_a_range_of_another_version_is_the_whole(there: Downloads) -> None:
    tag = (await there.get("/files/config.json", "head"))["ETag"]
    same = await there.get("/files/config.json", Range="bytes=1-1", If_Range=tag)
    other = await there.get("/files/config.json", Range="bytes=1-1", If_Range='"other"')
    assert (same.status_code, await body(same)) == (206, b"}")
    assert (other.status_code, await body(other)) == (200, b"{}")


async def test_what_one_has_is_not_sent_again(there: Downloads) -> None:
    tag = (await there.get("/archive", "head"))["ETag"]
    answer = await there.get("/archive", If_None_Match=tag)
    assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", tag)


async def test_head_says_all_and_asks_no_node(there: Downloads) -> None:
    there.sshd.stop()
    answer = await there.get(f"/files/{BIG}", "head")
    assert (answer.status_code, answer["Content-Length"]) == (200, "3000001")


async def test_the_archive_is_a_tar_of_all(there: Downloads) -> None:
    answer = await there.get("/archive")
    raw = await body(answer)
    top = "my-llama-one-step6-bfloat16"
    assert answer["Content-Disposition"] == f'attachment; filename="{top}.tar"'
    assert answer["Content-Length"] == str(len(raw))
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        found = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    assert found == {f"{top}/{name}": content for name, content in CONTENT.items()}


async def test_the_archive_goes_on_where_it_stopped(there: Downloads) -> None:
    first = await there.get("/archive")
    whole = await body(first)
    for start in (1, 511, 512, 1_700_000, len(whole) - 1):
        rest = await there.get("/archive", Range=f"bytes={start}-", If_Range=first["ETag"])
        assert rest.status_code == 206
        assert await body(rest) == whole[start:]


async def test_a_browser_with_a_session_downloads(there: Downloads, world: World) -> None:
    client = AsyncClient()
    await client.aforce_login(world.user)
    assert await body(await client.get(f"{there.base}/files/config.json")) == b"{}"
    assert (await AsyncClient().get(f"{there.base}/files/config.json")).status_code == 401


@pytest.mark.parametrize(
    "name", ["..%2f..%2f..%2fetc%2fpasswd", "../../etc/passwd", "/etc/passwd", "%00", "other", "."]
)
async def test_a_name_that_is_not_in_the_manifest(there: Downloads, name: str) -> None:
    answer = await there.get(f"/files/{name}")
    assert answer.status_code == 404
    assert set(json.loads(answer.content)) == {"error", "problems"}
    assert not there.sshd.connections


async def test_an_export_that_is_not_ready(there: Downloads) -> None:
    await Export.objects.aupdate(state="running")
    problem(await there.get("/archive"), 409, "state")
    problem(await there.get("/files/config.json"), 409, "state")
    there.base = f"{ROOT}/exports/{10**30}"
    problem(await there.get("/archive"), 404, "id")


async def test_a_node_that_is_gone_is_said_before_the_first_byte(there: Downloads) -> None:
    there.sshd.stop()
    assert "no connection" in problem(await there.get("/archive"), 503, "node n0")


async def test_a_file_that_is_gone_or_short_is_said_before_the_first_byte(there: Downloads) -> None:
    (there.folder / BIG).write_bytes(b"short")
    assert "cut short" in problem(await there.get("/archive"), 503, "node n0")
    assert await body(await there.get("/files/config.json")) == b"{}"


async def test_a_changed_host_key_sends_nothing(there: Downloads, world: World) -> None:
    world.nodes[0].host_key = make_identity().public
    await sync_to_async(world.nodes[0].save)()
    assert "host key" in problem(await there.get("/archive"), 503, "node n0")


async def test_a_connection_that_ends_half_way_ends_the_answer(there: Downloads) -> None:
    answer = await there.get("/archive")
    parts = aiter(answer)
    got = [await anext(parts), await anext(parts)]
    there.sshd.stop()
    with pytest.raises(RuntimeError):
        await _take_all(parts, got)
    assert sum(map(len, got)) < int(answer["Content-Length"])


async def _take_all(parts: AsyncIterator[bytes], into: list[bytes]) -> None:
    async for part in parts:
        into.append(part)


async def test_the_connection_is_given_back_with_the_answer(there: Downloads, monkeypatch: Any) -> None:
    monkeypatch.setattr(pool, "_current", pool.Pool(idle=0.1))
    read, left = await there.get("/archive"), await there.get("/archive")
    await body(read)
    await sync_to_async(left.close)()  # as Django does when the client has gone
    for connection in there.sshd.connections:
        await sync_to_async(there.sshd._do)(connection.wait_closed())  # in the server's own loop
