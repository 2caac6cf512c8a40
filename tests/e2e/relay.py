"""A TCP relay between a browser and the service, so that a test can take the network away and give it back."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from training.spec.ports import free_port


class Relay:
    """Forwards 127.0.0.1:`port` to 127.0.0.1:`target`. While cut, open connections are closed and new ones refused."""

    def __init__(self, target: int):
        self.target, self.port = target, free_port("127.0.0.1")
        self.url = f"http://127.0.0.1:{self.port}"
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._door: socket.socket | None = None
        self.mend()

    def mend(self) -> None:
        self._door = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._door,), daemon=True).start()

    def cut(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            with suppress(OSError):  # wakes the thread that waits in accept
                door.shutdown(socket.SHUT_RDWR)
            door.close()
        with self._lock:
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self, door: socket.socket) -> None:
        while True:
            try:
                near, _ = door.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open -= {source}
        source.close()
