"""A real server on a port of its own, in a thread; and a proxy that loses answers."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from coterie.service.core.engine import PolicyEngine
from coterie.service.http.api_keys import APIKeys
from coterie.service.http.server import make_server, open_engine
from coterie.service.settings import ServerSettings


class Served:
    """A service that runs: its address, its engine and its keys."""

    def __init__(self, url: str, engine: PolicyEngine, keys: APIKeys) -> None:
        self.url, self.engine, self.keys = url, engine, keys


@contextmanager
def served(store: Any, port: int = 0, **options: Any) -> Iterator[Served]:
    """Serve until the end of the block, on a free port unless one is given."""
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    settings = ServerSettings(store=store, port=port, log_level="warning", **options)
    engine = open_engine(settings)
    server = make_server(settings, engine)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Served(f"http://127.0.0.1:{port}", engine, server.config.app.keys)
    finally:
        server.should_exit = True
        thread.join()
        server.config.app.close()
        engine.close()


def in_event_loop() -> bool:
    """Tell whether the caller runs in an event loop, which nothing slow may do."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class LossyProxy:
    """Passes requests on, and cuts every nth connection after the service has answered."""

    def __init__(self, url: str, every: int = 3) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._target, self._every = (host, int(port)), every
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.cut = self.seen = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as service:
            while request := _message(client):
                service.sendall(request)
                answer = _message(service)
                self.seen += 1
                if self.seen % self._every == 0:
                    self.cut += 1
                    return
                client.sendall(answer)

    def close(self) -> None:
        self._socket.close()


def _message(source: socket.socket) -> bytes:
    """One message of HTTP with a Content-Length, or nothing at the end."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = source.recv(65_536)
        if not piece:
            return b""
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += source.recv(65_536)
    return head + b"\r\n\r\n" + body
