"""Can these hosts open connections to each other? python -m training reach --name N --source A --port P --peer M=A:P

Started on all of them at the same time: each listens, as a rendezvous does, on all its addresses, tries to reach every
peer from the one address `--source` until it answers or the time is up, and waits until every peer has come. Prints
{"reached": {peer: ms or null}, "errors": {peer: why}, "heard": [peer]}. Standard library alone; ends by itself, and
changes nothing.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import threading
import time
from dataclasses import dataclass, field

HELLO = b"shardboard-reach"
PAUSE = 0.05  # seconds between two tries: the peer may not listen yet
LINE = 300  # bytes of a greeting at most
TRY_SECONDS = 1.0


@dataclass
class Reach:
    """One host's look at its peers. `token` tells this look's processes from whoever else may listen there."""

    name: str
    token: str
    source: str
    port: int
    peers: dict[str, tuple[str, int]]
    until: float
    reached: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)

    def look(self) -> dict[str, object]:
        """Listen and connect until all is known or the time is up. Raises OSError where the port can't be had."""
        with socket.create_server(("", self.port), family=_family(self.source)) as server:
            threads = [threading.Thread(target=self._connect, args=(peer,), daemon=True) for peer in self.peers]
            threads.append(threading.Thread(target=self._listen, args=(server,), daemon=True))
            for thread in threads:
                thread.start()
            while time.monotonic() < self.until and not self._done():
                time.sleep(PAUSE / 5)
            time.sleep(PAUSE)  # the last answer is on its way
        reached = {peer: self.reached.get(peer) for peer in self.peers}
        errors = {peer: text for peer, text in self.errors.items() if peer not in self.reached}
        return {"reached": reached, "errors": errors, "heard": sorted(self.heard)}

    def _done(self) -> bool:
        return len(self.reached) == len(self.peers) and self.heard >= set(self.peers)

    def _connect(self, peer: str) -> None:
        while time.monotonic() < self.until:
            try:
                self.reached[peer] = self._greet(peer)
                return
            except (OSError, ValueError) as error:
                self.errors[peer] = str(error)
                time.sleep(PAUSE)

    def _greet(self, peer: str) -> float:
        """Return the milliseconds until `peer` had answered."""
        began = time.monotonic()
        where = self.peers[peer]
        with socket.create_connection(where, TRY_SECONDS, source_address=(self.source, 0)) as link:
            link.sendall(b" ".join((HELLO, self.token.encode(), self.name.encode())) + b"\n")
            if _line(link) != [HELLO, self.token.encode(), peer.encode()]:
                raise ValueError(f"something else answers at {where[0]} port {where[1]}")
        return round((time.monotonic() - began) * 1000, 1)

    def _listen(self, server: socket.socket) -> None:
        while True:
            try:
                link, _ = server.accept()
            except OSError:
                return  # closed: the look is over
            threading.Thread(target=self._answer, args=(link,), daemon=True).start()

    def _answer(self, link: socket.socket) -> None:
        with link:
            link.settimeout(TRY_SECONDS)
            try:
                words = _line(link)
                if len(words) == 3 and words[:2] == [HELLO, self.token.encode()]:
                    link.sendall(b" ".join((HELLO, self.token.encode(), self.name.encode())) + b"\n")
                    self.heard.add(words[2].decode("utf-8", "replace"))
            except OSError:
                return  # it tries again


def main(argv: list[str]) -> int:
    """Print what was found; 1 where our own port can't be listened on."""
    parser = argparse.ArgumentParser(prog="python -m training reach", description="Can these hosts reach each other?")
    parser.add_argument("--name", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--source", required=True, help="this host's address from which it connects")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=ADDRESS:PORT")
    parser.add_argument("--seconds", type=float, default=6.0)
    args = parser.parse_args(argv)
    peers = dict(_peer(text) for text in args.peer)
    look = Reach(args.name, args.token, args.source, args.port, peers, time.monotonic() + args.seconds)
    try:
        print(json.dumps(look.look()))
    except OSError as error:
        print(f"port {args.port} can't be listened on: {error}", file=sys.stderr)
        return 1
    return 0


def _peer(text: str) -> tuple[str, tuple[str, int]]:
    name, _, where = text.partition("=")
    address, _, port = where.rpartition(":")
    return name, (address, int(port))


def _family(address: str) -> socket.AddressFamily:
    return socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0][0]


def _line(link: socket.socket) -> list[bytes]:
    """Return the words of one line."""
    found = b""
    while b"\n" not in found and len(found) < LINE and (block := link.recv(LINE)):
        found += block
    return found.split()
