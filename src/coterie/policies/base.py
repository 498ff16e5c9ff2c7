"""Our policies: one class around a compiled learner, and how a maker such as `CLUB` becomes one of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from os import PathLike
from threading import RLock
from typing import Any, NamedTuple, ParamSpec, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies._learner import LONGEST2, Learner
from coterie.policies.confidence import Confidence
from coterie.policies.schedule import Schedule
from coterie.seeding import check_seed, stream
from coterie.types import Floats, Ints, Scores
from coterie.validation import (
    arm_vector,
    arms_matrix,
    finite,
    label_vector,
    number,
    positive,
    reals,
    shown,
    user_graph,
    user_index,
    users_array,
    whole,
)

P = ParamSpec("P")
A = TypeVar("A", bound=np.ndarray[Any, Any])

MOST_USERS = 2**31
"""More users than any memory holds; keeps sizes inside 64 bits."""
MOST_DIM = 2**20
"""A longer vector would need a matrix of terabytes."""


class Plan(NamedTuple):
    """A policy as data: the kind of learner, its settings, and when arms are played uniformly."""

    learner: type[Learner]
    settings: dict[str, Any]
    schedule: Schedule = Schedule()

    def build(self, n_users: int, dim: int, ridge: float, generator: np.random.Generator) -> Learner:
        """The learner before its first round."""
        return self.learner(
            n_users, dim, ridge=ridge, schedule=self.schedule, generator=generator, **self.settings
        )


PLANS: dict[str, Callable[..., Plan]] = {}
"""What plans each of our policies, by name; filled as the modules of the families are imported."""


@final
class LinearBandit:
    """A contextual linear bandit over many users, made by `CLUB`, `AutoCLUB` and so on.

    Any number of threads may use one policy; they take turns. Different policies run in parallel.
    """

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        """Make a policy without data; use the makers."""
        self._name = name
        self._arguments = checked(arguments)
        self._rng = stream(self._arguments["seed"], "policy")
        self._n_users: int = self._arguments["n_users"]
        self._dim: int = self._arguments["dim"]
        plan = PLANS[name](**self._arguments)
        self._learner = plan.build(self._n_users, self._dim, self._arguments["ridge"], self._rng)
        self._lock = RLock()

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
        return self._learner.rounds

    @property
    def exploring(self) -> bool:
        """Is the next round uniform?"""
        return bool(self._learner.exploring)

    @property
    def exploration(self) -> Schedule:
        """When arms are played uniformly."""
        return self._learner.schedule

    @property
    def estimates(self) -> Floats:
        """The most personal estimate θ̂ held for each user, (n_users, dim), read-only."""
        with self._lock:
            return frozen(self._learner.estimates())

    @property
    def pulls(self) -> Ints:
        """How many rewards T each user has given, (n_users,), read-only."""
        with self._lock:
            return frozen(self._learner.pulls_of_users())

    @property
    def learner(self) -> Learner:
        """The compiled side, for the simulator and snapshots; hold `lock` while using it."""
        return self._learner

    @property
    def lock(self) -> RLock:
        """Held by whoever reads or changes the state."""
        return self._lock

    @property
    def generator(self) -> np.random.Generator:
        """Where random decisions are drawn from."""
        return self._rng

    def recommend(self, user: int, arms: ArrayLike) -> int:
        """Choose an arm for this user now.

        Parameters
        ----------
        user : int
            A user from 0 to n_users − 1.
        arms : array_like, shape (K, dim)
            Whatever is on offer now, a row each.

        Returns
        -------
        int
            A row number of `arms`.
        """
        user = user_index(user, self._n_users)
        try:
            with self._lock:
                arm = self._learner.recommend(user, arms)
        except TypeError:  # no contiguous matrix of float64
            arms = arms_matrix(arms, self._dim)
            with self._lock:
                arm = self._learner.recommend(user, arms)
        if arm < 0:
            raise self._too_long("arms", arms)
        return arm

    def recommend_many(self, users: ArrayLike, arms: ArrayLike) -> Ints:
        """Choose an arm for each user in turn; `arms` is (K, dim) for all or (n, K, dim), one set each."""
        served = users_array(users, self._n_users)
        stack = finite("arms", reals("arms", arms, "an array"))
        n, d = len(served), self._dim
        shared = stack.ndim == 2
        if (
            stack.ndim not in (2, 3)
            or stack.shape[-1] != d
            or stack.shape[-2] == 0
            or (not shared and len(stack) != n)
        ):
            raise ArgumentError(f"arms must have shape (K, {d}) or ({n}, K, {d}), got {stack.shape}")
        if n == 0:
            return np.empty(0, np.int64)
        with self._lock:
            if not self._learner.accepts(stack.reshape(-1, d)):
                raise self._too_long("arms", stack)
            chosen = [
                self._learner.recommend(int(u), stack if shared else stack[k]) for k, u in enumerate(served)
            ]
        return np.array(chosen, np.int64)

    def recommend_list(self, user: int, arms: ArrayLike, k: int) -> Ints:
        """Choose k arms for a ranked list, best first; ties go to the lower row number."""
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        k = whole("k", k, 1, len(matrix))
        with self._lock:
            found = self._learner.recommend_list(user, matrix, k)
        if found is None:
            raise self._too_long("arms", matrix)
        return found

    def update(self, user: int, x: ArrayLike, reward: float) -> None:
        """Absorb the reward that this user gave for the arm with vector x, whenever it comes."""
        user, value = user_index(user, self._n_users), number("reward", reward)
        try:
            with self._lock:
                absorbed = self._learner.update(user, x, value)
        except TypeError:  # no contiguous vector of float64
            x = arm_vector(x, self._dim)
            with self._lock:
                absorbed = self._learner.update(user, x, value)
        if not absorbed:
            raise self._too_long("x", x)

    def update_many(self, users: ArrayLike, xs: ArrayLike, rewards: ArrayLike) -> None:
        """Absorb rewards row by row: users (n,), xs (n, dim), rewards (n,); all or nothing."""
        served = users_array(users, self._n_users)
        n, d = len(served), self._dim
        vectors = finite("xs", reals("xs", xs, f"an (n, {d}) array"))
        values = finite("rewards", reals("rewards", rewards, "a vector", kinds="fiub"))
        if n == 0 and vectors.size == 0 and values.size == 0:
            return
        if vectors.shape != (n, d) or values.shape != (n,):
            raise ArgumentError(
                f"users, xs and rewards must have shapes ({n},), ({n}, {d}) and ({n},), "
                f"got {served.shape}, {vectors.shape} and {values.shape}"
            )
        with self._lock:
            absorbed = self._learner.update_many(served, vectors, values)
        if not absorbed:
            raise self._too_long("xs", vectors)

    def update_list(self, user: int, xs: ArrayLike, clicked: int | None) -> None:
        """Absorb what a user did with a list: the position of the first click, or None.

        Positions up to the click were looked at: they are absorbed as rewards 0, …, 0, 1 (all 0 without a
        click), and the partition is reviewed once.
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(xs, self._dim, name="xs")
        seen = len(matrix) if clicked is None else whole("clicked", clicked, 0, len(matrix) - 1) + 1
        rewards = np.zeros(seen)
        rewards[seen - 1] = clicked is not None
        with self._lock:
            absorbed = self._learner.update_list(user, matrix[:seen], rewards)
        if not absorbed:
            raise self._too_long("xs", matrix)

    def scores(self, user: int, arms: ArrayLike) -> Scores:
        """Estimate the mean, the width of the bonus and their sum for each arm.

        Outside uniform rounds `recommend` takes the arm of the largest sum; LinTS draws a sample instead.
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        with self._lock:
            if not self._learner.accepts(matrix):
                raise self._too_long("arms", matrix)
            mean, width = self._learner.scores(user, matrix)
        return Scores(mean, width, mean + width)

    def labels(self) -> Ints:
        """The cluster of each user, numbered in order of first appearance."""
        with self._lock:
            return by_appearance(self._learner.labels())

    def cluster_of(self, user: int) -> Ints:
        """The users whose data counts for this one, itself included, ascending."""
        user = user_index(user, self._n_users)
        with self._lock:
            return self._learner.cluster_of(user)

    def add_users(self, n: int, *, labels: ArrayLike | None = None) -> Ints:
        """Let n more users join, as the algorithm's start says; returns their numbers.

        `labels` are the true clusters of the new users, for policies that are told them.
        """
        n = whole("n", n, 1, MOST_USERS)
        with self._lock:
            known = self._n_users
            arguments = grown(self._arguments, n, labels)
            plan = PLANS[self._name](**arguments)
            self._learner.add_users(n, schedule=plan.schedule, **plan.settings)
            self._arguments, self._n_users = arguments, known + n
        return np.arange(known, known + n)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a snapshot that `coterie.load` continues from with the very same next decision."""
        from coterie.policies.snapshots import save

        save(self, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the arrays of a snapshot."""
        from coterie.policies.snapshots import captured, revived

        return revived, (captured(self),)

    def __repr__(self) -> str:
        """The name, the size, and how far it has come."""
        clusters = len(np.unique(self.labels()))
        size = f"{self.n_users:,} users in {clusters:,} clusters, dim {self.dim}"
        return f"<{self._name}: {size}, {self.rounds:,} rounds>"

    def _too_long(self, name: str, rows: ArrayLike) -> ArgumentError:
        """What is wrong with a vector whose length is not finite, or would destroy an inverse by rounding."""
        finite(name, np.asarray(rows, np.float64))
        return too_long(name, self._arguments["ridge"])


def too_long(name: str, ridge: float) -> ArgumentError:
    """What is wrong with a vector so long that rounding would destroy an inverse."""
    longest = np.sqrt(LONGEST2 * ridge)
    return ArgumentError(
        f"{name} must be shorter than {longest:.3g} (1e6·√ridge), or rounding destroys the inverse; "
        "scale the features down"
    )


def checked(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that all policies share, checked and copied."""
    own = dict(arguments)
    own["n_users"] = whole("n_users", own["n_users"], 1, MOST_USERS)
    own["dim"] = whole("dim", own["dim"], 1, MOST_DIM)
    own["ridge"] = positive("ridge", own["ridge"])
    own["seed"] = check_seed(own["seed"])
    for name, check in (("labels", label_vector), ("graph", user_graph)):
        if name in own:
            own[name] = check(own[name], own["n_users"])
    for name, value in own.items():
        if isinstance(value, np.ndarray):
            own[name] = frozen(value.copy())
    confidence = own.get("confidence")
    given = isinstance(confidence, Confidence) and not isinstance(confidence, type)
    if "confidence" in own and not given:
        wanted = "Theory(...), SmoothedTheory(...) or Tuned(...)"
        raise ArgumentError(f"confidence must be {wanted}, got {shown(confidence)}")
    return own


def grown(arguments: dict[str, Any], n: int, labels: ArrayLike | None) -> dict[str, Any]:
    """The arguments of the same policy with n more users."""
    more = dict(arguments, n_users=arguments["n_users"] + n)
    if "labels" in arguments:
        if labels is None:
            raise ArgumentError(f"labels must be {n} whole numbers, the clusters of the new users, got None")
        more["labels"] = frozen(np.concatenate([arguments["labels"], label_vector(labels, n)]))
    elif labels is not None:
        raise ArgumentError("labels must not be given: this policy finds clusters itself")
    if "graph" in arguments:
        more["graph"] = frozen(np.pad(arguments["graph"], (0, n)))
    return more


def maker(plan: Callable[P, Plan]) -> Callable[P, LinearBandit]:
    """A maker of policies from a function that plans one."""
    name, parameters = plan.__name__, signature(plan)
    PLANS[name] = plan

    @wraps(plan)
    def make(*args: P.args, **kwargs: P.kwargs) -> LinearBandit:
        try:
            bound = parameters.bind(*args, **kwargs)
        except TypeError as error:
            hint = ", such as confidence=Tuned(alpha=1.5, beta=0.1)" if "'confidence'" in str(error) else ""
            raise TypeError(f"{name}() {error}{hint}") from None
        bound.apply_defaults()
        return LinearBandit(name, dict(bound.arguments))

    make.__annotations__ = {**plan.__annotations__, "return": LinearBandit}
    vars(make)["__signature__"] = parameters.replace(return_annotation=LinearBandit)
    return make


def by_appearance(labels: Ints) -> Ints:
    """The same partition with labels 0, 1, … in order of first appearance.

    >>> by_appearance(np.array([7, 7, 2, 7])).tolist()
    [0, 0, 1, 0]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def frozen(array: A) -> A:
    """The array, which can no longer be written."""
    array.flags.writeable = False
    return array
