"""The contract of a policy, and how a maker such as `CLUB` becomes one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from inspect import signature
from os import PathLike
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from coterie.checks import LARGEST, number, positive, shown, whole
from coterie.errors import ArgumentError
from coterie.kernels import steps
from coterie.kernels.schedule import Schedule, explores
from coterie.policies.checks import (
    arm_vector,
    arms_matrix,
    finite,
    label_vector,
    reals,
    user_graph,
    user_index,
    users_array,
)
from coterie.policies.confidence import Confidence
from coterie.policies.partition import Partition, arrays, by_appearance
from coterie.seeding import check_seed, stream
from coterie.types import Floats, Ints, Scores

P = ParamSpec("P")
A = TypeVar("A", bound=np.ndarray[Any, Any])


class Plan(NamedTuple):
    """A policy as a sentence: who is pooled with whom, and when arms are played uniformly."""

    partition: Partition
    exploration: Schedule


class Maker(NamedTuple):
    """A policy's name, its plan and the names of its arguments."""

    name: str
    plan: Callable[..., Plan]
    arguments: tuple[str, ...]


MAKERS: dict[str, Maker] = {}
"""Every policy by name, filled as the modules are imported."""


class Policy:
    """A contextual linear bandit over many users, made by `CLUB`, `UniCLUB` and so on."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        """A policy without data; use the makers."""
        self._name = name
        self._arguments = arguments
        arguments["n_users"] = whole("n_users", arguments["n_users"], 1)
        arguments["dim"] = whole("dim", arguments["dim"], 1)
        arguments["ridge"] = positive("ridge", arguments["ridge"])
        arguments["seed"] = check_seed(arguments["seed"])
        for kept, own in (("labels", label_vector), ("graph", user_graph)):
            if kept in arguments:
                arguments[kept] = _frozen(own(arguments[kept], arguments["n_users"]).copy())
        confidence = arguments.get("confidence")
        given = isinstance(confidence, Confidence) and not isinstance(confidence, type)
        if "confidence" in arguments and not given:
            wanted = "Theory(...), Smoothed(...) or Tuned(...)"
            raise ArgumentError(f"confidence must be {wanted}, got {shown(confidence)}")
        self._partition, self._exploration = MAKERS[name].plan(**arguments)
        self._n_users, self._dim = int(arguments["n_users"]), int(arguments["dim"])
        self._rng = stream(arguments["seed"], "policy")

    @cached_property
    def _compiled(self) -> steps.Steps:
        """The steps as compiled for this policy's state; its types never change."""
        return steps.steps_for(self._partition.state)

    @property
    def name(self) -> str:
        """The name of the maker."""
        return self._name

    @property
    def arguments(self) -> dict[str, Any]:
        """What the policy was made with; `n_users` is as of now."""
        return dict(self._arguments)

    @property
    def n_users(self) -> int:
        """How many users there are now."""
        return self._n_users

    @property
    def dim(self) -> int:
        """The length d of an arm's vector."""
        return self._dim

    @property
    def rounds(self) -> int:
        """How many rewards have been absorbed."""
        return int(self._partition.state.clock[0])

    @property
    def exploring(self) -> bool:
        """Is the next round uniform?"""
        return self.explores_ever and bool(explores(self._exploration, self.rounds))

    @property
    def explores_ever(self) -> bool:
        """Has this policy uniform rounds at all?"""
        return self._exploration.first > 0 or self._exploration.phase > 0

    @property
    def estimates(self) -> Floats:
        """The most personal estimate θ̂ held for each user, (n_users, dim), read-only."""
        return _frozen(self._partition.estimates().copy())

    @property
    def pulls(self) -> Ints:
        """How many rewards T each user has given, (n_users,), read-only."""
        return _frozen(self._partition.pulls().copy())

    @property
    def partition(self) -> Partition:
        """The part that pools users, for the simulator and snapshots."""
        return self._partition

    @property
    def exploration(self) -> Schedule:
        """When arms are played uniformly."""
        return self._exploration

    @property
    def generator(self) -> np.random.Generator:
        """Where uniform arms are drawn from."""
        return self._rng

    def recommend(self, user: int, arms: ArrayLike) -> int:
        """The arm to play for this user now: a row number of `arms`, shape (K, dim)."""
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        if self.exploring:
            finite("arms", matrix)
            return int(self._rng.random() * len(matrix))
        state = self._partition.state
        arm = int(self._compiled.decide(state, user, matrix, LARGEST))
        if arm < 0:
            finite("arms", matrix)
            raise ArgumentError(f"arms must be shorter than {LARGEST:g} for their widths; scale them down")
        return arm

    def recommend_many(self, users: ArrayLike, arms: ArrayLike) -> Ints:
        """`recommend` for each user in turn; `arms` is (K, dim) for all or (n, K, dim), one set each."""
        served = users_array(users, self.n_users)
        stack = finite("arms", reals("arms", arms, "an array"))
        n, d = len(served), self.dim
        shared = stack.ndim == 2
        wanted = (d,) if shared else (n, d)
        got = stack.shape[-1:] if shared else (stack.shape[0], stack.shape[-1])
        if stack.ndim not in (2, 3) or got != wanted or stack.shape[-2] == 0:
            raise ArgumentError(f"arms must have shape (K, {d}) or ({n}, K, {d}), got {stack.shape}")
        chosen = [self.recommend(int(u), stack if shared else stack[k]) for k, u in enumerate(served)]
        return np.array(chosen, np.int64)

    def update(self, user: int, x: ArrayLike, reward: float) -> None:
        """Absorb the reward that this user gave for the arm with vector x, whenever it comes."""
        user, vector = user_index(user, self._n_users), arm_vector(x, self._dim)
        state, value = self._partition.state, number("reward", reward)
        if not self._compiled.update(state, user, vector, value, LARGEST):
            finite("x", vector)

    def update_many(self, users: ArrayLike, xs: ArrayLike, rewards: ArrayLike) -> None:
        """`update` for each row in turn: users (n,), xs (n, dim), rewards (n,); all or nothing."""
        served = users_array(users, self.n_users)
        n, d = len(served), self.dim
        vectors = finite("xs", reals("xs", xs, f"an (n, {d}) array"))
        values = finite("rewards", reals("rewards", rewards, "a vector"))
        if n == 0 and vectors.size == 0 and values.size == 0:
            return
        if vectors.shape != (n, d) or values.shape != (n,):
            raise ArgumentError(
                f"users, xs and rewards must have shapes ({n},), ({n}, {d}) and ({n},), "
                f"got {served.shape}, {vectors.shape} and {values.shape}"
            )
        steps.update_many(self._partition.state, served, vectors, values)

    def scores(self, user: int, arms: ArrayLike) -> Scores:
        """Estimated mean, width of the bonus and their sum for each arm: why an arm is chosen."""
        user, matrix = user_index(user, self.n_users), finite("arms", arms_matrix(arms, self.dim))
        mean, width = np.empty(len(matrix)), np.empty(len(matrix))
        steps.score(self._partition.state, user, matrix, mean, width)
        return Scores(mean, width, mean + width)

    def labels(self) -> Ints:
        """The cluster of each user, numbered in order of first appearance."""
        return by_appearance(self._partition.labels())

    def cluster_of(self, user: int) -> Ints:
        """The users whose data counts for this one, itself included, ascending."""
        return self._partition.cluster_of(user_index(user, self.n_users))

    def add_users(self, n: int, *, labels: ArrayLike | None = None) -> None:
        """Make room for n more users, who join as the algorithm's start says; `labels` are for the oracle."""
        n = whole("n", n, 1)
        arguments = grown(self._arguments, n, labels)
        partition, exploration = MAKERS[self._name].plan(**arguments)
        known = self.n_users
        for (_, old), (_, new) in zip(arrays(self._partition.state), arrays(partition.state), strict=True):
            new[tuple(slice(0, size) for size in old.shape)] = old
        partition.welcome(known)
        self._arguments, self._partition, self._exploration = arguments, partition, exploration
        self._n_users = int(arguments["n_users"])

    def save(self, path: str | PathLike[str]) -> None:
        """Write a snapshot that `coterie.load` continues from with the very same next decision."""
        from coterie.policies.snapshots import save

        save(self, path)

    def __repr__(self) -> str:
        """The name, the size, and how far it has come."""
        clusters = len(np.unique(self._partition.labels()))
        size = f"{self.n_users} users in {clusters} clusters, dim {self.dim}"
        return f"<{self._name}: {size}, {self.rounds} rounds>"


