"""Latency of decisions while an export of many events, explanations and lists of clusters run.

`python -m benchmarks.service_background` starts a server process on a store with a million events, sends
decisions from 16 clients, first alone and then with each kind of work beside them, and prints quantiles of
the latency, the longest wait of `/health/live`, and the memory of the server process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np

from coterie.service.core.engine import PolicyEngine
from coterie.service.settings import PolicySettings
from coterie.service.storage.event_store import Event
from coterie.service.storage.sqlite import SQLiteStore

DIM, ITEMS, OFFERED, USERS, CLIENTS = 25, 500, 25, 20_000, 16
BATCH = 20_000
JSON = {"Content-Type": "application/json"}


def fill(path: Path, events: int, users: int) -> None:
    """Write a log of decisions and rewards; the policy learns from the last `users` rewards only."""
    rng = np.random.default_rng(0)
    engine = PolicyEngine(SQLiteStore(path), snapshot_every=10**9)
    live = engine.create("default", PolicySettings(dim=DIM, policy="AutoCLUB", reward_wait=None)).result
    names = [f"item-{n}" for n in range(ITEMS)]
    vectors = rng.normal(size=(ITEMS, DIM)) / DIM**0.5
    live.change_items(dict(zip(names, vectors, strict=True)))
    engine.wait()
    live.decide("nobody", items=names[:OFFERED], decision_id="template")
    live.reward("template", 0.5)
    engine.wait()
    decision, reward = engine.store.find("default", "template")
    for start in range(0, events // 2, BATCH):
        engine.journal.run(partial(_append, engine, decision, reward, start))
    for n in range(users):
        live.feedback(f"user-{n}", float(rng.random()), x=vectors[n % ITEMS])
    engine.wait()
    engine.snapshot("default")
    engine.close()


def _append(engine: PolicyEngine, decision: Event, reward: Event, start: int) -> None:
    """Repeat a decision and its reward under other ids, without the policy, which would take an hour."""
    made: list[Event] = []
    first = engine.journal.last + 1
    for n in range(BATCH):
        key = f"copy-{start + n}"
        made.append(decision._replace(seq=first + 2 * n, decision=key))
        made.append(reward._replace(seq=first + 2 * n + 1, decision=key))
    engine.store.append(made)
    engine.journal.pass_over(made[-1].seq)


async def measure(url: str, seconds: float, work: Callable[[], Awaitable[object]] | None) -> dict[str, float]:
    """Return quantiles of the latency of decisions, in ms, until the work is done and the time is over."""
    times: list[float] = []
    health: list[float] = []
    done = asyncio.Event()
    rng = np.random.default_rng(1)
    body = [
        json.dumps({"user": f"user-{user}", "items": [f"item-{n}" for n in range(OFFERED)]}).encode()
        for user in rng.integers(0, USERS, 500)
    ]

    async def decide(client: httpx.AsyncClient, number: int) -> None:
        while not done.is_set():
            began = time.perf_counter()
            answer = await client.post(
                "/v1/policies/default/decisions", content=body[number % len(body)], headers=JSON
            )
            times.append(time.perf_counter() - began)
            answer.raise_for_status()
            number += CLIENTS
            await asyncio.sleep(0.02)

    async def watch(client: httpx.AsyncClient) -> None:
        while not done.is_set():
            began = time.perf_counter()
            (await client.get("/health/live")).raise_for_status()
            health.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)

    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
        running = [asyncio.create_task(decide(client, n)) for n in range(CLIENTS)]
        running.append(asyncio.create_task(watch(client)))
        began = time.perf_counter()
        if work is not None:
            await work()
        took = time.perf_counter() - began
        await asyncio.sleep(max(seconds - took, 0))
        done.set()
        await asyncio.gather(*running)
    p50, p99, most = np.quantile(times, [0.5, 0.99, 1.0]) * 1e3
    return {"n": len(times), "p50": p50, "p99": p99, "max": most, "health": max(health) * 1e3, "took": took}


def memory(pid: int, name: str = "VmRSS") -> float:
    """Return megabytes of memory that a process has, or had at most (`VmHWM`)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return float("nan")


def separate(url: str, path: str, repeat: int) -> Callable[[], Awaitable[object]]:
    """Return work that another process asks for, so that reading the answers takes no time of the clients."""
    program = (
        "import httpx, sys\n"
        f"for n in range({repeat}):\n"
        f"    with httpx.stream('GET', {url + path!r}, timeout=600, trust_env=False) as answer:\n"
        "        answer.raise_for_status()\n"
        "        size = sum(map(len, answer.iter_raw()))\n"
        "print(size)\n"
    )

    async def work() -> None:
        running = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
        assert await running.wait() == 0

    return work


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--users", type=int, default=USERS)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--store", type=Path, help="a store to use again, or to make")
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        path = given.store or Path(folder, "a.db")
        if not path.exists():
            fill(path, given.events, given.users)
        words = [sys.executable, "-m", "coterie", "serve", "--store", str(path), "--port", "8791"]
        with subprocess.Popen([*words, "--log-level", "warning"], env=os.environ) as server:
            url = "http://127.0.0.1:8791"
            for _ in range(600):
                try:
                    httpx.get(f"{url}/health/ready", trust_env=False).raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.2)
            one = "/v1/policies/default"
            works: dict[str, Callable[[], Awaitable[object]] | None] = {
                "nothing": None,
                "explain": separate(url, f"{one}/users/user-7", 30),
                "clusters": separate(url, f"{one}/clusters", 30),
                "metrics": separate(url, "/metrics", 30),
                "export jsonl": separate(url, f"{one}/export", 1),
                "export parquet": separate(url, f"{one}/export?format=parquet", 1),
            }
            columns = ("n", "p50 ms", "p99 ms", "max ms", "health", "s", "MB", "most")
            print(f"{'beside':<16}" + "".join(f"{name:>8}" for name in columns))
            for name, work in works.items():
                found = asyncio.run(measure(url, given.seconds, work))
                numbers = "".join(f"{found[key]:>8.1f}" for key in ("p50", "p99", "max", "health", "took"))
                sizes = f"{memory(server.pid):>8.0f}{memory(server.pid, 'VmHWM'):>8.0f}"
                print(f"{name:<16}{found['n']:>8.0f}{numbers}{sizes}", flush=True)
            server.terminate()


if __name__ == "__main__":
    main()
