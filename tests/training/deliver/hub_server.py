"""A hub of the tests: as much of the Hub's protocol as huggingface_hub speaks when it uploads.

It holds what it is sent to its word: a large file must have the SHA-256 that it is uploaded under, a commit may name
only large files that are here, and its parent must be the branch's newest. TOKEN may write, READER may not.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN, READER = "hf_writerwriterwriter", "hf_readerreaderreader"
LFS = re.compile(r"\.safetensors$")


@dataclass
class Repository:
    private: bool
    branches: dict[str, list[tuple[str, dict[str, bytes]]]] = field(default_factory=dict)

    def at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """Return a commit's id and {path: content}."""
        commits = [c for branch in self.branches.values() for c in branch]
        return self.branches.get(revision, [None])[-1] or next((c for c in commits if c[0] == revision), None)

    def add(self, branch: str, files: dict[str, bytes]) -> str:
        commits = self.branches.setdefault(branch, [])
        oid = hashlib.sha1(f"{branch} {len(commits)} {sorted(files)}".encode()).hexdigest()
        commits.append((oid, files))
        return oid


class Hub(ThreadingHTTPServer):
    """`gate`: as many large files as it has permits are taken; of further ones the first block alone is read."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, Repository] = {}
        self.large: dict[str, bytes] = {}
        self.uploads: list[str] = []
        self.begun: list[str] = []
        self.gate = threading.Semaphore(1000)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def make(self, name: str, files: dict[str, bytes] | None = None, *, private: bool = True) -> Repository:
        repository = self.repositories[name] = Repository(private)
        repository.add("main", {".gitattributes": b"", **(files or {})})
        return repository


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"
    routes = (
        ("POST", r"/api/repos/create", "create"),
        ("POST", r"/api/validate-yaml", "validate"),
        ("GET", r"/api/models/([^/]+/[^/]+)(?:/revision/([^/?]+))?", "info"),
        ("GET", r"/api/models/([^/]+/[^/]+)/tree/([^/?]+)", "tree"),
        ("POST", r"/api/models/([^/]+/[^/]+)/branch/([^/?]+)", "branch"),
        ("POST", r"/api/models/([^/]+/[^/]+)/preupload/([^/?]+)", "preupload"),
        ("POST", r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", "batch"),
        ("PUT", r"/large/([0-9a-f]{64})", "upload"),
        ("POST", r"/api/models/([^/]+/[^/]+)/commit/([^/?]+)", "commit"),
    )

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        for method, pattern, name in self.routes:
            if method == self.command and (match := re.fullmatch(pattern, path)):
                if name != "upload" and not self._may(writes=name not in ("info", "tree")):
                    return
                getattr(self, name)(*(unquote(g) if g else g for g in match.groups()))
                return
        self.say(404, {"error": "Not Found"})

    do_POST = do_PUT = do_GET

    def _may(self, *, writes: bool) -> bool:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in (TOKEN, READER):
            self.say(401, {"error": "Invalid credentials in Authorization header"})
        elif writes and token == READER:
            self.say(403, {"error": "This token may not write"})
        else:
            return True
        return False

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def say(self, status: int, body: Any, code: str = "") -> None:
        if not getattr(self, "was_read", False) and self.headers.get("Content-Length") and status >= 400:
            self.close_connection = True
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if code:
            self.send_header("X-Error-Code", code)
        self.end_headers()
        self.wfile.write(data)

    def validate(self) -> None:
        self.body()
        self.say(200, {"errors": [], "warnings": []})

    def create(self) -> None:
        asked = json.loads(self.body())
        name = f"{asked['organization']}/{asked['name']}"
        if name in self.server.repositories:
            return self.say(409, {"error": "You already created this model repo", "url": f"{self.server.url}/{name}"})
        self.server.make(name, private=asked.get("visibility") == "private")
        self.say(200, {"url": f"{self.server.url}/{name}", "name": name, "id": name})

    def repository(self, name: str) -> Repository | None:
        found = self.server.repositories.get(name)
        if found is None:
            self.say(404, {"error": "Repository not found"}, "RepoNotFound")
        return found

    def info(self, name: str, revision: str | None) -> None:
        if (repository := self.repository(name)) is None:
            return
        commit = repository.at(revision or "main")
        if commit is None:
            return self.say(404, {"error": "Invalid rev id"}, "RevisionNotFound")
        siblings = [{"rfilename": path} for path in commit[1]]
        self.say(200, {"id": name, "sha": commit[0], "private": repository.private, "siblings": siblings, "tags": []})

    def tree(self, name: str, revision: str) -> None:
        commit = self.server.repositories[name].at(revision)
        assert commit is not None
        self.say(200, [entry(path, data) for path, data in commit[1].items()])

    def branch(self, name: str, branch: str) -> None:
        self.body()
        repository = self.server.repositories[name]
        repository.branches[branch] = list(repository.branches["main"])
        self.say(200, {})

    def preupload(self, name: str, revision: str) -> None:
        asked = json.loads(self.body())["files"]
        mode = {True: "lfs", False: "regular"}
        files = [
            {"path": f["path"], "uploadMode": mode[bool(LFS.search(f["path"]))], "shouldIgnore": False} for f in asked
        ]
        self.say(200, {"files": files})

    def batch(self, name: str) -> None:
        objects = json.loads(self.body())["objects"]
        for asked in objects:
            if asked["oid"] not in self.server.large:
                asked["actions"] = {"upload": {"href": f"{self.server.url}/large/{asked['oid']}", "header": {}}}
        self.say(200, {"transfer": "basic", "objects": objects})

    def upload(self, oid: str) -> None:
        left = int(self.headers["Content-Length"])
        data = self.rfile.read(min(left, 1 << 16))
        self.server.begun.append(oid)
        self.server.gate.acquire()
        data += self.rfile.read(left - len(data))
        if hashlib.sha256(data).hexdigest() != oid:
            return self.say(400, {"error": "the content has another SHA-256"})
        self.server.large[oid] = data
        self.server.uploads.append(oid)
        self.say(200, {})

    def commit(self, name: str, branch: str) -> None:
        repository = self.server.repositories[name]
        lines = [json.loads(line) for line in self.body().splitlines()]
        head, files = repository.branches[branch][-1]
        if lines[0]["value"].get("parentCommit") not in (None, head):
            return self.say(412, {"error": "A commit has happened since"})
        files = dict(files)
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "lfsFile" and value["oid"] not in self.server.large:
                return self.say(400, {"error": "a large file was never uploaded"})
            if line["key"] == "deletedFile":
                del files[value["path"]]
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.large[value["oid"]]
            else:
                files[value["path"]] = base64.b64decode(value["content"])
        oid = repository.add(branch, files)
        self.say(200, {"commitUrl": f"{self.server.url}/{name}/commit/{oid}", "commitOid": oid, "success": True})

    def log_message(self, *words: Any) -> None:
        pass


def entry(path: str, data: bytes) -> dict[str, Any]:
    """Return what the tree says of a file."""
    git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    found = {"type": "file", "oid": git, "size": len(data), "path": path}
    if LFS.search(path):
        found["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return found
