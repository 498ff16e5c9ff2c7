"""Simulations of policies in environments, one by one or many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import numpy as np

from coterie.environments.blocks import BLOCK, Block, Environment
from coterie.errors import ArgumentError
from coterie.parallel import run_all
from coterie.policies.base import LinearBandit, too_long
from coterie.policies.kernel.learner import Learner
from coterie.policies.protocols import ListPolicy, PairPolicy, Policy
from coterie.progress import Progress, progress_bar
from coterie.simulation._rounds import AnyPolicy, Ledger, Pending, Remembered, Shown, play
from coterie.simulation.duels import play_duels
from coterie.simulation.rand_index import adjusted_rand, n_labels
from coterie.simulation.traces import Trace
from coterie.types import Ints
from coterie.validation import item_ids, shown, whole

E = TypeVar("E", bound=Environment)
AnyKind: TypeAlias = Policy | ListPolicy | PairPolicy

KINDS: Mapping[str, tuple[type, str]] = MappingProxyType(
    {
        "arms": (Policy, "recommend and update"),
        "lists": (ListPolicy, "recommend_list and update_list"),
        "duels": (PairPolicy, "recommend_pair and update_pair"),
    }
)
"""The protocol that a policy must implement for each kind of round, and the names of its methods."""

MOST_REMEMBERED = 2**26
"""Maximal memory of the width cache of a run in bytes: 8 for each row of statistics and lasting item.

