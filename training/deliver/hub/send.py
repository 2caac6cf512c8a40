"""All of an export as one commit. Every file is hashed and compared with the proof before anything is sent.

A repository that has other content is not refused: a commit on top is what it is for, and its history keeps the rest.
"""

from __future__ import annotations

import hashlib
import io
import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from ...spec.addresses import problem_with
from ...spec.deliver import HUB, HubTarget
from ...spec.faults import Reason
from ...spec.lint import Refused
from ..ends import failed, refuse
from ..result import Delivered, Teller
from ..source import Source, changed
from .counted import Counted
from .errors import heard

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
YES = ("1", "true", "yes", "on")
KEPT = ".gitattributes"  # made by the hub itself
SMALL = 16 << 20  # bytes; no hub keeps a larger file as git does
MESSAGE = "Model exported by Shardboard"


def send(source: Source, target: HubTarget, teller: Teller, *, replace: bool) -> Delivered:
    """Commit what is not there; raise Refused or Failed."""
    for name in OFFLINE:
        if os.environ.get(name, "").lower() in YES:
            raise refuse(
                name, "it is set, so that nothing may reach a hub from here", "Take it out of the environment."
            )
    endpoint = _endpoint(target)
    with ExitStack() as files:
        return _Push(source, target, teller, replace, files, endpoint).run()


