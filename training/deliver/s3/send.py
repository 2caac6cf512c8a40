"""All of an export to a bucket: weights first, SHA256SUMS last, so that a prefix with it is whole.

Needs s3:ListBucket, s3:GetObject and s3:PutObject; s3:ListBucketMultipartUploads, s3:ListMultipartUploadParts and
s3:AbortMultipartUpload to go on after a kill; s3:DeleteObject to replace.
"""

from __future__ import annotations

from typing import Any

from ...spec.deliver import S3Target
from ...spec.deliver.folder import SUMS, File
from ..result import Delivered, Teller
from ..source import Source
from . import there
from .client import connect
from .digests import Digests, part_size
from .upload import Uploader


def send(source: Source, target: S3Target, teller: Teller, *, replace: bool) -> Delivered:
    """Send what is not there; raise Refused before anything is sent, Failed afterwards."""
    client = connect(target)
    result = Delivered(where=target.place, url=_url(target))
    present = there.look(client, target, source)
    there.judge(client, target, present, replace=replace)
    meter = teller.meter("send", source.size)
    if SUMS in present.other or (SUMS in present.same and len(present.same) < len(source.all)):
        there.clear(client, target, [SUMS])  # not whole from here on
        present.same.pop(SUMS, None)
    uploader = Uploader(client, target, source, result, teller, meter)
    known = {file.name: _arrive(uploader, file, present) for file in source.files}
    _verify(client, target, source, known, teller)
    there.clear(client, target, stale := [n for n in present.other if n not in {f.name for f in source.all}])
    marker = _arrive(uploader, source.marker, present)
    there.check(client, target, source.marker, marker, lambda size: None)
    meter.tell()
    result.replaced = bool(stale or present.other)
    result.already = not result.bytes_sent
    result.note = "it was there already" if result.already else ""
    return result


def _arrive(to: Uploader, file: File, present: there.Present) -> Digests:
    """Send the file unless the object that says it is the file is it, by the storage's own hash."""
    head = present.same.get(file.name)
    if head is not None:
        digests = there.measure(to.source, file, head, part_size(file.size, to.target.part_megabytes))
        right = digests.whole.hexdigest() == file.sha256
        if right and there.agrees(to.client, to.target, file, head, digests):
            to.result.bytes_skipped += file.size
            to.meter.add(file.size)
            return digests
    return to.send(file)


def _verify(client: Any, target: S3Target, source: Source, known: dict[str, Digests], teller: Teller) -> None:
    meter = teller.meter("verify", sum(file.size for file in source.files))
    for file in source.files:
        there.check(client, target, file, known[file.name], meter.add)
    meter.tell()


def _url(target: S3Target) -> str:
    if not target.endpoint:
        host = f"https://{target.bucket}.s3.{target.region}.amazonaws.com"
    elif target.path_style:
        host = f"{target.endpoint.rstrip('/')}/{target.bucket}"
    else:
        scheme, _, rest = target.endpoint.rstrip("/").partition("://")
        host = f"{scheme}://{target.bucket}.{rest}"
    return f"{host}/{target.prefix}/" if target.prefix else f"{host}/"
