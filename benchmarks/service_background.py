"""Latency of decisions while exports, imports, snapshots and explanations run beside them.

`python -m benchmarks.service_background` starts a server process on a store with a million events and a
policy of 1 GB, sends decisions from 16 connections, first alone and then with each kind of work beside them.
It prints quantiles of the latency, the longest wait of `/health/live`, the share of a core that the server
used, and the memory of its process. `--only` names the kinds of work to measure.
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
from typing import NamedTuple

import httpx
import numpy as np
import uvloop

from benchmarks.service_load import Connection
from coterie.service.core.engine import PolicyEngine
from coterie.service.settings import PolicySettings
from coterie.service.storage.event_store import Event
from coterie.service.storage.sqlite import SQLiteStore

DIM, ITEMS, OFFERED, USERS, CLIENTS = 25, 500, 25, 20_000, 16
LARGE_DIM, LARGE_USERS = 50, 26_000
"""A policy of 1 GB: two matrices of 50 × 50 numbers for each user."""
BATCH = 20_000
PAUSE = 0.02
"""Seconds between two requests of a connection."""
PORT = 8791
URL = f"http://127.0.0.1:{PORT}"
ONE = "/v1/policies/default"
Work = Callable[[], Awaitable[None]]


def fill(path: Path, events: int, users: int) -> None:
    """Write a log of decisions and rewards; the policy learns from the last `users` rewards only."""
    rng = np.random.default_rng(0)
    engine = PolicyEngine(SQLiteStore(path), snapshot_every=10**9)
    # Decisions that keep all vectors that were offered are the largest rows of an export.
    settings = PolicySettings(dim=DIM, policy="AutoCLUB", reward_wait=None, log_offers="all")
    live = engine.create("default", settings).result
    names = [f"item-{n}" for n in range(ITEMS)]
    vectors = rng.normal(size=(ITEMS, DIM)) / DIM**0.5
    live.change_items(dict(zip(names, vectors, strict=True)))
    engine.wait()
    live.decide("nobody", arms=dict(zip(names[:OFFERED], vectors, strict=False)), decision_id="template")
    live.reward("template", 0.5)
    engine.wait()
    decision, reward = engine.store.find("default", "template")
    for start in range(0, events // 2, BATCH):
        engine.journal.run(partial(_append, engine, decision, reward, start))
    for n in range(users):
        live.feedback(f"user-{n}", float(rng.random()), x=vectors[n % ITEMS])
    engine.create("imported", PolicySettings(dim=DIM, policy="AutoCLUB"))
    large = tuple(f"user-{n}" for n in range(LARGE_USERS))
    engine.create("large", PolicySettings(dim=LARGE_DIM, policy="LinUCBInd", users=large))
    engine.wait()
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


class Measured(NamedTuple):
    """Decisions made, quantiles of their latency, the longest health check, and how long the work took."""

    decisions: int
    p50: float
    p99: float
    most: float
    health: float
    took: float


async def measure(seconds: float, work: Work | None) -> Measured:
    """Return latencies in ms of decisions until the work is done and the time is over."""
    rng = np.random.default_rng(1)
    bodies = [
        json.dumps({"user": f"user-{user}", "items": [f"item-{n}" for n in range(OFFERED)]}).encode()
        for user in rng.integers(0, USERS, 500)
    ]
    waiting, answers = list(range(len(bodies))) * 2_000, [b""] * len(bodies)
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda: Connection(f"{ONE}/decisions", bodies, waiting, answers, PAUSE), "127.0.0.1", PORT
        )
        for _ in range(CLIENTS)
    ]
    health: list[float] = []
    watching = loop.create_task(_watch(health))
    began = time.perf_counter()
    if work is not None:
        await work()
    took = time.perf_counter() - began
    await asyncio.sleep(max(seconds - took, 0))
    waiting.clear()
    await asyncio.gather(*(client.done for _, client in made))
    watching.cancel()
    times = [one for _, client in made for one in client.seconds]
    p50, p99, most = (float(one) for one in np.quantile(times, [0.5, 0.99, 1.0]) * 1e3)
    return Measured(len(times), p50, p99, most, max(health) * 1e3, took)


async def _watch(health: list[float]) -> None:
    """Ask whether the process lives, again and again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    while True:
        began = time.perf_counter()
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        at = head.lower().index(b"content-length:") + 15
        await reader.readexactly(int(head[at:].partition(b"\r\n")[0]))
        health.append(time.perf_counter() - began)
        await asyncio.sleep(PAUSE)


class Usage(NamedTuple):
    """Seconds of CPU that a process has used, megabytes that it has, and had at most."""

    cpu: float
    memory: float
    most_memory: float


