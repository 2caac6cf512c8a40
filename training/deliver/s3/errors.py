"""What the storage answers, as a reason, a sentence and a way out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...spec.deliver import SECRETS, S3Target
from ...spec.faults import Reason
from ..ends import Failed, failed, words

# docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, and MinIO's own; a HEAD has its status alone
CODES_OF = {
    Reason.CREDENTIALS: "InvalidAccessKeyId SignatureDoesNotMatch InvalidToken ExpiredToken TokenRefreshRequired"
    " InvalidSecurity AuthFailure NotSignedUp 401",
    Reason.PERMISSION: "AccessDenied AllAccessDisabled AccountProblem MethodNotAllowed 403",
    Reason.DESTINATION: "NoSuchBucket 404",
    Reason.CONFIGURATION: "PermanentRedirect AuthorizationHeaderMalformed IllegalLocationConstraintException 301 400"
    " RequestTimeTooSkewed InvalidBucketName",
    Reason.DISK_FULL: "QuotaExceeded ServiceQuotaExceededException XMinioStorageFull XMinioAdminBucketQuotaExceeded"
    " InsufficientStorage InsufficientCapacity 507",
    Reason.NETWORK: "SlowDown InternalError ServiceUnavailable RequestTimeout OperationAborted 500 502 503 504"
    " BadDigest InvalidDigest XAmzContentSHA256Mismatch XAmzContentChecksumMismatch IncompleteBody NoSuchUpload",
}
CODES = {code: reason for reason, codes in CODES_OF.items() for code in codes.split()}
ACTIONS = {
    "ListObjectsV2": "s3:ListBucket",
    "HeadObject": "s3:GetObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListParts": "s3:ListMultipartUploadParts",
}
AGAIN = "Deliver again: what has arrived stays and is not sent twice."


class Unheard(Exception):
    """An answer that the caller said it can do without."""


@contextmanager
def heard(target: S3Target, without: Sequence[str] = ()) -> Iterator[None]:
    """Raise Failed in place of whatever the storage, or the way there, answers in the block.

    Raise Unheard where the answer's code is one of `without`.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        if code_of(error) in without:
            raise Unheard from None
        raise of_answer(target, error) from None
    except BotoCoreError as error:
        raise _of_way(target, error) from None


def code_of(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def of_answer(target: S3Target, error: Any) -> Failed:
    """Return the failure that an error of the storage means."""
    code, said = code_of(error), words(error)
    status = str(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))
    reason = CODES.get(code) or (CODES.get(status) if status != "404" else None) or Reason.DESTINATION
    where = target.endpoint or "AWS"
    if code == "NoSuchBucket" or (code == "404" and error.operation_name == "ListObjectsV2"):
        return failed(
            reason, "target.bucket", f"there is no bucket {target.bucket} at {where}", "Make it, or correct it."
        )
    if reason == Reason.CREDENTIALS:
        names = " and ".join(SECRETS["s3"][0])
        return failed(reason, names, f"{where} does not take these credentials ({code})", "Set them anew.")
    if reason == Reason.PERMISSION:
        action = ACTIONS.get(error.operation_name, f"s3:{error.operation_name}")
        why = f"{where} does not allow {action} in {target.place}"
        return failed(reason, "target.bucket", why, f"Give these credentials {action} there.")
    if code == "RequestTimeTooSkewed":
        return failed(reason, "clock", f"this node's clock is too far from {where}'s", "Set it right.")
    if reason == Reason.CONFIGURATION:
        region = error.response.get("Error", {}).get("Region") or _header(error, "x-amz-bucket-region")
        fix = f"Set region to {region}." if region else "See that region, bucket and path_style fit this storage."
        return failed(reason, "target.region", said, fix)
    if reason == Reason.DISK_FULL:
        return failed(reason, "target.bucket", f"{where} has no room left: {said}", "Free space there.")
    return failed(
        reason, "target", f"{where} answered: {said}", AGAIN if reason == Reason.NETWORK else "See its words."
    )


def _header(error: Any, name: str) -> str:
    return str(error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get(name, ""))


def _of_way(target: S3Target, error: Exception) -> Failed:
    from botocore.exceptions import SSLError

    where = target.endpoint or f"AWS, region {target.region}"
    if isinstance(error, SSLError):
        why = f"no secure connection to {where}: {words(error)}"
        return failed(Reason.NETWORK, "target.endpoint", why, "See its certificate, and whether it speaks https.")
    return failed(Reason.NETWORK, "target.endpoint", f"{where} can't be reached: {words(error)}", AGAIN)
