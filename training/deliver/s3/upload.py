"""One file becomes one object: in one request, or in parts of which an earlier try may have brought some."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from ...progress import Meter
from ...spec.deliver import S3Target
from ...spec.deliver.folder import File
from ...spec.faults import Reason
from ..ends import Failed
from ..result import Delivered, Teller
from ..source import Source, changed
from .digests import Digests, Part, part_size, parts
from .errors import Unheard, heard
from .there import PART, SHA256

FLIGHT = 4  # parts under way at once, and so in memory
LOOK_SECONDS = 0.5  # between two looks for a request to stop
# An upload that nobody can go on with: of these ends another try would send the same again, or nothing.
NO_RESUME = (Reason.CONFIGURATION, Reason.DATA)
WITHOUT_RESUME = ("AccessDenied", "403", "NotImplemented", "MethodNotAllowed", "501")


@dataclass
class Uploader:
    """Sends files to one target and counts what was sent and what was there."""

    client: Any
    target: S3Target
    source: Source
    result: Delivered
    teller: Teller
    meter: Meter

    def send(self, file: File) -> Digests:
        """Send one file; return its hashes. Raises Failed where the storage refuses it, or the source changed."""
        size = part_size(file.size, self.target.part_megabytes)
        if file.size <= size:
            return self._whole(file, size)
        upload = _Multipart(self, file, size)
        try:
            return upload.run()
        except Failed as error:
            if error.reason in NO_RESUME:
                upload.abort()
            raise

    def named(self, file: File) -> dict[str, Any]:
        return {"Bucket": self.target.bucket, "Key": self.target.key(file.name)}

    def described(self, file: File, size: int) -> dict[str, Any]:
        metadata = {SHA256: file.sha256, PART: str(size)}
        return {**self.named(file), "ChecksumAlgorithm": "SHA256", "Metadata": metadata}

    def _whole(self, file: File, size: int) -> Digests:
        digests = Digests()
        (part,) = parts(self.source, file, size, digests)
        if digests.whole.hexdigest() != file.sha256:
            raise changed(file)
        with heard(self.target):
            self.client.put_object(**self.described(file, size), Body=part.data, ChecksumSHA256=part.checksum)
        self.result.bytes_sent += file.size
        self.meter.add(file.size)
        return digests


@dataclass
class _Multipart:
    """An upload in parts. `done`: what CompleteMultipartUpload wants to know of each part."""

    to: Uploader
    file: File
    size: int
    upload: str = ""
    done: dict[int, dict[str, Any]] = field(default_factory=dict)

    def run(self) -> Digests:
        digests = Digests()
        self.upload, there = self._resumed()
        if not self.upload:
            with heard(self.to.target):
                made = self.to.client.create_multipart_upload(**self.to.described(self.file, self.size))
            self.upload = made["UploadId"]
        self._send_parts(digests, there)
        if digests.whole.hexdigest() != self.file.sha256:
            raise changed(self.file)
        self._complete()
        return digests

    def abort(self) -> None:
        """Let the storage forget the parts, which cost money; where it can't be told that stays so."""
        if self.upload:
            try:
                with heard(self.to.target):
                    self.to.client.abort_multipart_upload(**self.to.named(self.file), UploadId=self.upload)
            except Failed as error:
                self.to.teller.warn(f"an upload in parts of {self.file.name} was begun and not taken back: {error}")

    def _send_parts(self, digests: Digests, there: dict[int, dict[str, Any]]) -> None:
        flying: dict[Future[dict[str, Any]], Part] = {}
        pool = ThreadPoolExecutor(FLIGHT)
        try:
            for part in parts(self.to.source, self.file, self.size, digests):
                answer = there.get(part.number)
                if answer and part.is_that(answer):
                    self._note(part, answer)
                    self.to.result.bytes_skipped += len(part.data)
                    self.to.meter.add(len(part.data))
                    continue
                flying[pool.submit(self._send_part, part)] = part
                del part
                while len(flying) >= FLIGHT:
                    self._land(flying)
            while flying:
                self._land(flying)
        except BaseException as error:
            # asked to stop: not after the minute that the network may need to give a part up
            pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
            raise
        pool.shutdown()

    def _send_part(self, part: Part) -> dict[str, Any]:
        with heard(self.to.target):
            answer: dict[str, Any] = self.to.client.upload_part(
                **self.to.named(self.file),
                UploadId=self.upload,
                PartNumber=part.number,
                Body=part.data,
                ChecksumAlgorithm="SHA256",
                ChecksumSHA256=part.checksum,
            )
        return answer

    def _land(self, flying: dict[Future[dict[str, Any]], Part]) -> None:
        """Wait for one part or more, and for requests to stop."""
        landed, _ = wait(flying, LOOK_SECONDS, FIRST_COMPLETED)
        self.to.meter.add(0)
        for future in landed:
            part = flying.pop(future)
            self._note(part, future.result())
            self.to.result.bytes_sent += len(part.data)
            self.to.meter.add(len(part.data))

    def _note(self, part: Part, answer: dict[str, Any]) -> None:
        self.done[part.number] = {
            "PartNumber": part.number, "ETag": answer["ETag"], "ChecksumSHA256": part.checksum
        }  # fmt: skip

    def _complete(self) -> None:
        listed = [self.done[number] for number in sorted(self.done)]
        with heard(self.to.target):
            self.to.client.complete_multipart_upload(
                **self.to.named(self.file), UploadId=self.upload, MultipartUpload={"Parts": listed}
            )

    def _resumed(self) -> tuple[str, dict[int, dict[str, Any]]]:
        """Return the upload to go on with and its parts; ("", {}) where there is none.

        Its id is kept by the storage alone: a new job on another node finds it too. Nobody else's upload is taken
        over: one counts only with a first part that is ours.
        """
        first = next(iter(parts(self.to.source, self.file, self.size, Digests())))
        for upload in self._uploads():
            there = self._parts(upload)
            if 1 in there and first.is_that(there[1]):
                return upload, there
        return "", {}

    def _uploads(self) -> list[str]:
        key = self.to.target.key(self.file.name)
        try:
            with heard(self.to.target, WITHOUT_RESUME):
                pages = self.to.client.get_paginator("list_multipart_uploads").paginate(
                    Bucket=self.to.target.bucket, Prefix=key
                )
                found = [u for page in pages for u in page.get("Uploads", ()) if u["Key"] == key]
        except Unheard:
            self.to.teller.warn("this storage does not list uploads in parts: after a kill all parts are sent again")
            return []
        return [str(u["UploadId"]) for u in sorted(found, key=lambda u: str(u.get("Initiated", "")), reverse=True)]

    def _parts(self, upload: str) -> dict[int, dict[str, Any]]:
        with heard(self.to.target):
            pages = self.to.client.get_paginator("list_parts").paginate(**self.to.named(self.file), UploadId=upload)
            return {int(p["PartNumber"]): p for page in pages for p in page.get("Parts", ())}