@dataclass
class _Push:
    source: Source
    target: HubTarget
    teller: Teller
    replace: bool
    files: ExitStack
    endpoint: str

    def run(self) -> Delivered:
        self.api = _api(self.endpoint)
        adds = self._checked()
        with heard(self.target, self.endpoint):
            head = self._repository()
            there = self._there(head)
        result = Delivered(where=self.target.place, revision=head)
        missing = [add for add in adds if there.get(add.path_in_repo) not in _names_of(add)]
        stale = sorted(there.keys() - {file.name for file in self.source.all} - {KEPT})
        self._push(missing, adds, stale, head, result)
        result.url = f"{self.endpoint}/{self.target.repo}/tree/{result.revision}"
        result.already = not missing and not result.replaced
        result.note = self._note(result, stale)
        return result

    def _checked(self) -> list[Any]:
        """Return what is to be added; raise Failed where a file isn't what was proven."""
        from huggingface_hub import CommitOperationAdd

        meter = self.teller.meter("check", self.source.size)
        adds = []
        for file in self.source.all:
            raw = io.BytesIO(self.source.sums) if file == self.source.marker else self.source.open(file)
            opened = self.files.enter_context(Counted(raw, meter.add))
            add = CommitOperationAdd(path_in_repo=file.name, path_or_fileobj=opened)  # hashes it
            if add.upload_info.sha256.hex() != file.sha256:
                raise changed(file)
            adds.append(add)
        meter.tell()
        return adds

    def _repository(self) -> str:
        """Return the newest revision of the branch; repository and branch are made where they are missing."""
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

        try:
            info = self.api.repo_info(self.target.repo)
        except RepositoryNotFoundError as error:
            if error.response.status_code == 401:
                raise
            self.api.create_repo(self.target.repo, private=self.target.private, exist_ok=True)
            info = self.api.repo_info(self.target.repo)
        if self.target.private and not info.private:
            why = f"{self.target.repo} is there and public"
            raise refuse("target.private", why, "Choose another repository, or set private to false.")
        try:
            return str(self.api.repo_info(self.target.repo, revision=self.target.branch).sha)
        except RevisionNotFoundError:
            self.api.create_branch(self.target.repo, branch=self.target.branch, exist_ok=True)
            return str(self.api.repo_info(self.target.repo, revision=self.target.branch).sha)

    def _there(self, revision: str) -> dict[str, str]:
        """Return {name: SHA-256 of a large file, git's hash of a small one} of the files at the root."""
        from huggingface_hub import RepoFile

        entries = self.api.list_repo_tree(self.target.repo, revision=revision)
        return {e.path: e.lfs.sha256 if e.lfs else e.blob_id for e in entries if isinstance(e, RepoFile)}

    def _push(self, missing: list[Any], adds: list[Any], stale: list[str], head: str, result: Delivered) -> None:
        from huggingface_hub import CommitOperationDelete

        meter = self.teller.meter("send", self.source.size)
        result.bytes_skipped = sum(add.upload_info.size for add in adds if add not in missing)
        meter.add(result.bytes_skipped)
        for add in missing:
            self._upload(add, meter, result)
        gone = [CommitOperationDelete(name) for name in stale] if self.replace else []
        if missing or gone:
            with heard(self.target, self.endpoint):
                commit = self.api.create_commit(
                    self.target.repo, [*missing, *gone], commit_message=MESSAGE,
                    revision=self.target.branch, parent_commit=head,
                )  # fmt: skip
            result.revision, result.replaced = str(commit.oid), bool(gone)
            self._verify(adds, result.revision)
        meter.tell()

    def _upload(self, add: Any, meter: Any, result: Delivered) -> None:
        """Send a large file; small ones travel in the commit. One that an earlier try has sent is not read again."""
        size = add.upload_info.size
        add.path_or_fileobj.listen(meter.add)
        with heard(self.target, self.endpoint):
            self.api.preupload_lfs_files(
                self.target.repo, [add], revision=self.target.branch, free_memory=False, num_threads=1
            )
        travelled = add.path_or_fileobj.furthest or add._upload_mode == "regular"
        meter.add(size - add.path_or_fileobj.furthest)
        add.path_or_fileobj.listen(lambda count: None)
        if travelled:
            result.bytes_sent += size
        else:
            result.bytes_skipped += size

    def _verify(self, adds: list[Any], revision: str) -> None:
        """Raise Failed unless the commit holds every file with its hash."""
        meter = self.teller.meter("verify", self.source.size)
        with heard(self.target, self.endpoint):
            there = self._there(revision)
        for add in adds:
            if there.get(add.path_in_repo) not in _names_of(add):
                why = f"{add.path_in_repo} is not in {self.target.place} as it was sent"
                raise failed(Reason.DESTINATION, "target.repo", why, "See whether its .gitignore leaves the file out.")
            meter.add(add.upload_info.size)
        meter.tell()

    def _note(self, result: Delivered, stale: list[str]) -> str:
        if result.already:
            return "it was there already"
        if stale and not self.replace:
            shown = ", ".join(stale[:3]) + (f" and {len(stale) - 3} more" if len(stale) > 3 else "")
            return f"a commit on top of others: {shown} of earlier ones stay beside these files"
        return ""


def _endpoint(target: HubTarget) -> str:
    """Return the hub's address; raise Refused where the environment's is one that a target could not have."""
    if target.endpoint:
        return target.endpoint.rstrip("/")
    url = os.environ.get("HF_ENDPOINT") or HUB
    if problem := problem_with("HF_ENDPOINT", url, insecure=target.insecure, path=True):
        raise Refused([problem])
    return url.rstrip("/")


def _names_of(add: Any) -> set[str]:
    """Return the hashes under which a hub may know the file: as a large one, or as git does.

    A hub decides by size and name which it is; git's hash is formed of small files alone.
    """
    found = {add.upload_info.sha256.hex()}
    if add.upload_info.size <= SMALL:
        with add.as_file() as file:
            data = file.read()
        found.add(hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest())
    return found


def _api(endpoint: str) -> Any:
    # Read when the library is first imported. Its other way of sending takes no open file, and so tells no bytes.
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.utils import disable_progress_bars
    except ImportError:
        fix = "Run: pip install -r training/requirements.txt"
        raise refuse("target.kind", "the package huggingface_hub is not installed on this node", fix) from None
    disable_progress_bars()
    return HfApi(endpoint=endpoint, token=os.environ["HF_TOKEN"])
