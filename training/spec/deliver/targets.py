"""Where an export goes: a folder, S3-compatible storage or a hub. No secret is a field here."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from ..addresses import problem_with
from ..job import Part
from .folder import WORKING
from .words import wrong

HUB = "https://huggingface.co"
PREFIX_BYTES = 700  # of the 1024 that a key may have: file names follow
# Names that AWS keeps for itself: docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
NO_BUCKET_BEGINS = ("xn--", "sthree-", "amzn-s3-demo-")
NO_BUCKET_ENDS = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
REGION = re.compile(r"[a-z0-9-]{1,40}")
# As huggingface_hub.utils.validate_repo_id has it.
REPO = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}")


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
            raise wrong("it is a relative path", "Write a path that begins with /.")
        if ".." in path.parts or not folder.isprintable():
            raise wrong("it holds .. or a character that can't be printed", "Write the folder's own path.")
        if len(path.parts) < 2 or folder.startswith("//"):
            raise wrong("it names no folder of its own", "Name a folder below another, such as /models/name.")
        if path.name.endswith(WORKING) or len(path.name.encode()) > 200:
            raise wrong(f"its name ends with {WORKING}, or is longer than 200 bytes", "Choose another name.")
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
            raise wrong("it is no name of a region", "Write one such as eu-central-1.")
        return region

    @field_validator("bucket")
    @classmethod
    def _bucket(cls, bucket: str) -> str:
        if not BUCKET.fullmatch(bucket) or ".." in bucket or re.fullmatch(r"[0-9.]+", bucket):
            reason = "it is no bucket's name: 3 to 63 small letters, digits, dots and hyphens, no address"
            raise wrong(reason, "Write the name alone, without s3:// and without a prefix.")
        if bucket.startswith(NO_BUCKET_BEGINS) or bucket.endswith(NO_BUCKET_ENDS):
            raise wrong("names of this form are kept by AWS for itself", "Choose another bucket.")
        return bucket

    @field_validator("prefix")
    @classmethod
    def _prefix(cls, prefix: str) -> str:
        if prefix.startswith("/"):
            raise wrong("it begins with a slash", "Write it without: models/name.")
        parts = prefix.removesuffix("/").split("/")
        if prefix and (not _plain(prefix) or any(part in ("", ".", "..") for part in parts)):
            raise wrong("it holds an empty part, . or .., or a character that can't be printed", "Write a/b/c.")
        if len(prefix.encode()) > PREFIX_BYTES:
            raise wrong(f"it is longer than {PREFIX_BYTES} bytes", "Choose a shorter one.")
        return prefix.removesuffix("/")

    @model_validator(mode="after")
    def _address(self) -> S3Target:
        if self.endpoint and (problem := problem_with("endpoint", self.endpoint, insecure=self.insecure)):
            raise wrong(f"endpoint: {problem.reason}", problem.fix)
        if "." in self.bucket and not self.path_style and not self.endpoint.startswith("http:"):
            reason = "bucket: a certificate of *.host covers no name with further dots"
            raise wrong(reason, "Set path_style to true, or choose a bucket without dots.")
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
            raise wrong("it is no name of a repository", "Write organisation/name, not an address.")
        if "--" in repo or ".." in repo or repo.endswith((".git", ".ipynb")) or max(map(len, parts)) > 96:
            reason = "it holds -- or .., ends with .git or .ipynb, or has more than 96 characters in a part"
            raise wrong(reason, "Choose another name.")
        return repo

    @field_validator("branch")
    @classmethod
    def _branch(cls, branch: str) -> str:
        bad = ".." in branch or "//" in branch or "/." in branch or branch.endswith(("/", ".", ".lock"))
        if bad or not BRANCH.fullmatch(branch):
            raise wrong("it is no name of a branch", "Write one such as main.")
        return branch

    @model_validator(mode="after")
    def _address(self) -> HubTarget:
        if self.endpoint and (problem := problem_with("endpoint", self.endpoint, insecure=self.insecure, path=True)):
            raise wrong(f"endpoint: {problem.reason}", problem.fix)
        return self

    @property
    def place(self) -> str:
        return self.repo if self.branch == "main" else f"{self.repo}@{self.branch}"


Target = Annotated[PathTarget | S3Target | HubTarget, Field(discriminator="kind")]
