"""`python -m benchmarks.service_sizes`: what a service takes of disk and memory, and how long it starts.

AutoCLUB, d = 25, 10,000 users of 10 kinds with two decisions and rewards each, 25 items of 500; seed 0.
"""

from __future__ import annotations

import resource
import time
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np

from benchmarks.service import ARMS, DIM, ITEMS, KINDS, TASTES, USERS, VECTORS
from coterie.service.core.engine import PolicyEngine
from coterie.service.settings import PolicySettings
from coterie.service.storage.compaction import compact
from coterie.service.storage.sqlite import SQLiteStore


def memory() -> float:
    """The most memory that the process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def visit(engine: PolicyEngine, rng: np.random.Generator) -> None:
    """Each user comes twice in a row."""
    live = engine.create("default", PolicySettings(dim=DIM)).result
    live.change_items({f"item-{n}": x for n, x in enumerate(VECTORS)})
    for visit in range(2 * USERS):
        user = visit // 2
        shown = rng.choice(ITEMS, ARMS, replace=False)
        decision = live.decide(f"user-{user}", items=[f"item-{n}" for n in shown]).result
        x = VECTORS[int(decision.chosen[5:])]
        live.reward(decision.id, float(x @ TASTES[user % KINDS] + 0.1 * rng.normal()))
        if visit % 64 == 0:
            engine.wait()
    engine.wait()


def started(path: Path) -> float:
    """Seconds of CPU until a store can serve."""
    began = time.process_time()
    engine = PolicyEngine(SQLiteStore(path))
    seconds = time.process_time() - began
    engine.close()
    return seconds


def paused(users: int = 48_000, dim: int = 50) -> None:
    """Print how long a decision waits at most while a snapshot is made, and the memory that it takes."""
    arms, waits, stop = np.random.default_rng(0).normal(size=(ARMS, dim)), [0.0], Event()
    with TemporaryDirectory() as folder:
        engine = PolicyEngine(SQLiteStore(Path(folder, "a.db")), snapshot_every=10**9)
        names = tuple(str(n) for n in range(users))
        live = engine.create("default", PolicySettings(dim=dim, policy="LinUCBInd", users=names)).result
        size, before = live.state.policy.memory().total / 2**20, memory()

        def serve() -> None:
            for user in cycle(names):
                began = time.perf_counter()
                decision = live.decide(user, arms=arms).result
                waits.append(time.perf_counter() - began)
                live.reward(decision.id, 1.0)
                engine.journal.wake()
                if stop.wait(0.002):
                    return

        serving = Thread(target=serve)
        serving.start()
        for kind in ("whole", "what has changed"):
            del waits[1:]
            engine.snapshot("default")
            print(f"snapshot of {size:.0f} MB, {kind}: a decision waits {max(waits):.2f} s at most")
        stop.set()
        serving.join()
        print(f"memory that both took: {memory() - before:.0f} MB")
        engine.close()


def main() -> None:
    """Print the sizes."""
    with TemporaryDirectory() as folder:
        path, empty = Path(folder, "a.db"), memory()
        engine = PolicyEngine(SQLiteStore(path), snapshot_every=10**9)
        visit(engine, np.random.default_rng(0))
        print(f"memory: {(memory() - empty) * 1024 / USERS:.0f} kB a user")
        engine.journal.run(lambda: engine.store.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        print(f"log: {path.stat().st_size / (2 * USERS):.0f} bytes for a decision and its reward")
        engine.snapshot("default")
        ((size,),) = engine.store.query("SELECT SUM(LENGTH(content)) FROM chunk")
        print(f"snapshot: {size / 2**20:.0f} MB")
        engine.close()
        print(f"start from a snapshot: {started(path):.1f} s of CPU")
        store = SQLiteStore(path)
        store.open()
        with store.transaction():
            store.execute("DELETE FROM snapshot")
            store.execute("DELETE FROM chunk")
        print(f"compacted: {compact(store, 1e12).saved / (2 * USERS):.0f} bytes a decision less")
        store.close()
        print(f"replay: {started(path) / (4 * USERS) * 1e6:.0f} µs of CPU an event")
    paused()


if __name__ == "__main__":
    main()
