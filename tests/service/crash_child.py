"""A process that serves several threads until it is killed, and reports what was acknowledged."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing.connection import Connection
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from coterie import CoterieError, Recommender
from coterie.service.storage.event_store import EventStore
from coterie.service.storage.location import open_store
from inspection import engine_of, keep_house_every
from service.shops import arms

THREADS = 4
OPTIONS: dict[str, Any] = {
    "dim": 3,
    "policy": "LinTSInd",
    "uniform_share": 0.2,
    "reward_wait": 0.05,
    "default_reward": 0.25,
    "late": "accept",
    "log_offers": "all",
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
        "INSERT INTO chunk",
        "INSERT INTO snapshot",
        "DELETE FROM snapshot WHERE policy = ? AND seq NOT IN",
        "DELETE FROM chunk WHERE policy = ? AND digest IN",
    )
    for when in ("before", "after")
]


def serve(where: str, acknowledged: Connection, cycle: int, point: CrashPoint | None) -> None:
    """Open the store and serve; ends by being killed."""
    store = open_store(where)
    if point is not None:
        arm(store, point)
    recommender = Recommender(store=store, snapshot_every=25, **(OPTIONS if cycle == 0 else {}))
    keep_house_every(engine_of(recommender), 0.005)
    reporting = threading.Lock()

    def report(*what: Any) -> None:
        with reporting:
            acknowledged.send(what)

    report("ready")
    for thread in range(THREADS):
        threading.Thread(
            target=client, args=(recommender, f"{cycle}-{thread}", report, cycle * 10 + thread)
        ).start()


def client(recommender: Recommender, name: str, report: Any, seed: int) -> None:
    """Decide, reward, repeat, for ever; report every acknowledged answer."""
    rng = np.random.default_rng(seed)
    open_decisions: list[tuple[str, int]] = []
    for number in range(1_000_000):
        user, k, decision = f"u{rng.integers(8)}", 1 + int(rng.random() < 0.2), f"{name}-{number}"
        offer = arms(int(rng.integers(1000)))
        answer = recommender.decide(user, arms=offer, k=k, decision_id=decision)
        report("decision", decision, answer)
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
                report("reward", decision)
        elif chance < 0.8:
            recommender.feedback(user, 0.5, x=offer[0], feedback_id=f"f{decision}")
            report("reward", f"f{decision}")
        else:
            decision, k = open_decisions[int(rng.integers(len(open_decisions)))]
            part = f"p{rng.integers(3)}"
            for _ in range(1 + int(rng.random() < 0.3)):
                try:
                    recommender.reward(decision, float(part[1:]) / 4, part=part)
                except CoterieError:  # a list, or settled before by one reward
                    break
                report("part", decision, part)


def arm(store: EventStore, point: CrashPoint) -> None:
    """Let a store kill this process at a statement."""
    real, seen = store.execute, 0

    def execute(statement: str, rows: Any = ((),)) -> None:
        nonlocal seen
        hit = False
        if statement.startswith(point.statement):
            seen += 1
            hit = seen == point.nth
        if hit and point.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        real(statement, rows)
        if hit:
            os.kill(os.getpid(), signal.SIGKILL)

    patch.object(store, "execute", execute).start()
