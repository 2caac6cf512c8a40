"""An S3 server of the tests: python -m tests.training.deliver.s3_server FOLDER

moto's, which checks signatures and policies, behind a check that it lacks: a body that isn't what its
x-amz-checksum-sha256 says is refused with BadDigest. Its ListParts tells no checksum of a part, only the ETag, as some
storage does. FOLDER/server.json names the address and two users' keys: one may do everything, the other may list and
read. While FOLDER/hold says a number, no parts are taken beyond it; FOLDER/parts counts those that were, FOLDER/log
has a line for each request.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from moto.core.responses import ActionAuthenticatorMixin
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

ACCOUNT = "123456789012"
BUCKET = "models"
BAD = b"<?xml version='1.0'?><Error><Code>BadDigest</Code><Message>the checksum is another</Message></Error>"
Start = Callable[..., Any]


class Strict:
    """moto's application behind checks of its own; `folder` tells and is told."""

    def __init__(self, folder: Path):
        self.folder, self.app, self.lock = folder, DomainDispatcherApplication(create_backend_app), threading.Lock()
        self.taken = self.stored = 0

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        said = environ.get("HTTP_X_AMZ_CHECKSUM_SHA256")
        part = environ["REQUEST_METHOD"] == "PUT" and "partNumber" in parse_qs(environ.get("QUERY_STRING", ""))
        with self.lock, (self.folder / "log").open("a") as log:
            log.write(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}\n")
        if said and environ["REQUEST_METHOD"] == "PUT":
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            if base64.b64encode(hashlib.sha256(body).digest()).decode() != said:
                start("400 Bad Request", [("Content-Type", "application/xml")])
                return [BAD]
            environ["wsgi.input"] = io.BytesIO(body)
        if part:
            self._hold()
        answer: Iterable[bytes] = self.app(environ, start)
        if part:
            self._count()
        return answer

    def _hold(self) -> None:
        """Let this part through when the number allows it; one is counted when it is let through."""
        hold = self.folder / "hold"
        while True:
            with self.lock:
                if not hold.exists() or self.taken < int(hold.read_text()):
                    self.taken += 1
                    return
            time.sleep(0.01)

    def _count(self) -> None:
        with self.lock:
            self.stored += 1
            (self.folder / "new-parts").write_text(str(self.stored))
            (self.folder / "new-parts").rename(self.folder / "parts")


def main(folder: Path) -> None:
    iam, s3 = iam_backends[ACCOUNT]["global"], s3_backends[ACCOUNT]["aws"]
    s3.create_bucket(BUCKET, "us-east-1")
    keys = {}
    for name, actions in (("all", ["s3:*"]), ("list", ["s3:ListBucket", "s3:GetObject"])):
        iam.create_user("us-east-1", name)
        statement = [{"Effect": "Allow", "Action": actions, "Resource": "*"}]
        iam.put_user_policy(name, name, json.dumps({"Version": "2012-10-17", "Statement": statement}))
        key = iam.create_access_key(name)
        keys[name] = [key.access_key_id, key.secret_access_key]
    import moto.settings

    moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    assert ActionAuthenticatorMixin.request_count == 0
    server = make_server("127.0.0.1", 0, Strict(folder), threaded=True, request_handler=MotoRequestHandler)
    told = {"endpoint": f"http://127.0.0.1:{server.server_port}", "keys": keys}
    (folder / "new").write_text(json.dumps(told))
    (folder / "new").rename(folder / "server.json")
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
