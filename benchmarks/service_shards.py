"""What shards cost a service: `python -m benchmarks.service_shards` measures processor time and recovery.

Processor time of the servers for a decision: through the plain service, straight to the shard of the user,
and through an address that passes on. Rates are worth reading only on an idle machine with a core a shard.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import httpx
import msgspec
import numpy as np

from benchmarks.service_load import Connection
from benchmarks.timing import Table, at_most
from coterie.placement import shard_of
from coterie.service.limits import Limits
from coterie.service.settings import ServerSettings
from coterie.service.shards.supervisor import Supervisor, running_shards
from coterie.validation import counted

DIM, ARMS, USERS = 20, 20, 1_000
CLIENTS = 16
PATH = "/v1/policies/default/decisions"
ROUNDS = 3


class Cost(NamedTuple):
    """Microseconds of all servers for a request, and requests a second."""

    cpu: float
    rate: float


class Requests(NamedTuple):
    """Requests for decisions, and the user of each."""

    users: list[str]
    bodies: list[bytes]


def requests(n: int, seed: int = 0) -> Requests:
    rng = np.random.default_rng(seed)
    users = [f"user-{number}" for number in rng.integers(USERS, size=n)]
    arms = (rng.normal(size=(50, ARMS, DIM)) / DIM**0.5).round(4).tolist()
    offers = [[{"id": f"a{k}", "x": x} for k, x in enumerate(one)] for one in arms]
    bodies = [
        msgspec.json.encode({"user": user, "arms": offers[number % len(offers)]})
        for number, user in enumerate(users)
    ]
    return Requests(users, bodies)


async def send(port: int, bodies: Sequence[bytes]) -> None:
    waiting, answers = list(range(len(bodies)))[::-1], [b""] * len(bodies)
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Connection(PATH, bodies, waiting, answers), "127.0.0.1", port)
        for _ in range(min(CLIENTS, len(bodies)))
    ]
    await asyncio.gather(*(client.done for _, client in made))


def seconds_of(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(pids: Sequence[int], groups: dict[int, list[bytes]]) -> Cost:
    """Send the requests of each port, all at the same time."""

    async def send_all() -> None:
        await asyncio.gather(*(send(port, bodies) for port, bodies in groups.items()))

    n = sum(map(len, groups.values()))
    before, began = sum(map(seconds_of, pids)), time.perf_counter()
    asyncio.run(send_all())
    rate = n / (time.perf_counter() - began)
    return Cost((sum(map(seconds_of, pids)) - before) / n * 1e6, rate)


def settings(folder: str, shards: int) -> ServerSettings:
    limits = Limits(user_limit=2**30, body_limit=2**30, bodies_limit=2**31, waiting_limit=2**32)
    return ServerSettings(store=folder, shards=shards, dim=DIM, port=0, log_level="error", limits=limits)


def wait_until_answering(port: int) -> None:
    while True:
        with suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{port}/health/ready").is_success:
                return
        time.sleep(0.1)


def plain_costs(asked: Requests) -> Cost:
    """Costs of a service without shards, in a process of its own."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "coterie", "serve", "--store", f"{folder}/a.db", "--port", "0"]
        process = subprocess.Popen(
            [*command, "--dim", str(DIM), "--log-level", "error"], stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        said = next(line for line in process.stderr if line.startswith("serving"))
        port = int(said.split(";")[0].rpartition(":")[2])
        wait_until_answering(port)
        found = [measured([process.pid], {port: asked.bodies}) for _ in range(ROUNDS)]
        process.terminate()
        process.wait()
    return Cost(min(one.cpu for one in found), max(one.rate for one in found))


def shard_costs(asked: Requests, shards: int) -> tuple[Cost, Cost]:
    """Costs straight to the shard of each user, and through the address of the whole service."""
    with TemporaryDirectory() as folder, running_shards(settings(folder, shards)) as supervisor:
        pids = [one.process.pid for one in supervisor.shards]
        ports = [port for _, port in supervisor.addresses]
        straight: dict[int, list[bytes]] = defaultdict(list)
        for user, body in zip(*asked, strict=True):
            straight[ports[shard_of(user, shards)]].append(body)
        front = {supervisor.front.getsockname()[1]: asked.bodies}
        found = [(measured(pids, straight), measured(pids, front)) for _ in range(ROUNDS)]
    costs = list(zip(*found, strict=True))
    direct, passed = (Cost(min(c.cpu for c in one), max(c.rate for c in one)) for one in costs)
    return direct, passed


def costs(n: int, counts: Sequence[int]) -> Table:
    asked = requests(n)
    plain = plain_costs(asked)
    rows = [("no shards", f"{plain.cpu:.0f}", "1.00", "", "", f"{plain.rate:,.0f}")]
    for shards in counts:
        direct, passed = shard_costs(asked, shards)
        limits = at_most(direct.cpu / plain.cpu, 1.1)
        rows += [
            (f"{counted(shards, 'shard')}, straight", f"{direct.cpu:.0f}", *limits, f"{direct.rate:,.0f}"),
            (
                f"{counted(shards, 'shard')}, one address",
                f"{passed.cpu:.0f}",
                f"{passed.cpu / plain.cpu:.2f}",
                "",
                "",
                f"{passed.rate:,.0f}",
            ),
        ]
    return Table(
        f"{n:,} decisions among {ARMS} arms, d = {DIM}, AutoCLUB: processor time of all servers",
        ("", "µs a request", "beside plain", "wanted", "", "requests/s"),
        rows,
    )


def recovery_seconds(supervisor: Supervisor) -> tuple[float, float]:
    """Seconds from the kill of a shard to its next answer, and processor time of the new process."""
    shard = supervisor.shards[0]
    port = supervisor.addresses[0][1]
    began = time.monotonic()
    os.kill(shard.process.pid, signal.SIGKILL)
    while True:
        with suppress(httpx.TransportError):
            answer = httpx.post(
                f"http://127.0.0.1:{port}{PATH}",
                json={"user": "somebody", "arms": [{"id": "a", "x": [0.1] * DIM}]},
                timeout=600,
            )
            if answer.is_success:
                return time.monotonic() - began, seconds_of(shard.process.pid)


def wait_for_snapshot(port: int) -> None:
    """Wait for the snapshot that an import has made due; a small one makes none."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
        age = next(line for line in text.splitlines() if line.startswith("coterie_snapshot_age_events{"))
        if float(age.rpartition(" ")[2]) < 50_000:
            return
        time.sleep(0.5)


def recoveries(sizes: Sequence[int]) -> Table:
    rng = np.random.default_rng(0)
    rows = []
    for users in sizes:
        with TemporaryDirectory() as folder:
            with running_shards(settings(folder, 1)) as supervisor:
                vectors = (rng.normal(size=(1_000, DIM)) / DIM**0.5).round(3).tolist()
                lines = b"\n".join(
                    msgspec.json.encode({"user": f"u{n}", "x": vectors[n % 1_000], "reward": n % 2})
                    for n in range(users)
                )
                url = f"http://127.0.0.1:{supervisor.addresses[0][1]}/v1/policies/default/import"
                answer = httpx.post(
                    url, content=lines, headers={"content-type": "application/json"}, timeout=3_600
                )
                answer.raise_for_status()
                wait_for_snapshot(supervisor.addresses[0][1])
                wall, cpu = recovery_seconds(supervisor)
                rows.append((f"{users:,}", f"{wall:.1f}", f"{cpu:.1f}"))
    heads = ("users", "seconds", "processor seconds")
    return Table("A killed shard: until it answers again, from a snapshot", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--users", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options = parser.parse_args()
    costs(options.requests, options.shards).show()
    recoveries(options.users).show()


if __name__ == "__main__":
    main()
