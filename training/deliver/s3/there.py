"""What is under the prefix already: ours and the same, other content, or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...spec.deliver import S3Target
from ...spec.deliver.folder import SUMS, File
from ...spec.faults import Reason
from ..ends import failed, refuse
from ..source import BLOCK, Source
from .digests import Digests, parts
from .errors import heard

SHA256, PART = "shardboard-sha256", "shardboard-part"  # metadata of each object that a delivery puts
MANY = 1000  # objects of others: nobody wants these replaced
FEW = 3


@dataclass
class Present:
    """Names of objects right under the prefix. `same` says so of themselves by their metadata; contents come later."""

    same: dict[str, dict[str, Any]] = field(default_factory=dict)
    other: list[str] = field(default_factory=list)


def look(client: Any, target: S3Target, source: Source) -> Present:
    """List what is there; raise Failed where the storage won't tell."""
    present = Present()
    with heard(target):
        for name, size in _listed(client, target):
            file = next((f for f in source.all if f.name == name and f.size == size), None)
            head = (
                client.head_object(Bucket=target.bucket, Key=target.key(name), ChecksumMode="ENABLED") if file else {}
            )
            if file and head.get("Metadata", {}).get(SHA256) == file.sha256:
                present.same[name] = head
            else:
                present.other.append(name)
    return present


def judge(client: Any, target: S3Target, present: Present, *, replace: bool) -> None:
    """Raise Refused where something else is there that may not be replaced, before anything is sent."""
    other = present.other
    if not other:
        return
    shown = ", ".join(other[:FEW]) + (f" and {len(other) - FEW} more" if len(other) > FEW else "")
    if not replace:
        why = f"{target.place} holds other content: {shown}"
        raise refuse("target.prefix", why, "Choose another prefix, or set replace to true.")
    if len(other) > MANY or (foreign := _foreign(client, target, other)):
        why = f"{target.place} holds objects that no delivery put there: {shown if len(other) > MANY else foreign}"
        raise refuse("target.prefix", why, "Choose another prefix, or delete them yourself.")


def clear(client: Any, target: S3Target, names: list[str]) -> None:
    """Delete objects that earlier deliveries put there."""
    with heard(target):
        for name in names:
            client.delete_object(Bucket=target.bucket, Key=target.key(name))


def measure(source: Source, file: File, head: dict[str, Any], size: int) -> Digests:
    """Return the file's hashes in the parts that the object was sent in."""
    digests = Digests()
    said = str(head.get("Metadata", {}).get(PART, ""))
    for _ in parts(source, file, int(said) if said.isdecimal() and int(said) else size, digests):
        pass
    return digests


def agrees(client: Any, target: S3Target, file: File, head: dict[str, Any], digests: Digests) -> bool:
    """Whether the object is the file, by the storage's own hash of it; it is read back where there is none."""
    if head.get("ContentLength") != file.size:
        return False
    if said := head.get("ChecksumSHA256"):
        return said in digests.checksums
    if str(head.get("ETag", "")).strip('"') in digests.etags:
        return True
    return _read_back(client, target, file) == file.sha256


def head_of(client: Any, target: S3Target, file: File) -> dict[str, Any]:
    with heard(target):
        found: dict[str, Any] = client.head_object(
            Bucket=target.bucket, Key=target.key(file.name), ChecksumMode="ENABLED"
        )
    return found


def check(client: Any, target: S3Target, file: File, digests: Digests, on_bytes: Callable[[int], None]) -> None:
    """Raise Failed unless the object that is there now is the file."""
    if not agrees(client, target, file, head_of(client, target, file), digests):
        why = f"{target.key(file.name)} has other contents than were sent"
        raise failed(Reason.DESTINATION, "target", why, "See who else writes there, and deliver again.")
    on_bytes(file.size)


def _listed(client: Any, target: S3Target) -> list[tuple[str, int]]:
    """Return the objects right under the prefix, SHA256SUMS last; what lies deeper is another's."""
    start = f"{target.prefix}/" if target.prefix else ""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=target.bucket, Prefix=start, Delimiter="/")
    found = [(str(o["Key"])[len(start) :], int(o["Size"])) for page in pages for o in page.get("Contents", ())]
    return sorted(((name, size) for name, size in found if name), key=lambda entry: (entry[0] == SUMS, entry[0]))


def _foreign(client: Any, target: S3Target, names: list[str]) -> str:
    with heard(target):
        for name in names:
            head = client.head_object(Bucket=target.bucket, Key=target.key(name))
            if SHA256 not in head.get("Metadata", {}):
                return name
    return ""


def _read_back(client: Any, target: S3Target, file: File) -> str:
    digest = hashlib.sha256()
    with heard(target):
        body = client.get_object(Bucket=target.bucket, Key=target.key(file.name))["Body"]
        for block in body.iter_chunks(BLOCK):
            digest.update(block)
    return digest.hexdigest()
