"""Kill shards again and again under load: nothing acknowledged is lost, nothing counts twice.

`make torture-shards` does it 100 times; see `--help`.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from coterie import Client, Recommender
from coterie.placement import shard_of
from coterie.service.settings import ServerSettings
from coterie.service.shards.supervisor import Supervisor, running_shards

SHARDS = 3


class Shards:
    """A service that runs, its address and those of its shards."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.port = supervisor.front.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.ports = [port for _, port in supervisor.addresses]

    def own(self, shard: int) -> str:
        return f"http://127.0.0.1:{self.ports[shard]}"

    def send(self, shard: int, number: signal.Signals) -> int:
        found = self.supervisor.shards[shard].process.pid
        os.kill(found, number)
        return found

    def wait_for_restart(self, shard: int, before: int) -> None:
        """Wait until another process serves than this one."""
        supervised = self.supervisor.shards[shard]
        eventually(lambda: supervised.process.pid != before and supervised.serving.is_set())


@contextmanager
def sharded(folder: Path | str, **options: Any) -> Iterator[Shards]:
    settings = ServerSettings(
        store=str(folder), port=0, log_level="warning", **{"shards": SHARDS, "dim": 3, **options}
    )
    with running_shards(settings) as supervisor:
        yield Shards(supervisor)


def eventually(claim: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < until
        time.sleep(0.05)


def user_in(shard: int, prefix: str = "user", shards: int = SHARDS) -> str:
    return next(name for n in range(1_000) if shard_of(name := f"{prefix}-{n}", shards) == shard)


class Alone:
    """For each shard a recommender in this process, which gets the requests of that shard's users."""

    def __init__(self) -> None:
        self.recommenders = [Recommender(dim=3) for _ in range(SHARDS)]

    def of(self, user: str) -> Recommender:
        return self.recommenders[shard_of(user, SHARDS)]


def taste(user: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([1.0, -1.0, 0.5] if len(user) % 2 else [-0.5, 1.0, 0.2])


def play(client: Client, alone: Alone, prefix: str, rounds: int, seed: int) -> None:
    """Decide and reward through the service and in this process; both must do the same."""
    rng = np.random.default_rng(seed)
    for number in range(rounds):
        user = f"{prefix}{'x' * int(rng.integers(2))}-{rng.integers(12)}"
        arms = {f"arm {k}": x for k, x in enumerate(rng.normal(size=(5, 3)).round(3) / 2)}
        decision = f"{prefix}-{number}" if number % 3 == 0 else None
        given = client.decide(user, arms=arms, decision_id=decision)
        same = alone.of(user).decide(user, arms=arms, decision_id=given.id)
        assert (given.chosen, given.propensity) == (same.chosen, same.propensity)
        assert [one.mean for one in given.scores] == [one.mean for one in same.scores]
        reward = round(float(arms[given.chosen] @ taste(user)), 3)
        assert client.reward(given.id, reward).status in ("counted", "duplicate")
        alone.of(user).reward(given.id, reward)


class Load:
    """A user of each shard who asks and rewards without pause, and a recommender that does the same."""

    def __init__(self, service: Shards, alone: Alone) -> None:
        self._service, self._alone, self._stop = service, alone, threading.Event()
        self.errors: list[Exception] = []
        self.made = [0] * SHARDS
        self._threads = [threading.Thread(target=self._run, args=(shard,)) for shard in range(SHARDS)]
        for thread in self._threads:
            thread.start()

    def _run(self, shard: int) -> None:
        user = user_in(shard, "load")
        alone = self._alone.of(user)
        try:
            with Client(self._service.url) as client:
                while not self._stop.is_set():
                    arms = {"p": [1.0, 0.1, 0.2], "q": [0.1, 1.0, self.made[shard] % 7 / 7]}
                    own_id = f"load-{shard}-{self.made[shard]}" if self.made[shard] % 4 == 0 else None
                    given = client.decide(user, arms=arms, decision_id=own_id)
                    client.reward(given.id, 0.5)
                    self.made[shard] += 1
                    same = alone.decide(user, arms=arms, decision_id=given.id)
                    assert same.chosen == given.chosen
                    alone.reward(given.id, 0.5)
        except Exception as error:
            self.errors.append(error)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


class Tally(NamedTuple):
    """How many decisions were acknowledged with their rewards."""

    kills: int
    acknowledged: int


def torture(folder: Path | str, kills: int, seed: int = 0, longest: float = 0.5) -> Tally:
    """Kill shards one after the other; AssertionError if anything was lost, doubled or decided otherwise."""
    rng, alone = np.random.default_rng(seed), Alone()
    with sharded(folder, snapshot_every=50) as service, Client(service.url) as client:
        play(client, alone, "before", 30, seed=seed)
        load = Load(service, alone)
        for number in range(kills):
            time.sleep(float(rng.uniform(0.0, longest)))
            shard = number % SHARDS if number < SHARDS else int(rng.integers(SHARDS))
            service.wait_for_restart(shard, service.send(shard, signal.SIGKILL))
        before = list(load.made)
        eventually(lambda: bool(load.errors) or all(np.array(load.made) > before))
        load.stop()
        assert load.errors == []
        play(client, alone, "after", 60, seed=seed + 1)
        whole, expected = client.describe(), 30 + sum(load.made) + 60
        assert whole.events["decision"] == whole.events["reward"] == whole.rounds == expected
    return Tally(kills, expected)


def main() -> None:
    """Torture a service of several shards from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        tally = torture(f"{folder}/shop", options.kills, options.seed)
    print(
        f"{SHARDS} shards, seed {options.seed}: {tally.kills} kills in {time.monotonic() - began:.0f} s; "
        f"{tally.acknowledged} decisions and rewards acknowledged; 0 lost, 0 counted twice, decisions equal"
    )


if __name__ == "__main__":
    main()
