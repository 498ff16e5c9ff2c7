"""Running policies in environments, one by one or many at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Protocol, TypeVar

import numpy as np

from coterie.checks import shown, whole
from coterie.environments.delays import Delay
from coterie.environments.population import BLOCK, Population
from coterie.errors import ArgumentError
from coterie.kernels.play import Block, Ledger, Memory, Pending, play
from coterie.kernels.sampling import adjusted_rand
from coterie.policies.base import Policy
from coterie.policies.partition import by_appearance
from coterie.progress import Progress, quiet, visible
from coterie.traces import Trace
from coterie.types import Floats, Ints


class Environment(Protocol):
    """What the simulator asks of a world."""

    seed: int
    population: Population
    delay: Delay

    @property
    def n_users(self) -> int:
        """How many users there are in the end."""

    @property
    def dim(self) -> int:
        """The length of an arm's vector."""

    @property
    def labels(self) -> Ints:
        """The true cluster of each user."""

    def block(self, number: int) -> Block:
        """Rounds number·BLOCK to (number + 1)·BLOCK − 1."""


E = TypeVar("E", bound=Environment)


class Stopped(Exception):
    """A simulation was cancelled from outside."""


def simulate(
    policy: Policy,
    environment: Environment,
    horizon: int,
    *,
    record: int = 500,
    stop: threading.Event | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Play `horizon` rounds and write down `record` evenly spaced points; the policy learns on.

    A policy with fewer users than the world gets them by `add_users` as they appear.

    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> world = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1)
    >>> trace = coterie.simulate(coterie.LinUCBInd(8, 5, beta=0.1), world, 600, record=3)
    >>> trace.rounds.tolist()
    [200, 400, 600]
    """
    check(policy, environment, horizon, record)
    began = perf_counter()
    ledger = _blank_ledger(horizon, record, environment.n_users)
    pending = _blank_pending(environment.delay.most, policy.dim)
    memory: Memory | None = None
    for number in range(-(-horizon // BLOCK)):
        if stop is not None and stop.is_set():
            raise Stopped
        memory = _grow(policy, environment, number, memory)
        block = _cut(environment.block(number), horizon - number * BLOCK)
        if memory is None:
            memory = _blank_memory(policy, block)
        _play(policy, block, memory, pending, ledger)
        if progress is not None:
            progress(len(block.users), float(ledger.totals[0]))
    return _trace(policy, environment, ledger, perf_counter() - began)


def simulate_many(
    policies: Mapping[str, Callable[[E, int], Policy]],
    environment: Callable[[int], E],
    horizon: int,
    *,
    seeds: Iterable[int] = range(5),
    record: int = 500,
    jobs: int | None = None,
    progress: bool | None = None,
) -> list[Trace]:
    """Every policy in the world of every seed, on all cores; the same numbers as one by one.

    `policies` maps a name to a maker that gets the world and the seed; `environment` makes the world of a
    seed. Traces come by policy, then by seed. Ctrl-C stops all of them.

    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> def world(seed):
    ...     return coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=seed)
    >>> makers = {"one": lambda w, seed: coterie.LinUCBOne(w.n_users, w.dim, beta=0.1, seed=seed)}
    >>> [trace.policy for trace in simulate_many(makers, world, 300, seeds=[1, 2])]
    ['one', 'one']
    """
    chosen = list(seeds)
    tasks = [(name, seed) for name in policies for seed in chosen]
    stop = threading.Event()
    bar = visible if (progress is None or progress) else quiet
    with bar(len(tasks) * horizon, forced=bool(progress)) as advance:

        def run(task: tuple[str, int]) -> Trace:
            name, seed = task
            world = environment(seed)
            policy = policies[name](world, seed)
            trace = simulate(policy, world, horizon, record=record, stop=stop, progress=advance)
            return trace.named(name)

        workers = (os.cpu_count() or 1) if jobs is None else whole("jobs", jobs, 1)
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(run, task) for task in tasks]
            try:
                return [future.result() for future in futures]
            except BaseException:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def check(policy: Policy, environment: Environment, horizon: int, record: int) -> None:
    """Refuse what cannot be simulated."""
    if not isinstance(policy, Policy):
        raise ArgumentError(f"policy must be made by CLUB(...) or another maker, got {shown(policy)}")
    whole("horizon", horizon, 1)
    whole("record", record, 1)
    if policy.dim != environment.dim:
        raise ArgumentError(f"the policy has dim {policy.dim}, the environment {environment.dim}")
    if policy.n_users > environment.n_users:
        raise ArgumentError(f"the policy has {policy.n_users} users, the environment {environment.n_users}")


def _play(policy: Policy, block: Block, memory: Memory, pending: Pending, ledger: Ledger) -> None:
    generator = policy.generator
    before = generator.bit_generator.state
    draws = generator.random(len(block.users)) if policy.explores_ever else np.empty(0)
    generator.bit_generator.state = before
    ledger.counts[3] = policy.n_users
    used = play(policy.partition.state, policy.exploration, block, draws, memory, pending, ledger)
    if used:
        generator.random(used)


def _grow(policy: Policy, environment: Environment, number: int, memory: Memory | None) -> Memory | None:
    """Let in who has come by now; only a policy that is told the true clusters is told theirs."""
    present = environment.population.present(number)
    if policy.n_users >= present:
        return memory
    known = policy.n_users
    labels = environment.labels[known:present] if "labels" in policy.arguments else None
    policy.add_users(present - known, labels=labels)
    return None


def _cut(block: Block, rounds: int) -> Block:
    if rounds >= len(block.users):
        return block
    return block._replace(
        users=block.users[:rounds],
        picks=block.picks[:rounds],
        means=block.means[:rounds],
        noise=block.noise[:rounds],
        delays=block.delays[:rounds],
    )


def _blank_ledger(horizon: int, record: int, n_users: int) -> Ledger:
    n = min(record, horizon)
    marks = -(-np.arange(1, n + 1) * horizon // n)
    return Ledger(
        marks=np.append(marks, -1).astype(np.int64),
        regret=np.zeros(n),
        reward=np.zeros(n),
        explored=np.zeros(n, np.int64),
        labels=np.full((n, n_users), -1, np.int64),
        totals=np.zeros(2),
        counts=np.zeros(4, np.int64),
    )


def _blank_pending(most: int, dim: int) -> Pending:
    slots = most + 1 if most else 0
    return Pending(
        np.full(slots, -1, np.int64), np.zeros(slots, np.int64), np.zeros((slots, dim)), np.zeros(slots)
    )


def _blank_memory(policy: Policy, block: Block) -> Memory:
    state = policy.partition.state
    items = len(block.items) if block.lasting else 0
    squares = (block.items[:items] ** 2).sum(axis=1)
    rows = len(state.epochs)
    return Memory(np.empty((rows, items)), np.full(rows, -1, np.int64), squares)


def _trace(policy: Policy, environment: Environment, ledger: Ledger, seconds: float) -> Trace:
    truth = environment.labels
    found = [by_appearance(row[row >= 0]) for row in ledger.labels]
    ari: Floats = np.array([adjusted_rand(row, truth[: len(row)]) for row in found])
    return Trace(
        policy=policy.name,
        seed=environment.seed,
        rounds=ledger.marks[:-1],
        regret=ledger.regret,
        reward=ledger.reward,
        clusters=np.array([row.max() + 1 for row in found]),
        ari=ari,
        explored=ledger.explored / ledger.marks[:-1],
        seconds=seconds,
    )
