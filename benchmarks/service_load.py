"""What measures a server: a process of its own on one core, and 64 connections from another core."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

CLIENTS = 64


class Measured(NamedTuple):
    """Requests a second, the median and the 99th percentile of their milliseconds, the server's CPU in µs."""

    rate: float
    p50: float
    p99: float
    cpu: float


class Connection(asyncio.Protocol):
    """One client: sends the next request as soon as the last one is answered, or after a pause in seconds."""

    def __init__(
        self,
        path: str,
        bodies: Sequence[bytes],
        waiting: list[int],
        answers: list[bytes],
        pause: float = 0.0,
    ) -> None:
        self._path, self._bodies, self._waiting, self._answers = path, bodies, waiting, answers
        self._pause = pause
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.seconds: list[float] = []
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._next()

    def _next(self) -> None:
        if not self._waiting:
            self._transport.close()
            if not self.done.done():
                self.done.set_result(None)
            return
        self._number = self._waiting.pop()
        body = self._bodies[self._number]
        lines = (f"POST {self._path} HTTP/1.1", "Host: localhost", "Content-Type: application/json")
        head = "\r\n".join([*lines, "Content-Length: "])
        self._began = time.perf_counter()
        self._transport.write(f"{head}{len(body)}\r\n\r\n".encode() + body)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, mark, body = self._read.partition(b"\r\n\r\n")
        if not mark:
            return
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at:].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.seconds.append(time.perf_counter() - self._began)
        if b" 200 " not in head[:16]:
            self.done.set_exception(RuntimeError(f"{head!r}: {body!r}"))
            return
        self._answers[self._number], self._read = body, b""
        if self._pause:
            asyncio.get_running_loop().call_later(self._pause, self._next)
        else:
            self._next()


class Served:
    """A server in a process of its own, bound to the first core; the clients have the others."""

    def __init__(self, serve: Callable[[int, str], None], store: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=on_first_core, args=(serve, self.port, store))
        self._process.start()
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.1)

    def cpu(self) -> float:
        """Seconds of CPU that the process has used."""
        with open(f"/proc/{self._process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def load(self, bodies: Sequence[bytes], path: str) -> tuple[Measured, list[bytes]]:
        """Send all bodies; what was measured, and the answers in the order of the bodies."""
        import uvloop

        before, began = self.cpu(), time.perf_counter()
        seconds, answers = uvloop.run(_send(self.port, bodies, path))
        rate = len(bodies) / (time.perf_counter() - began)
        p50, p99 = (float(one) for one in np.quantile(seconds, [0.5, 0.99]) * 1e3)
        return Measured(rate, p50, p99, (self.cpu() - before) / len(bodies) * 1e6), answers

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


async def _send(port: int, bodies: Sequence[bytes], path: str) -> tuple[list[float], list[bytes]]:
    waiting, answers = list(range(len(bodies)))[::-1], [b""] * len(bodies)
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Connection(path, bodies, waiting, answers), "127.0.0.1", port)
        for _ in range(CLIENTS)
    ]
    await asyncio.gather(*(client.done for _, client in made))
    return [one for _, client in made for one in client.seconds], answers


def on_first_core(serve: Callable[[int, str], None], port: int, store: str) -> None:
    """Serve on one core alone."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    serve(port, store)


def on_other_cores() -> None:
    """Leave the first core to the servers, if there is another."""
    cores = os.sched_getaffinity(0)
    if len(cores) > 1:
        os.sched_setaffinity(0, cores - {min(cores)})
