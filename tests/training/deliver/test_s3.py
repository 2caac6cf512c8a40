"""Deliveries to a real S3 server, which holds them to signatures, permissions and checksums: see seaweed.py."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.training.deliver.conftest import S3
from tests.training.deliver.harness import deliver, describe, events, flip, make_export, start, text_of, until
from training.deliver.s3 import errors
from training.deliver.s3.digests import Digests, part_size
from training.spec.deliver import S3Target
from training.spec.faults import Reason

MB = 1 << 20
SMALL = {"a.safetensors": 6 * MB, "config.json": 100}
LARGE = {"a.safetensors": 16 * MB, "b.safetensors": 100, "config.json": 100}


def stored(s3: S3, prefix: str) -> dict[str, bytes]:
    client = s3.client()
    found = client.list_objects_v2(Bucket="models", Prefix=f"{prefix}/").get("Contents", [])
    return {
        o["Key"].removeprefix(f"{prefix}/"): client.get_object(Bucket="models", Key=o["Key"])["Body"].read()
        for o in found
    }


def local(export: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in export.iterdir()}


def unfinished(s3: S3, prefix: str) -> list[str]:
    found = s3.client().list_multipart_uploads(Bucket="models").get("Uploads", [])
    return [u["Key"] for u in found if u["Key"].startswith(prefix)]


def checksum(data: bytes, part: int = 5 * MB) -> str:
    """Return what S3 documents for an object: of one that came in parts the hash of their hashes."""
    parts = [hashlib.sha256(data[at : at + part]).digest() for at in range(0, len(data), part)]
    if len(parts) == 1:
        return base64.b64encode(parts[0]).decode()
    return f"{base64.b64encode(hashlib.sha256(b''.join(parts)).digest()).decode()}-{len(parts)}"


def test_it_works(s3: S3, export: Path, tmp_path: Path) -> None:
    code, delivered = deliver(tmp_path, export, s3.target("works/a"))
    assert code == 0
    objects = stored(s3, "works/a")
    sums = objects.pop("SHA256SUMS").decode()
    assert objects == local(export)
    listed = dict(reversed(line.split("  ")) for line in sums.splitlines())
    assert listed == {name: hashlib.sha256(data).hexdigest() for name, data in objects.items()}
    puts = [r for r in s3.gate.requests if r.startswith("PUT /models/works/a/")]
    assert "SHA256SUMS" in puts[-1]
    assert delivered["where"] == "s3://models/works/a"
    assert delivered["url"] == f"{s3.gate.url}/models/works/a/"
    assert delivered["bytes_sent"] == sum(f["size"] for f in delivered["files"])
    for name, data in objects.items():  # the server has hashed them, too
        head = s3.client().head_object(Bucket="models", Key=f"works/a/{name}", ChecksumMode="ENABLED")
        assert head["ChecksumSHA256"] == checksum(data)
    phases = {e.data["phase"]: e.data for e in events(tmp_path) if e.kind == "progress"}
    assert list(phases) == ["send", "verify"]
    assert all(p["done"] == p["total"] for p in phases.values())


def test_what_is_there_is_compared_and_not_sent_again(s3: S3, export: Path, tmp_path: Path) -> None:
    deliver(tmp_path, export, s3.target("again"))
    parts = s3.gate.parts
    code, delivered = deliver(tmp_path, export, s3.target("again", part_megabytes=6))
    assert (code, delivered["already"], delivered["bytes_sent"]) == (0, True, 0)
    assert s3.gate.parts == parts > 0


def test_an_object_that_only_says_it_is_the_file_is_sent_again(s3: S3, export: Path, tmp_path: Path) -> None:
    deliver(tmp_path, export, s3.target("altered"))
    client, key = s3.client(), "altered/config.json"
    head = client.head_object(Bucket="models", Key=key)
    client.put_object(Bucket="models", Key=key, Body=b"x" * head["ContentLength"], Metadata=head["Metadata"])
    code, delivered = deliver(tmp_path, export, s3.target("altered"))
    assert (code, delivered["already"], delivered["bytes_sent"]) == (0, False, head["ContentLength"])
    assert stored(s3, "altered")["config.json"] == (export / "config.json").read_bytes()


def test_killed_in_the_middle_it_sends_no_part_twice(s3: S3, tmp_path: Path) -> None:
    export = make_export(tmp_path / "export", LARGE)
    before = s3.gate.parts
    s3.gate.only(3)
    process = start(tmp_path, describe(tmp_path, export, s3.target("killed")))
    until(lambda: s3.gate.parts == before + 3 or process.poll() is not None)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert unfinished(s3, "killed") == ["killed/a.safetensors"]
    assert "SHA256SUMS" not in stored(s3, "killed")
    s3.gate.open()
    code, delivered = deliver(tmp_path, export, s3.target("killed"))
    assert code == 0
    assert delivered["bytes_skipped"] >= 3 * 5 * MB
    assert delivered["bytes_sent"] + delivered["bytes_skipped"] == sum(f["size"] for f in delivered["files"])
    objects = stored(s3, "killed")
    assert objects["a.safetensors"] == (export / "a.safetensors").read_bytes()
    assert unfinished(s3, "killed") == []


def test_an_upload_of_other_content_is_not_taken_over(s3: S3, tmp_path: Path) -> None:
    export = make_export(tmp_path / "export", SMALL)
    client = s3.client()
    made = client.create_multipart_upload(Bucket="models", Key="taken/a.safetensors")
    client.upload_part(
        Bucket="models", Key="taken/a.safetensors", UploadId=made["UploadId"], PartNumber=1, Body=b"x" * 5 * MB
    )
    code, delivered = deliver(tmp_path, export, s3.target("taken"))
    assert (code, delivered["bytes_skipped"]) == (0, 0)
    assert unfinished(s3, "taken") == ["taken/a.safetensors"]


def test_a_source_changed_since_its_proof_ends_without_a_marker(s3: S3, tmp_path: Path) -> None:
    export = make_export(tmp_path / "export", SMALL)
    flip(export / "a.safetensors")
    code, finished = deliver(tmp_path, export, s3.target("flipped"))
    assert (code, finished["reason"]) == (1, "data")
    assert "a.safetensors: its contents changed since the proof" in finished["text"]
    assert "a.safetensors" not in stored(s3, "flipped")
    assert "SHA256SUMS" not in stored(s3, "flipped")
    assert unfinished(s3, "flipped") == []


def test_other_content_is_refused_and_replaced_where_asked(s3: S3, export: Path, tmp_path: Path) -> None:
    deliver(tmp_path, export, s3.target("other"))
    deliver(tmp_path, export, s3.target("other/deeper"))
    newer = make_export(tmp_path / "newer", {"config.json": 400, "model.safetensors": 1000}, seed=1)
    before = stored(s3, "other")
    code, finished = deliver(tmp_path, newer, s3.target("other"))
    assert (code, finished["reason"]) == (1, "configuration")
    assert finished["text"].startswith("target.prefix: s3://models/other holds other content: ")
    assert stored(s3, "other") == before
    code, delivered = deliver(tmp_path, newer, s3.target("other"), replace=True)
    assert (code, delivered["replaced"]) == (0, True)
    after = stored(s3, "other")
    assert {n for n in after if not n.startswith("deeper/")} == {*local(newer), "SHA256SUMS"}
    assert {n for n in after if n.startswith("deeper/")} == {n for n in before if n.startswith("deeper/")}


def test_what_no_delivery_put_there_is_never_deleted(s3: S3, export: Path, tmp_path: Path) -> None:
    s3.client().put_object(Bucket="models", Key="mine/notes.txt", Body=b"mine")
    for replace in (False, True):
        code, finished = deliver(tmp_path, export, s3.target("mine"), replace=replace)
        assert (code, finished["reason"]) == (1, "configuration")
        assert "notes.txt" in finished["text"]
    assert stored(s3, "mine") == {"notes.txt": b"mine"}


def test_endings_have_a_reason_and_a_way_out_and_no_secret(
    s3: S3, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(target: dict[str, Any]) -> tuple[str, str]:
        code, finished = deliver(tmp_path, export, target)
        assert code == 1
        assert os.environ.get("AWS_SECRET_ACCESS_KEY", "unset") not in text_of(tmp_path)
        return finished["reason"], finished["text"]

    reason, text = said(s3.target("ends", bucket="no-such-bucket"))
    assert (reason, "there is no bucket no-such-bucket" in text) == ("destination", True)
    for name, value in s3.keys["list"].items():
        monkeypatch.setenv(name, value)
    reason, text = said(s3.target("ends"))
    assert (reason, "Give these credentials s3:PutObject there." in text) == ("permission", True)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-and-secret")
    reason, text = said(s3.target("ends"))
    assert (reason, "does not take these credentials" in text) == ("credentials", True)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
    assert said(s3.target("ends"))[0] == "credentials"
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    reason, text = said(s3.target("ends"))
    assert (reason, "AWS_SECRET_ACCESS_KEY: this environment variable is not set" in text) == ("credentials", True)
    assert stored(s3, "ends") == {}


def test_a_network_that_is_not_there(s3: S3, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.deliver.s3.client.TRIES", 1)
    code, finished = deliver(tmp_path, export, s3.target("x", endpoint="http://127.0.0.1:9"))
    assert (code, finished["reason"]) == (1, "network")
    assert "http://127.0.0.1:9 can't be reached" in finished["text"]


def test_a_body_altered_on_the_way_is_refused_by_the_storage(s3: S3) -> None:
    target = S3Target.model_validate(s3.target("x"))
    with pytest.raises(errors.Failed, match="BadDigest") as caught, errors.heard(target):
        s3.client().put_object(Bucket="models", Key="x/y", Body=b"came", ChecksumSHA256=checksum(b"sent"))
    assert caught.value.reason == Reason.NETWORK


def test_a_request_to_stop_is_heeded_and_parts_stay(s3: S3, tmp_path: Path) -> None:
    export = make_export(tmp_path / "export", LARGE)
    before = s3.gate.parts
    s3.gate.only(2)
    process = start(tmp_path, describe(tmp_path, export, s3.target("stopped")))
    until(lambda: s3.gate.parts == before + 2 or process.poll() is not None)
    (tmp_path / "stop").touch()  # while two more parts are under way and stay so
    assert process.wait() == 1
    assert events(tmp_path)[-1].data["reason"] == "stopped_unsaved"
    assert unfinished(s3, "stopped") == ["stopped/a.safetensors"]


def test_without_the_library_the_way_out_is_named(
    s3: S3, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    code, finished = deliver(tmp_path, export, s3.target("x"))
    assert (code, finished["reason"]) == (1, "configuration")
    assert "pip install -r training/requirements-s3.txt" in finished["text"]


def test_parts_are_recognised_by_checksum_or_by_etag() -> None:
    part = Digests().add(b"data")
    etag = f'"{hashlib.md5(b"data").hexdigest()}"'
    assert part.is_that({"Size": 4, "ETag": etag})
    assert part.is_that({"Size": 4, "ETag": '"other"', "ChecksumSHA256": part.checksum})
    assert not part.is_that({"Size": 4, "ETag": etag, "ChecksumSHA256": "other"})
    assert not part.is_that({"Size": 5, "ETag": etag})
    assert not part.is_that({"Size": 4, "ETag": '"other"'})


def test_parts_stay_within_what_s3_takes() -> None:
    assert part_size(100, 32) == 32 * MB
    assert part_size(140 * 10**9, 32) == 32 * MB
    for size in (10**12, 5 * 10**12):
        assert size / part_size(size, 32) <= 10_000
        assert part_size(size, 32) % MB == 0


def test_answers_are_read_as_reasons() -> None:
    from botocore.exceptions import ClientError

    def reason(code: str, operation: str = "PutObject", **error: str) -> tuple[Reason, str]:
        failure = errors.of_answer(
            S3Target(bucket="models"), ClientError({"Error": {"Code": code, "Message": "m", **error}}, operation)
        )
        return failure.reason, str(failure)

    kind, text = reason("AuthorizationHeaderMalformed", Region="eu-west-3")
    assert (kind, text.endswith("Set region to eu-west-3.")) == (Reason.CONFIGURATION, True)
    assert reason("XMinioStorageFull")[0] == Reason.DISK_FULL
    assert reason("SlowDown")[0] == Reason.NETWORK
    assert "clock" in reason("RequestTimeTooSkewed")[1]
    kind, text = reason("SomethingNew")
    assert (kind, "AWS answered: An error occurred (SomethingNew)" in text) == (Reason.DESTINATION, True)
    assert "s3:ListBucketMultipartUploads" in reason("AccessDenied", "ListMultipartUploads")[1]