def grown(arguments: dict[str, Any], n: int, labels: ArrayLike | None) -> dict[str, Any]:
    """The arguments of the same policy with n more users."""
    more = dict(arguments, n_users=arguments["n_users"] + n)
    if "labels" in arguments:
        if labels is None:
            raise ArgumentError(f"labels must be {n} whole numbers, the clusters of the new users, got None")
        more["labels"] = np.concatenate([arguments["labels"], label_vector(labels, n)])
    elif labels is not None:
        raise ArgumentError("labels are for LinUCBOracle; this policy finds them itself")
    if "graph" in arguments:
        more["graph"] = np.pad(arguments["graph"], (0, n))
    return more


def policy(plan: Callable[P, Plan]) -> Callable[P, Policy]:
    """A maker of policies from a function that plans one."""
    name, parameters = plan.__name__, signature(plan)
    MAKERS[name] = Maker(name, plan, tuple(parameters.parameters))

    @wraps(plan)
    def make(*args: P.args, **kwargs: P.kwargs) -> Policy:
        bound = parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        return Policy(name, dict(bound.arguments))

    make.__annotations__ = {**plan.__annotations__, "return": Policy}
    vars(make)["__signature__"] = parameters.replace(return_annotation=Policy)
    return make


def _frozen(array: A) -> A:
    array.flags.writeable = False
    return array
