"""A gate before an S3 server: it passes requests on as they are, and lets as many parts through as it has permits."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LEFT_OUT = ("transfer-encoding", "connection", "content-length")


class Gate(ThreadingHTTPServer):
    """`parts`: how many the server behind has taken; `requests`: method and path of each request."""

    daemon_threads = True

    def __init__(self, behind: str):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behind = urlsplit(behind).netloc
        self.permits = threading.Semaphore(1000)
        self.parts = 0
        self.requests: list[str] = []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def only(self, parts: int) -> None:
        """Let this many further parts through until `open`."""
        self.permits = threading.Semaphore(parts)

    def open(self) -> None:
        self.permits.release(1000)


class Handler(BaseHTTPRequestHandler):
    server: Gate
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        part = self.command == "PUT" and "partNumber" in parse_qs(urlsplit(self.path).query)
        if part:
            self.server.permits.acquire()
        with self.server.lock:
            self.server.requests.append(f"{self.command} {self.path}")
        status, headers, data = self._ask(body)
        if part:
            with self.server.lock:
                self.server.parts += 1
        self._answer(status, headers, data)

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Pass the request on, its Host included, for that is signed."""
        behind = http.client.HTTPConnection(self.server.behind)
        behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                behind.putheader(name, value)
        behind.endheaders(body)
        answer = behind.getresponse()
        data = answer.read()
        behind.close()
        return answer.status, answer.getheaders(), data

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        length = str(len(data))
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in LEFT_OUT:
                self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", length)
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:
            self.close_connection = True  # who asked was killed

    def log_message(self, *words: Any) -> None:
        pass
