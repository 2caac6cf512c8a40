"""Where an export goes: a folder, S3-compatible storage or a hub; and the job that brings it there.

No secret is a field here: `SECRETS` names the environment variables that hold them on the node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from .addresses import problem_with
from .job import Part
from .lint import Problem, Refused

HUB = "https://huggingface.co"
WORKING = ".delivery"  # what the names of a delivery's own working folders end with
PREFIX_BYTES = 700  # of the 1024 that a key may have: file names follow
# Names that AWS keeps for itself: docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
NO_BUCKET_BEGINS = ("xn--", "sthree-", "amzn-s3-demo-")
NO_BUCKET_ENDS = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
REGION = re.compile(r"[a-z0-9-]{1,40}")
# As huggingface_hub.utils.validate_repo_id has it.
REPO = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}")

# kind of target: (variables that it needs, variables that it also reads)
SECRETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "path": ((), ()),
    "s3": (("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), ("AWS_SESSION_TOKEN",)),
    "hub": (("HF_TOKEN",), ()),
}
WORDS_OF_SECRETS = ("secret", "token", "password", "access_key", "credential")


def _wrong(reason: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("delivery", "{reason}", {"reason": reason, "fix": fix})


def _plain(text: str) -> bool:
    return text.isprintable() and "\\" not in text


class PathTarget(Part):
    """A folder on the node, or on storage that is mounted there. It appears under its name only when whole."""

    kind: Literal["path"] = "path"
    folder: str = Field(description="Absolute path on the node; the folder above it must be there.")

    @field_validator("folder")
    @classmethod
    def _folder(cls, folder: str) -> str:
        path = PurePosixPath(folder)
        if not folder.startswith("/"):
            raise _wrong("it is a relative path", "Write a path that begins with /.")
        if ".." in path.parts or not folder.isprintable():
            raise _wrong("it holds .. or a character that can't be printed", "Write the folder's own path.")
        if len(path.parts) < 2 or folder.startswith("//"):
            raise _wrong("it names no folder of its own", "Name a folder below another, such as /models/name.")
        if path.name.endswith(WORKING) or len(path.name.encode()) > 200:
            raise _wrong(f"its name ends with {WORKING}, or is longer than 200 bytes", "Choose another name.")
        return str(path)

    @property
    def place(self) -> str:
        return self.folder


class S3Target(Part):
    """A prefix in a bucket of S3 or of anything that speaks its protocol."""

    kind: Literal["s3"] = "s3"
    endpoint: str = Field("", description="URL of an S3-compatible storage; empty: AWS's own for the region.")
    region: str = Field("us-east-1", description="Region that requests are signed for.")
    bucket: str
    prefix: str = Field("", description="What the objects' names begin with, without a slash at either end.")
    part_megabytes: int = Field(32, ge=5, le=512, description="Files beyond it go in parts of it, a few at a time.")
    path_style: bool = Field(False, description="host/bucket in place of bucket.host: most storage that is not AWS.")
    insecure: bool = Field(False, description="Allow plain http beyond this machine and private networks.")

    @field_validator("region")
    @classmethod
    def _region(cls, region: str) -> str:
        if not REGION.fullmatch(region):
            raise _wrong("it is no name of a region", "Write one such as eu-central-1.")
        return region

    @field_validator("bucket")
    @classmethod
    def _bucket(cls, bucket: str) -> str:
        if not BUCKET.fullmatch(bucket) or ".." in bucket or re.fullmatch(r"[0-9.]+", bucket):
            reason = "it is no bucket's name: 3 to 63 small letters, digits, dots and hyphens, no address"
            raise _wrong(reason, "Write the name alone, without s3:// and without a prefix.")
        if bucket.startswith(NO_BUCKET_BEGINS) or bucket.endswith(NO_BUCKET_ENDS):
            raise _wrong("names of this form are kept by AWS for itself", "Choose another bucket.")
        return bucket

    @field_validator("prefix")
    @classmethod
    def _prefix(cls, prefix: str) -> str:
        if prefix.startswith("/"):
            raise _wrong("it begins with a slash", "Write it without: models/name.")
        parts = prefix.removesuffix("/").split("/")
        if prefix and (not _plain(prefix) or any(part in ("", ".", "..") for part in parts)):
            raise _wrong("it holds an empty part, . or .., or a character that can't be printed", "Write a/b/c.")
        if len(prefix.encode()) > PREFIX_BYTES:
            raise _wrong(f"it is longer than {PREFIX_BYTES} bytes", "Choose a shorter one.")
        return prefix.removesuffix("/")

    @model_validator(mode="after")
    def _address(self) -> S3Target:
        if self.endpoint and (problem := problem_with("endpoint", self.endpoint, insecure=self.insecure)):
            raise _wrong(f"endpoint: {problem.reason}", problem.fix)
        if "." in self.bucket and not self.path_style and not self.endpoint.startswith("http:"):
            reason = "bucket: a certificate of *.host covers no name with further dots"
            raise _wrong(reason, "Set path_style to true, or choose a bucket without dots.")
        return self

    def key(self, name: str) -> str:
        """Return the object's name for a file of the export."""
        return f"{self.prefix}/{name}" if self.prefix else name

    @property
    def place(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


class HubTarget(Part):
    """A model repository of a hub. Each delivery is one commit; what other files it has stay."""

    kind: Literal["hub"] = "hub"
    endpoint: str = Field("", description=f"URL of the hub; empty: HF_ENDPOINT of the node, else {HUB}.")
    repo: str = Field(description="organisation/name")
    private: bool = Field(True, description="Whether a repository that is made for this is private.")
    branch: str = Field("main", description="Branch that the commit goes to; made where it is missing.")
    insecure: bool = Field(False, description="Allow plain http beyond this machine and private networks.")

    @field_validator("repo")
    @classmethod
    def _repo(cls, repo: str) -> str:
        parts = repo.split("/")
        if len(parts) != 2 or not all(REPO.fullmatch(part) for part in parts):
            raise _wrong("it is no name of a repository", "Write organisation/name, not an address.")
        if "--" in repo or ".." in repo or repo.endswith((".git", ".ipynb")) or max(map(len, parts)) > 96:
            reason = "it holds -- or .., ends with .git or .ipynb, or has more than 96 characters in a part"
            raise _wrong(reason, "Choose another name.")
        return repo

    @field_validator("branch")
    @classmethod
    def _branch(cls, branch: str) -> str:
        bad = ".." in branch or "//" in branch or "/." in branch or branch.endswith(("/", ".", ".lock"))
        if bad or not BRANCH.fullmatch(branch):
            raise _wrong("it is no name of a branch", "Write one such as main.")
        return branch

    @model_validator(mode="after")
    def _address(self) -> HubTarget:
        if self.endpoint and (problem := problem_with("endpoint", self.endpoint, insecure=self.insecure, path=True)):
            raise _wrong(f"endpoint: {problem.reason}", problem.fix)
        return self

    @property
    def place(self) -> str:
        return self.repo if self.branch == "main" else f"{self.repo}@{self.branch}"


Target = Annotated[PathTarget | S3Target | HubTarget, Field(discriminator="kind")]


class DeliverJob(Part):
    """recipe.json of a delivery."""

    source: str = Field(description="Folder of an export that is proven: proof.json in it names its files.")
    target: Target
    replace: bool = Field(
        False, description="Let other content under the same name go; a folder stays until the new one is in its place."
    )
    events: str = Field(description="File that the events are appended to.")

    @model_validator(mode="after")
    def _apart(self) -> DeliverJob:
        if isinstance(self.target, PathTarget):
            source, folder = PurePosixPath(self.source), PurePosixPath(self.target.folder)
            if source == folder or source in folder.parents or folder in source.parents:
                raise _wrong("target.folder: it is the export's own folder, in it, or around it", "Choose another.")
        return self


_TARGET: TypeAdapter[PathTarget | S3Target | HubTarget] = TypeAdapter(Target)


def parse_target(data: Mapping[str, Any]) -> PathTarget | S3Target | HubTarget:
    """Return the destination that `data` describes; raise Refused with every problem at once."""
    try:
        return _TARGET.validate_python(dict(data))
    except ValidationError as error:
        raise _refused(error, "target") from None


def parse_job(text: str | bytes) -> DeliverJob:
    """Return the job that the JSON `text` describes; raise Refused with every problem at once."""
    try:
        return DeliverJob.model_validate(json.loads(text))
    except ValidationError as error:
        raise _refused(error, "job") from None
    except (ValueError, RecursionError):
        raise Refused([Problem("job", "it is no JSON", 'Write {"source": ..., "target": ...}.')]) from None


def missing_secrets(kind: str, env: Mapping[str, str]) -> list[Problem]:
    """Return a problem for each environment variable that a target of this kind needs and `env` lacks."""
    return [
        Problem(name, "this environment variable is not set", "Set it where the delivery runs; never in the job file.")
        for name in SECRETS[kind][0]
        if not env.get(name)
    ]


def _refused(error: ValidationError, whole: str) -> Refused:
    return Refused([_problem(e, whole) for e in error.errors(include_url=False, include_input=False)])


def _problem(error: Any, whole: str) -> Problem:
    """Return the problem; what was given is not repeated, for a secret may be in it."""
    location = [str(part) for part in error["loc"] if part not in SECRETS]
    field = ".".join(location) or whole
    if error["type"] == "delivery":
        return _ours(field, error["ctx"]["reason"], error["ctx"]["fix"], whole)
    if error["type"] == "extra_forbidden" and any(word in location[-1].lower() for word in WORDS_OF_SECRETS):
        names = ", ".join(name for needed, also in SECRETS.values() for name in (*needed, *also))
        return Problem(field, "a secret is no field of a destination", f"Remove it; the node reads {names}.")
    if error["type"] == "extra_forbidden":
        return Problem(field, "unknown field", "Remove it.")
    if error["type"].startswith("union_tag"):
        return Problem(f"{field}.kind" if field != whole else "kind", "no such kind", "Choose path, s3 or hub.")
    return Problem(field, str(error["msg"])[:1].lower() + str(error["msg"])[1:], "Change the value.")


def _ours(field: str, reason: str, fix: str, whole: str) -> Problem:
    """A rule between fields names the one that it is about at the beginning of its reason."""
    name, colon, rest = reason.partition(": ")
    if colon and re.fullmatch(r"[a-z_.]+", name):
        return Problem(name if field == whole else f"{field}.{name}", rest, fix)
    return Problem(field, reason, fix)
