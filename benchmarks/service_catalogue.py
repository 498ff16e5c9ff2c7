"""`python -m benchmarks.service_catalogue`: decisions over HTTP among 100,000 items, d = 64, with one client.

What the policy itself takes to choose is compared with a decision over HTTP, in time and in CPU of the
server; a decision among 25 items shows what HTTP, the log and the commit take. Then a second client asks for
something else while the first decides among all items: the time that it waits should be that of one decision.
The server has a core of its own and a SQLite file; seed 0.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import numpy as np

from benchmarks.service_load import Served, on_other_cores
from benchmarks.timing import Table

ITEMS, DIM, USERS, FEW, REQUESTS = 100_000, 64, 50, 25, 200
SEEN = 100
"""Items that a request leaves out."""
ROUNDS = 3


def serve(port: int, store: str, policy: str, items: int, timings: str) -> None:
    """Serve a policy that has learnt a little; its own times go to a file first."""
    from coterie.service.http.server import make_server, open_engine, tune_process
    from coterie.service.item_tables import item_table
    from coterie.service.recommender import put_table
    from coterie.service.settings import ServerSettings

    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(items, DIM)) / DIM**0.5
    settings = ServerSettings(
        port=port, store=store, dim=DIM, policy=policy, log_level="error", snapshot_every=10**9
    )
    engine = open_engine(settings)
    live = engine.find("default")
    put_table(engine, live, item_table(vectors))
    taste = rng.normal(size=DIM)
    for n in range(20 * USERS):
        item = int(rng.integers(items))
        reward = float(vectors[item] @ taste + 0.1 * rng.normal())
        live.feedback(f"user-{n % USERS}", reward, item=str(item))
        if n % 64 == 0:
            engine.wait()
    engine.wait()
    tune_process()
    chosen, catalogue = live.state.policy, live.state.items.catalogue
    excluded = np.arange(SEEN)
    alone = {
        "all": median(lambda n: chosen.recommend(n % USERS, catalogue)),
        "exclude": median(lambda n: chosen.recommend(n % USERS, catalogue, exclude=excluded)),
    }
    with open(timings, "w", encoding="utf-8") as file:
        json.dump(alone, file)
    make_server(settings, engine).run()


def median(act: Callable[[int], object], count: int = REQUESTS) -> float:
    """Return the median of the milliseconds that something takes."""
    return float(np.median(measured(act, count)))


def measured(act: Callable[[int], object], count: int = REQUESTS) -> list[float]:
    """Return the milliseconds that something takes, time after time."""
    seconds = []
    for n in range(count):
        began = time.perf_counter()
        act(n)
        seconds.append(1e3 * (time.perf_counter() - began))
    return seconds


class Asking:
    """One client that decides over one connection."""

    def __init__(self, port: int) -> None:
        self._http = HTTPConnection("127.0.0.1", port, timeout=60)

    def decide(self, n: int, **request: Any) -> None:
        """Decide for a user."""
        body = json.dumps({"user": f"user-{n % USERS}", **request})
        path, headers = "/v1/policies/default/decisions", {"Content-Type": "application/json"}
        self._http.request("POST", path, body, headers)
        answer = self._http.getresponse()
        content = answer.read()
        assert answer.status == 200, content

    def is_live(self, n: int) -> None:
        """Ask whether the process runs."""
        self._http.request("GET", "/health/live")
        self._http.getresponse().read()


def waits_of_others(port: int, act: Callable[[Asking], Callable[[int], None]]) -> float:
    """Return the 99th percentile of the milliseconds of a request while another client decides among all."""
    stop = Event()

    def keep_deciding() -> None:
        client, n = Asking(port), 0
        while not stop.is_set():
            client.decide(n)
            n += 1

    thread = Thread(target=keep_deciding)
    thread.start()
    try:
        return float(np.quantile(measured(act(Asking(port)), 2 * REQUESTS), 0.99))
    finally:
        stop.set()
        thread.join()


def measure(policy: str, items: int) -> list[str]:
    """Return a row of the table."""
    cores = os.sched_getaffinity(0)
    with TemporaryDirectory() as folder:
        timings = os.path.join(folder, "alone.json")
        server = Served(
            partial(serve, policy=policy, items=items, timings=timings), os.path.join(folder, "a.db")
        )
        try:
            on_other_cores()
            with open(timings, encoding="utf-8") as file:
                alone = json.load(file)
            client, few = Asking(server.port), [str(n) for n in range(FEW)]
            seen = [str(n) for n in range(SEEN)]
            requests: dict[str, dict[str, Any]] = {
                "few": {"items": few},
                "all": {},
                "exclude": {"exclude": seen},
            }
            times: dict[str, list[float]] = {kind: [] for kind in requests}
            cpu: dict[str, list[float]] = {kind: [] for kind in requests}
            for _ in range(ROUNDS):  # in turns, since the machine may have other work
                for kind, request in requests.items():
                    before = server.cpu()
                    times[kind] += measured(partial(client.decide, **request))
                    cpu[kind].append(1e3 * (server.cpu() - before) / REQUESTS)
            health = waits_of_others(server.port, lambda other: other.is_live)
            deciding = waits_of_others(server.port, lambda other: partial(other.decide, items=few))
        finally:
            server.stop()
            os.sched_setaffinity(0, cores)  # or the next server would have to share the core of this client
    cells = [f"{np.median(times['few']):.2f}", f"{min(cpu['few']):.2f}"]
    for kind in ("all", "exclude"):
        http, used = float(np.median(times[kind])), min(cpu[kind])
        cells += [f"{one:.2f}" for one in (alone[kind], http, http / alone[kind], used, used / alone[kind])]
    return [policy, *cells, f"{health:.1f}", f"{deciding:.1f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", default="LinUCBInd,HierUCB,AutoCLUB", help="separated by commas")
    parser.add_argument("--items", type=int, default=ITEMS)
    options = parser.parse_args()
    kinds = [("among all", ""), (f"without {SEEN}", " ")]
    columns = [
        [f"{kind}: policy ms", f"HTTP ms{end}", f"ratio{end}", f"CPU ms{end}", f"CPU ratio{end}"]
        for kind, end in kinds
    ]
    heads = ("policy", f"among {FEW}: HTTP ms", "CPU ms", *columns[0], *columns[1], "health p99", "few p99")
    rows = [measure(policy, options.items) for policy in options.policies.split(",")]
    Table(
        f"Decisions among {options.items:,} items, d = {DIM}, one client; medians in ms", heads, rows
    ).show()


if __name__ == "__main__":
    main()
