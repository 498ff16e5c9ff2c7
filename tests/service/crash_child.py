"""A process that serves several threads until it is killed, and tells its parent what was acknowledged."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing.connection import Connection
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from coterie import CoterieError, Recommender
from coterie.service.storage import increments
from coterie.service.storage.event_store import EventStore
from service.shops import arms

THREADS = 4
OPTIONS: dict[str, Any] = {
    "dim": 3,
    "policy": "LinTSInd",
    "uniform_share": 0.2,
    "reward_wait": 0.05,
    "default_reward": 0.25,
    "late": "accept",
}


class CrashPoint(NamedTuple):
    """Kill the process before or after a statement that begins so, when it comes for the nth time."""

    when: str
    statement: str
    nth: int


POINTS = [
    (when, statement)
    for statement in (
        "BEGIN",
        "INSERT INTO log",
        "COMMIT",
        "INSERT INTO snapshot_part",
        "INSERT INTO snapshot VALUES",
        "INSERT INTO snapshot_base",
        "DELETE FROM snapshot WHERE policy = ? AND seq NOT IN",
        "DELETE FROM snapshot_part WHERE policy = ? AND seq NOT IN",
    )
    for when in ("before", "after")
]


def serve(where: str, acknowledged: Connection, cycle: int, point: CrashPoint | None) -> None:
    """Open the store and serve; ends by being killed."""
    patch.object(increments, "CHUNK", 16).start()
    patch.object(increments, "SHARE", 2.0).start()  # all but the first snapshot of a process are increments
    if point is not None:
        arm(point)
    recommender = Recommender(store=where, snapshot_every=25, **(OPTIONS if cycle == 0 else {}))
    recommender._engine._tick = 0.005
    telling = threading.Lock()

    def tell(*what: Any) -> None:
        with telling:
            acknowledged.send(what)

    tell("ready")
    for thread in range(THREADS):
        threading.Thread(
            target=client, args=(recommender, f"{cycle}-{thread}", tell, cycle * 10 + thread)
        ).start()


def client(recommender: Recommender, name: str, tell: Any, seed: int) -> None:
    """Decide, reward, repeat, for ever; every acknowledged answer is told."""
    rng = np.random.default_rng(seed)
    open_decisions: list[tuple[str, int]] = []
    for number in range(1_000_000):
        user, k, decision = f"u{rng.integers(8)}", 1 + int(rng.random() < 0.2), f"{name}-{number}"
        offer = arms(int(rng.integers(1000)))
        answer = recommender.decide(user, arms=offer, k=k, decision_id=decision)
        tell("decision", decision, answer)
        open_decisions.append((decision, k))
        chance = rng.random()
        if chance < 0.7:
            at = int(rng.integers(len(open_decisions)))
            decision, k = open_decisions[at]
            reward = 0.0 if k == 2 else float(rng.random())
            for _ in range(1 + int(rng.random() < 0.3)):  # retries count once
                try:
                    recommender.reward(decision, reward)
                except CoterieError:  # settled before with another reward
                    break
                tell("reward", decision)
        elif chance < 0.8:
            recommender.feedback(user, 0.5, x=offer[0], feedback_id=f"f{decision}")
            tell("reward", f"f{decision}")


def arm(point: CrashPoint) -> None:
    """Let the store kill this process at a statement."""
    from coterie.service.storage.postgresql import PostgresStore
    from coterie.service.storage.sqlite import SQLiteStore

    seen = 0
    for kind in (SQLiteStore, PostgresStore):
        real = kind.execute

        def execute(self: EventStore, statement: str, rows: Any = ((),), real: Any = real) -> None:
            nonlocal seen
            hit = False
            if statement.startswith(point.statement):
                seen += 1
                hit = seen == point.nth
            if hit and point.when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            real(self, statement, rows)
            if hit:
                os.kill(os.getpid(), signal.SIGKILL)

        patch.object(kind, "execute", execute).start()