A run that would need more has no cache: every width is then bounded from scratch, with the same decisions.
"""


class Stopped(Exception):
    """Raised by `simulate` soon after its `stop` event was set.

    Examples
    --------
    >>> import threading, coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> env = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10)
    >>> stop = threading.Event()
    >>> stop.set()
    >>> coterie.simulate(coterie.LinUCBInd(8, 5), env, 1000, stop=stop)
    Traceback (most recent call last):
    coterie.simulation.simulator.Stopped
    """


def simulate(
    policy: AnyKind,
    environment: Environment,
    horizon: int,
    *,
    record: int = 500,
    stop: threading.Event | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Run a policy in an environment.

    The policy continues from its current state and learns from the rounds.

    Parameters
    ----------
    policy : Policy, ListPolicy or PairPolicy
        Any object with `recommend(user, arms)` and `update(user, x, reward)`; for environments with lists,
        with `recommend_list` and `update_list`; for duels, with `recommend_pair` and `update_pair`. Methods
        with a parameter `items` (in `update`, `item`) are given the ids of lasting items.
        Policies of this package run without the GIL (except in duels), with the same results. If a policy
        has fewer users than the environment, its `add_users` is called when new users appear.
    environment : Environment
        Source of users, arms and rewards, such as `Stochastic(...)`. Its rounds depend only on its seed,
        never on the policy.
    horizon : int
        Number of rounds, at least 1.
    record : int, default 500
        Number of evenly spaced points to record, at least 1; at most `horizon` points are recorded.
    stop : threading.Event, optional
        Event that stops the simulation: soon after it is set, `Stopped` is raised.
    progress : callable, optional
        Called as progress(rounds, regret) with the number of rounds since the last call and the regret so
        far.

    Returns
    -------
    Trace
        Cumulative regret, reward and clusters. `seconds` is the time of the policy, without that of
        generating the rounds.

    Raises
    ------
    ArgumentError
        If the policy lacks a method, or its `dim` or `n_users` do not fit the environment.
    Stopped
        If `stop` was set.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> env = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1)
    >>> trace = coterie.simulate(coterie.LinUCBInd(8, 5, beta=0.1), env, 600, record=3)
    >>> trace.rounds.tolist()
    [200, 400, 600]
    """
    horizon = whole("horizon", horizon, 1)
    check_horizon(environment, horizon)
    run = _Run(policy, environment, horizon, whole("record", record, 1))
    for number in range(-(-horizon // BLOCK)):
        if stop is not None and stop.is_set():
            raise Stopped
        rounds = run.play(number)
        if progress is not None:
            progress(rounds, run.ledger.regret)
    return run.trace()


class _Run:
    """State of a simulation: policy, environment, position and recorded values."""

    def __init__(self, policy: AnyKind, environment: Environment, horizon: int, record: int) -> None:
        self.known = check(policy, environment)
        self.policy, self.environment, self.horizon = policy, environment, horizon
        self.learner: Learner = AnyPolicy(policy, self.known, environment.dim)
        self.lock: AbstractContextManager[object] = nullcontext()
        if isinstance(policy, LinearBandit):
            self.learner, self.lock = policy.learner, policy.lock
        points = min(record, horizon)
        marks = -(-np.arange(1, points + 1) * horizon // points)
        truth = environment.labels
        self.ledger = Ledger(marks.astype(np.int64), environment.n_users, lambda found: judged(found, truth))
        self.pending: Pending | None = None
        self.remembered: Remembered | None = None
        self.shown: Shown | None = None
        self.seconds = 0.0

    def play(self, number: int) -> int:
        """Run a block and return its number of rounds."""
        self._add_new_users(self.environment.present(number))
        block = self.environment.block(number).first(self.horizon - number * BLOCK)
        pending = self.pending = self.pending or self._start(block)
        began = perf_counter()
        with self.lock:
            if self.learner.n_users > self.environment.n_users:
                raise ArgumentError(
                    "the policy must not have more users than the environment: "
                    "users were added to it during the simulation"
                )
            check_block(block, self.learner.n_users, self.environment.dim, self.environment.longest_delay)
            if block.lasting and (self.remembered is None or self.remembered.n_rows != self.learner.n_rows):
                self.remembered = self._remember(block)
            if block.sharpness > 0 and isinstance(self.policy, PairPolicy):
                play_duels(self.policy, self.learner, block, self.ledger)
            else:
                play(self.learner, block, self.ledger, pending, self.remembered, self._shown(block))
        self.seconds += perf_counter() - began
        return len(block.users)

    def _start(self, block: Block) -> Pending:
        """Check that the policy has the required methods, and allocate memory for delayed feedback."""
        kind, wanted = KINDS["duels" if block.sharpness > 0 else "lists" if block.length > 1 else "arms"]
        if not isinstance(self.policy, kind):
            raise ArgumentError(f"policy must have the methods {wanted} here, got {shown(self.policy)}")
        return Pending(self.environment.longest_delay, block.length, self.environment.dim)

    def _add_new_users(self, present: int) -> None:
        """Add the users that have appeared; only oracle policies receive their true clusters."""
        known, self.known = self.known, max(self.known, present)
        if known >= present:
            return
        oracle = "labels" in getattr(self.policy, "arguments", ())
        truth = self.environment.labels
        labels = {"labels": truth[known:present]} if oracle and truth is not None else {}
        if hasattr(self.policy, "add_users"):
            self.policy.add_users(present - known, **labels)
        if isinstance(self.learner, AnyPolicy):
            self.learner.grow(present)

    def _remember(self, block: Block) -> Remembered | None:
        """Allocate the width cache of lasting items; None if the policy cannot use it or it is too large."""
        if not isinstance(self.policy, LinearBandit):
            return None
        if not self.learner.accepts(block.items):
            raise too_long("items", self.learner.ridge)
        rows = self.learner.n_rows
        return Remembered(block.items, rows) if 8 * rows * len(block.items) <= MOST_REMEMBERED else None

    def _shown(self, block: Block) -> Shown | None:
        """What users have been shown, where an item is shown to a user once; None where it may repeat."""
        if not block.unseen:
            return None
        if self.shown is None:
            self.shown = Shown(self.environment.n_users, len(block.items))
        if self.shown.n_items != len(block.items):
            raise ArgumentError("the environment must have the same items in every block with `unseen`")
        return self.shown

    def trace(self) -> Trace:
        """Return the recorded values."""
        ledger = self.ledger
        return Trace(
            policy=str(getattr(self.policy, "name", type(self.policy).__name__)),
            seed=self.environment.seed,
            rounds=ledger.marks,
            regret=ledger.regrets,
            reward=ledger.rewards,
            uniform=ledger.uniforms,
            clusters=ledger.clusters,
            ari=ledger.ari,
            explored=ledger.uniform_rounds / ledger.marks,
            seconds=self.seconds - ledger.judging,
        )


def judged(labels: Ints, truth: Ints | None) -> tuple[int, float]:
    """Compute the number of clusters and the adjusted Rand index (NaN without true clusters).

    Users that have not appeared yet have the label −1; their numbers are the highest.
    """
    known = labels[labels >= 0]
    if len(known) == 0:
        return -1, np.nan
    return n_labels(known), np.nan if truth is None else adjusted_rand(known, truth[: len(known)])


def simulate_many(
    policies: Mapping[str, Callable[[E, int], AnyKind]],
    environment: Callable[[int], E],
    horizon: int,
    *,
    seeds: Iterable[int] = range(5),
    record: int = 500,
    jobs: int | None = None,
    progress: bool | None = None,
) -> list[Trace]:
    """Run several policies in the environments of several seeds, on all processors.

    The traces are the same as those of separate calls of `simulate`. Ctrl-C stops all runs.

    Parameters
    ----------
    policies : mapping of str to callable
        Functions that create a policy, by name; each is called as make(environment, seed).
    environment : callable
        Function that creates the environment of a seed, called as environment(seed).
    horizon : int
        Number of rounds of each run, at least 1.
    seeds : iterable of int, default range(5)
        Seeds, each at least 0; for each seed all policies see the same users, arms and noise. Use 5 or more
        to see how results vary.
    record : int, default 500
        Number of evenly spaced points to record in each run, at least 1.
    jobs : int, optional
        Number of parallel runs, at least 1; by default one per processor.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal or in a notebook, after two seconds.

    Returns
    -------
    list of Trace
        One trace per policy and seed, ordered by policy, then by seed.

    Raises
    ------
    ArgumentError
        If a policy and its environment do not fit.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> def make_env(seed):
    ...     return coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=seed)
    >>> policies = {"one": lambda env, seed: coterie.LinUCBOne(env.n_users, env.dim, beta=0.1, seed=seed)}
    >>> traces = simulate_many(policies, make_env, 500, seeds=range(2))
    >>> [(trace.policy, trace.seed) for trace in traces]
    [('one', 0), ('one', 1)]
    """
    made = policies.values() if isinstance(policies, Mapping) else ()
    if not callable(environment) or not made or not all(map(callable, made)):
        raise ArgumentError(
            "policies must map names to functions of (environment, seed) that return a policy, "
            "and environment must be a function of a seed that returns an environment"
        )
    if not isinstance(seeds, Iterable):
        raise ArgumentError(f"seeds must be integers such as range(5), got {shown(seeds)}")
    chosen = list(seeds)
    tasks = [(name, seed) for name in policies for seed in chosen]
    stop = threading.Event()
    with progress_bar(len(tasks) * horizon, "round", shown=progress) as advance:

        def run(task: tuple[str, int]) -> tuple[tuple[str, int], Trace]:
            def played(rounds: int, regret: float) -> None:
                advance(rounds)

            name, seed = task
            env = environment(seed)
            policy = policies[name](env, seed)
            trace = simulate(policy, env, horizon, record=record, stop=stop, progress=played)
            return task, trace.named(name)

        traces = dict(run_all(tasks, run, jobs=jobs, stop=stop))
    return [traces[task] for task in tasks]


def check(policy: AnyKind, environment: Environment) -> int:
    """Check that the policy and the environment fit; return the number of users of the policy."""
    if not hasattr(environment, "block"):
        raise ArgumentError(
            f"environment must be an Environment such as Stochastic(...), got {shown(environment)}"
        )
    if isinstance(policy, type) or not isinstance(policy, Policy | ListPolicy | PairPolicy):
        raise ArgumentError(f"policy must have the methods recommend and update, got {shown(policy)}")
    dim = getattr(policy, "dim", environment.dim)
    if dim != environment.dim:
        raise ArgumentError(f"the policy has dim {dim}, the environment {environment.dim}")
    users = getattr(policy, "n_users", None)
    if users is None:
        return environment.present(0)
    known = whole("n_users of the policy", users, 1)
    if known > environment.n_users:
        raise ArgumentError(f"the policy has {known} users, the environment {environment.n_users}")
    if known < environment.n_users and not hasattr(policy, "add_users"):
        raise ArgumentError(
            f"the policy has {known} users and no add_users, the environment has {environment.n_users}"
        )
    return known


def check_horizon(environment: Environment, horizon: int) -> None:
    """Check the horizon of an environment with a limited number of rounds (`n_rounds`)."""
    most = getattr(environment, "n_rounds", None)
    if most is not None and horizon > most:
        raise ArgumentError(
            f"horizon must be at most {most}, the number of rounds of the environment, got {horizon}"
        )


def check_block(block: Block, n_users: int, dim: int, longest: int) -> None:
    """Check users, items and delays of a block, because the compiled code does not check them."""
    n, width = block.picks.shape
    shapes = (block.users.shape, block.means.shape, block.noise.size, block.delays.shape)
    signed = block.signs is None or block.signs.shape == (n,)
    if shapes != ((n,), (n, width), n * block.length, (n,)) or block.items.shape[1:] != (dim,) or not signed:
        raise ArgumentError(
            "the environment must return a block whose arrays have the shapes that Block documents"
        )
    least = -1 if block.unseen else 0
    within = (
        (block.users, 0, n_users, "users"),
        (block.picks, least, len(block.items), "picks"),
        (block.delays, 0, longest + 1, "delays"),
    )
    for numbers, low, limit, name in within:
        if numbers.size and not (numbers.min() >= low and numbers.max() < limit):
            raise ArgumentError(f"the environment must return {name} from {low} to {limit - 1}")
    if block.ids is not None:
        item_ids(block.ids, (len(block.items),), distinct=False)
    if block.unseen and (block.unseen < 0 or not block.lasting or block.length > 1 or block.sharpness > 0):
        raise ArgumentError(
            "the environment may show items once (unseen) only if they are lasting and shown one at a time"
        )
    if not 1 <= block.length <= width:
        raise ArgumentError(f"the environment must show lists of 1 to {width} arms, got {block.length}")
