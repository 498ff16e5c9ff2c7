"""`python -m benchmarks.service`: decisions and durable rewards a second, beside handlers that do nothing.

Servers and clients share the machine: ratios are what counts. 64 connections, d = 25, 25 items,
AutoCLUB with 10,000 users, a SQLite file. Needs FastAPI beside what the service needs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

DIM, ARMS, USERS, CLIENTS, ITEMS, CLUSTERS = 25, 25, 10_000, 64, 500, 10


class Measured(NamedTuple):
    """Requests a second, and the median and the 99th percentile of their milliseconds."""

    rate: float
    p50: float
    p99: float


def serve_coterie(port: int, store: str) -> None:
    """Our service, with users who have been served before."""
    from coterie.service.server import ServerSettings, make_server, open_engine

    settings = ServerSettings(port=port, store=store, dim=DIM, log_level="error")
    engine = open_engine(settings)
    live = engine.find("default")
    rng = np.random.default_rng(0)
    items = rng.normal(size=(ITEMS, DIM)) / DIM**0.5
    tastes = rng.normal(size=(CLUSTERS, DIM))
    live.change_items({f"item-{n}": x for n, x in enumerate(items)})
    for user in range(USERS):
        x = items[rng.integers(ITEMS)]
        live.feedback(f"user-{user}", float(x @ tastes[user % CLUSTERS] + 0.1 * rng.normal()), x=x)
    engine.wait()
    make_server(settings, engine).run()


def serve_empty(port: int, store: str) -> None:
    """A handler of Starlette that answers with nothing: the floor."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def nothing(request: Request) -> Response:
        await request.body()
        return Response(b"{}", media_type="application/json")

    app = Starlette(routes=[Route("/{path:path}", nothing, methods=["GET", "POST"])])
    uvicorn.run(app, port=port, log_level="error", access_log=False, lifespan="off")


def serve_fastapi(port: int, store: str) -> None:
    """A handler of FastAPI that reads its body and answers with nothing."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Asked(BaseModel):
        user: str | None = None
        items: list[str] | None = None
        rewards: list[dict[str, Any]] | None = None

    class Told(BaseModel):
        chosen: str

    app = FastAPI()

    async def nothing(path: str, asked: Asked) -> Told:
        return Told(chosen="tea")

    nothing.__annotations__ = {"path": str, "asked": Asked, "return": Told}
    app.post("/{path:path}")(nothing)
    app.get("/{path:path}")(lambda path: {})
    uvicorn.run(app, port=port, log_level="error", access_log=False, lifespan="off")


async def load(port: int, bodies: list[bytes], path: str) -> tuple[Measured, list[bytes]]:
    """Send all bodies over 64 connections; rates, and the answers in the order of the bodies."""
    waiting = list(enumerate(bodies))[::-1]
    answers: list[bytes] = [b""] * len(bodies)
    seconds: list[float] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while waiting:
            number, body = waiting.pop()
            began = time.perf_counter()
            kind = "Host: a\r\nContent-Type: application/json"
            head = f"POST {path} HTTP/1.1\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answers[number] = await _answer(reader)
            seconds.append(time.perf_counter() - began)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    rate = len(bodies) / (time.perf_counter() - began)
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1e3
    return Measured(rate, float(p50), float(p99)), answers


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    status, lines = head.split(b"\r\n", 1)
    length = next(
        int(line[15:]) for line in lines.lower().split(b"\r\n") if line.startswith(b"content-length:")
    )
    body = await reader.readexactly(length)
    if b" 200 " not in status + b" ":
        raise RuntimeError(f"{status!r}: {body!r}")
    return body


class Served:
    """A server in a process of its own, bound to the first core."""

    def __init__(self, serve: Callable[[int, str], None], store: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process = multiprocessing.get_context("spawn").Process(target=serve, args=(self.port, store))
        self._process.start()
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.1)

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


def decisions(count: int, seed: int) -> list[bytes]:
    """Requests for decisions."""
    rng = np.random.default_rng(seed)
    return [
        json.dumps(
            {
                "user": f"user-{rng.integers(USERS)}",
                "items": [f"item-{n}" for n in rng.choice(ITEMS, ARMS, replace=False)],
            }
        ).encode()
        for _ in range(count)
    ]


def rewards(answers: list[bytes], seed: int) -> list[bytes]:
    """Requests with the rewards of decisions."""
    rng = np.random.default_rng(seed)
    ids = [json.loads(answer)["decision_id"] for answer in answers]
    return [
        json.dumps({"rewards": [{"decision_id": one, "reward": float(rng.random())}]}).encode() for one in ids
    ]


def measure(count: int, rounds: int) -> dict[str, list[Measured]]:
    """All servers in turn, round by round, so that a busy machine slows all of them."""
    found: dict[str, list[Measured]] = {}
    with TemporaryDirectory() as folder:
        servers = {
            "coterie": Served(serve_coterie, os.path.join(folder, "store.db")),
            "empty": Served(serve_empty, ""),
            "fastapi": Served(serve_fastapi, ""),
        }
        try:
            for turn in range(rounds):
                asked = decisions(count, turn)
                made, answers = asyncio.run(
                    load(servers["coterie"].port, asked, "/v1/policies/default/decisions")
                )
                given = rewards(answers, turn)
                paid, _ = asyncio.run(load(servers["coterie"].port, given, "/v1/policies/default/rewards"))
                row = {"decisions": made, "durable rewards": paid}
                for name in ("empty", "fastapi"):
                    for what, bodies in (("decisions", asked), ("rewards", given)):
                        row[f"{name} handler, bodies of {what}"], _ = asyncio.run(
                            load(servers[name].port, bodies, "/x")
                        )
                for what, measured in row.items():
                    found.setdefault(what, []).append(measured)
        finally:
            for server in servers.values():
                server.stop()
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4_000, help="requests of each kind in a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found = measure(options.requests, options.rounds)
    floors = {
        what: np.median([one.rate for one in found[f"empty handler, bodies of {what}"]])
        for what in ("decisions", "rewards")
    }
    print(f"{'':34} {'per second':>10} {'p50 ms':>8} {'p99 ms':>8} {'of empty':>9}")
    for what, measured in found.items():
        rate, p50, p99 = np.median(np.array(measured), axis=0)
        floor = floors["rewards" if "rewards" in what else "decisions"]
        print(f"{what:34} {rate:10,.0f} {p50:8.1f} {p99:8.1f} {rate / floor:9.2f}")


if __name__ == "__main__":
    main()
