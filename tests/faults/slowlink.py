"""A slow and lossy link: every frame between a host and the bridge goes through here, late, and some never.

The kernel's own way (netem) is a module that many kernels lack. The host's link is taken out of its bridge, a pair of
interfaces takes its place there, and threads carry the frames over with packet sockets, with what the kernel has yet
to do to them (checksums, segments) in the header before them.
"""

from __future__ import annotations

import heapq
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.ssh_hosts import SshHost, run

SOL_PACKET, PACKET_VNET_HDR, PACKET_OUTGOING = 263, 15, 4
EVERY_PROTOCOL = 3
FRAME = 1 << 17


@contextmanager
def slow(host: SshHost, seconds: float, loss: float, seed: int = 0) -> Iterator[None]:
    """Delay frames by `seconds` in each direction and drop a share of `loss` of them."""
    bridge, inner, outer = host.link.rpartition("v")[0], f"{host.link}a", f"{host.link}b"
    run("ip", "link", "add", inner, "type", "veth", "peer", "name", outer)
    try:
        for name in (inner, outer):
            run("ip", "link", "set", name, "up")
        run("ip", "link", "set", host.link, "nomaster")
        run("ip", "link", "set", inner, "master", bridge)
        with _carried(host.link, outer, seconds, loss, random.Random(seed)):
            yield
    finally:
        run("ip", "link", "del", inner)
        run("ip", "link", "set", host.link, "master", bridge)


@contextmanager
def _carried(one: str, other: str, seconds: float, loss: float, chance: random.Random) -> Iterator[None]:
    over = threading.Event()
    ends = [_packets(one), _packets(other)]
    ways = [_Way(ends[0], ends[1], seconds), _Way(ends[1], ends[0], seconds)]
    works = [(way.take, (over, loss, chance)) for way in ways] + [(way.give, (over,)) for way in ways]
    threads = [threading.Thread(target=work, args=arguments) for work, arguments in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
        for end in ends:
            end.close()


def _packets(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.bind((interface, EVERY_PROTOCOL))
    end.settimeout(0.1)
    return end


class _Way:
    """One direction: taken at one end, given at the other when its time has come."""

    def __init__(self, source: socket.socket, target: socket.socket, seconds: float):
        self.source, self.target, self.seconds = source, target, seconds
        self.waiting: list[tuple[float, int, bytes]] = []
        self.changed = threading.Condition()
        self.count = 0

    def take(self, over: threading.Event, loss: float, chance: random.Random) -> None:
        while not over.is_set():
            try:
                frame, about = self.source.recvfrom(FRAME)
            except OSError:  # none within a moment, or an interface that goes away
                continue
            if about[2] == PACKET_OUTGOING or chance.random() < loss:
                continue
            with self.changed:
                self.count += 1
                heapq.heappush(self.waiting, (time.monotonic() + self.seconds, self.count, frame))
                self.changed.notify()

    def give(self, over: threading.Event) -> None:
        while not over.is_set():
            with self.changed:
                left = self.waiting[0][0] - time.monotonic() if self.waiting else 0.1
                if left > 0:
                    self.changed.wait(min(left, 0.1))
                    continue
                _, _, frame = heapq.heappop(self.waiting)
            try:
                self.target.send(frame)
            except OSError:  # the other end has no room, as a link may have none
                continue