def usage(pid: int) -> Usage:
    """Return what a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    found = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    memory, most = (int(found[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return Usage(cpu, memory, most)


def separate(program: str, *values: object) -> Work:
    """Return work that another process asks for, at a low priority: clients are measured."""

    async def work() -> None:
        words = [sys.executable, "-c", program, URL, *map(str, values)]
        running = await asyncio.create_subprocess_exec("nice", "-n", "19", *words)
        if await running.wait() != 0:
            raise RuntimeError("the work beside the decisions has failed")

    return work


READ = """
import httpx, sys
url, path, repeat = sys.argv[1:]
for n in range(int(repeat)):
    with httpx.stream("GET", url + path, timeout=600, trust_env=False) as answer:
        answer.raise_for_status()
        size = sum(map(len, answer.iter_raw()))
"""
IMPORT = """
import httpx, json, sys
import numpy as np
url, dim, repeat = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng()
for n in range(repeat):
    x = rng.normal(size=(6_000, dim)) / dim**0.5
    lines = [
        json.dumps({"user": f"u{k % 2_000}", "x": row.round(6).tolist(), "reward": float(k % 2),
                    "decision_id": f"{rng.integers(2**62)}"})
        for k, row in enumerate(x)
    ]
    httpx.post(url + "/v1/policies/imported/import", content="\\n".join(lines),
               headers={"Content-Type": "application/json"}, timeout=600, trust_env=False).raise_for_status()
"""
SNAPSHOT = """
import httpx, re, sys, time
import numpy as np
url, dim, users = sys.argv[1], *map(int, sys.argv[2:])
rng = np.random.default_rng(2)
def age():
    told = httpx.get(url + "/metrics", timeout=600, trust_env=False).text
    return int(re.search('coterie_snapshot_age_events{policy="large"} (\\\\d+)', told)[1])
before = age()
for start in range(0, users, 100):
    x = rng.normal(size=(100, dim)) / dim
    rewards = [
        {"user": f"user-{start + n}", "reward": 1.0, "x": row.tolist()} for n, row in enumerate(x)
    ]
    httpx.post(url + "/v1/policies/large/rewards", json={"rewards": rewards}, timeout=600,
               trust_env=False).raise_for_status()
for n in range(1_200):
    if age() < before + users:
        break
    time.sleep(0.5)
else:
    raise SystemExit("no snapshot was written")
"""


def works() -> dict[str, Work | None]:
    """Return the kinds of work, by name."""
    return {
        "nothing": None,
        "explain": separate(READ, f"{ONE}/users/user-7", 30),
        "clusters": separate(READ, f"{ONE}/clusters", 30),
        "metrics": separate(READ, "/metrics", 30),
        "import": separate(IMPORT, DIM, 3),
        "snapshot": separate(SNAPSHOT, LARGE_DIM, LARGE_USERS),
        "export jsonl": separate(READ, f"{ONE}/export", 1),
        "export parquet": separate(READ, f"{ONE}/export?format=parquet", 1),
    }


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--users", type=int, default=USERS)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--only", nargs="*", help="kinds of work; all by default")
    options.add_argument("--store", type=Path, help="a store to use again, or to make")
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        path = given.store or Path(folder, "a.db")
        if not path.exists():
            fill(path, given.events, given.users)
        words = [sys.executable, "-m", "coterie", "serve", "--store", str(path), "--port", str(PORT)]
        words += ["--log-level", "warning", "--snapshot-every", str(LARGE_USERS)]
        with subprocess.Popen(words, env=os.environ) as server:
            try:
                _measure_all(server.pid, given.seconds, given.only)
            finally:
                server.terminate()


def _measure_all(pid: int, seconds: float, only: list[str] | None) -> None:
    for _ in range(600):
        try:
            httpx.get(f"{URL}/health/ready", trust_env=False).raise_for_status()
            break
        except httpx.HTTPError:
            time.sleep(0.2)
    columns = ("n", "p50 ms", "p99 ms", "max ms", "health", "s", "cores", "MB", "most")
    print(f"{'beside':<16}" + "".join(f"{name:>8}" for name in columns))
    for name, work in works().items():
        if only and name not in only:
            continue
        before, began = usage(pid).cpu, time.perf_counter()
        found = uvloop.run(measure(seconds, work))
        used = usage(pid)
        cores = (used.cpu - before) / (time.perf_counter() - began)
        numbers = "".join(f"{one:>8.1f}" for one in found[1:])
        print(
            f"{name:<16}{found.decisions:>8}{numbers}{cores:>8.2f}{used.memory:>8.0f}{used.most_memory:>8.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
