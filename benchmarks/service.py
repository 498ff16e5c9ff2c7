"""`python -m benchmarks.service`: decisions and durable rewards a second, beside handlers that do nothing.

With `--paths` also without the fast path of `coterie.service.http.connection`: through a bare ASGI route on
uvicorn and httptools, and through Starlette's routes.

Each server has one core, the 64 clients another. d = 25, 25 items of 500, AutoCLUB with 10,000 users of 10
kinds, who have given 20 rewards each; a SQLite file. CPU is that of the server's process, a request. Needs
FastAPI beside what the service needs.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.service_load import Measured, Served, on_other_cores

DIM, ARMS, USERS, ITEMS, KINDS = 25, 25, 10_000, 500, 10
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(ITEMS, DIM)) / DIM**0.5
TASTES = RNG.normal(size=(KINDS, DIM))
PATHS = {"fast": "", "asgi": ", bare ASGI route", "starlette": ", Starlette"}
"""How requests reach the handlers: ways to serve, and what the table calls them."""
FIRST_REWARDS = int(os.environ.get("FIRST_REWARDS", "20"))


def serve_coterie(port: int, store: str, path: str = "fast") -> None:
    """Our service, with users who have been served before."""
    from coterie.service.http.server import make_server, open_engine, tune_process
    from coterie.service.settings import ServerSettings

    settings = ServerSettings(port=port, store=store, dim=DIM, log_level="error", snapshot_every=10**9)
    engine = open_engine(settings)
    live = engine.find("default")
    live.change_items({f"item-{n}": x for n, x in enumerate(VECTORS)})
    rng = np.random.default_rng(1)
    for user in range(USERS):
        shown = VECTORS[rng.integers(ITEMS, size=FIRST_REWARDS)]
        rewards = shown @ TASTES[user % KINDS] + 0.1 * rng.normal(size=FIRST_REWARDS)
        for x, reward in zip(shown, rewards.tolist(), strict=True):
            live.feedback(f"user-{user}", reward, x=x)
    engine.wait()
    measure_policy(live.state.policy)
    tune_process()
    server = make_server(settings, engine)
    if path != "fast":
        server.config.http = "httptools"
    if path == "asgi":
        server.config.app = bare_asgi(server.config.app)
    server.run()


def bare_asgi(service: Any) -> Any:
    """The handlers of decisions and rewards with nothing between them and uvicorn."""
    from coterie.service.http.decision_routes import HANDLERS
    from coterie.service.http.problems import OK_HEADERS

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        policy, _, route = scope["path"].removeprefix("/v1/policies/").partition("/")
        service.keys.authorise(scope["headers"], "writer", policy)
        pending = HANDLERS[route].handle(service.engine, policy, await service.read_body(scope, receive))
        status, content = await service.durable(pending)
        headers = [*OK_HEADERS, (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return answer


def measure_policy(policy: Any) -> None:
    """Print what the policy alone takes, in microseconds of CPU."""
    import copy

    rng, alone = np.random.default_rng(2), copy.deepcopy(policy)
    users, shown = rng.integers(USERS, size=2_000), VECTORS[rng.integers(ITEMS, size=(2_000, ARMS))]
    rewards = (shown[:, 0] * TASTES[users % KINDS]).sum(axis=1)
    began = time.thread_time()
    for user, arms in zip(users.tolist(), shown, strict=True):
        alone.recommend(user, arms)
    decided = time.thread_time()
    alone.update_many(users, shown[:, 0], rewards)
    learnt = time.thread_time()
    clusters = len(set(policy.labels().tolist()))
    print(
        f"the policy alone, {clusters} clusters: {(decided - began) / 2e-3:.1f} µs a decision, "
        f"{(learnt - decided) / 2e-3:.1f} µs a reward",
        flush=True,
    )


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


def rewards(asked: list[bytes], answers: list[bytes], seed: int) -> list[bytes]:
    """Requests with the rewards of decisions."""
    rng = np.random.default_rng(seed)
    told = []
    for question, answer in zip(map(json.loads, asked), map(json.loads, answers), strict=True):
        user, item = int(question["user"][5:]), int(answer["chosen"][5:])
        reward = float(VECTORS[item] @ TASTES[user % KINDS] + 0.1 * rng.normal())
        told.append(
            json.dumps({"rewards": [{"decision_id": answer["decision_id"], "reward": reward}]}).encode()
        )
    return told


def measure(count: int, rounds: int, paths: Sequence[str]) -> dict[str, list[Measured]]:
    """All servers in turn, round by round, so that a busy machine slows all of them."""
    found: dict[str, list[Measured]] = {}
    with TemporaryDirectory() as folder:
        servers = {
            path: Served(partial(serve_coterie, path=path), os.path.join(folder, f"{path}.db"))
            for path in paths
        }
        servers |= {"empty": Served(serve_empty, ""), "fastapi": Served(serve_fastapi, "")}
        on_other_cores()
        try:
            for turn in range(rounds):
                for what, measured in one_round(servers, paths, count, turn).items():
                    found.setdefault(what, []).append(measured)
        finally:
            for server in servers.values():
                server.stop()
    return found


def one_round(servers: dict[str, Served], paths: Sequence[str], count: int, turn: int) -> dict[str, Measured]:
    """The same bodies for each server."""
    asked = decisions(count, turn)
    row = {}
    for path in paths:
        name = PATHS[path]
        row[f"decisions{name}"], answers = servers[path].load(asked, "/v1/policies/default/decisions")
        given = rewards(asked, answers, turn)
        row[f"durable rewards{name}"], _ = servers[path].load(given, "/v1/policies/default/rewards")
    for name in ("empty", "fastapi"):
        for what, bodies in (("decisions", asked), ("rewards", given)):
            row[f"{name} handler, bodies of {what}"], _ = servers[name].load(bodies, "/x")
    return row


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4_000, help="requests of each kind in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--paths", action="store_true", help="also without the fast path")
    options = parser.parse_args()
    found = measure(options.requests, options.rounds, list(PATHS) if options.paths else ["fast"])
    table = {what: np.median(np.array(measured), axis=0) for what, measured in found.items()}
    columns = ("a second", "of empty", "p50 ms", "p99 ms", "CPU µs", "of empty")
    print(f"{'':34}" + "".join(f"{column:>10}" for column in columns))
    for what, (rate, p50, p99, cpu) in table.items():
        floor = table[f"empty handler, bodies of {'rewards' if 'rewards' in what else 'decisions'}"]
        speed = f"{rate:10,.0f}{rate / floor[0]:10.2f}{p50:10.1f}{p99:10.1f}"
        print(f"{what:34}{speed}{cpu:10.0f}{floor[3] / cpu:10.2f}")


if __name__ == "__main__":
    main()
