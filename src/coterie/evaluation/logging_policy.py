"""A policy that keeps a log, with a share of uniform play so that other policies can be evaluated on it."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.evaluation.arms import numbered_ids
from coterie.evaluation.log import Log
from coterie.evaluation.passes import PolicyCalls
from coterie.policies.protocols import Policy
from coterie.seeding import stream
from coterie.types import Floats
from coterie.validation import arms_matrix, item_id, item_ids, number, reals, shown

SHARED = ("n_users", "dim", "labels", "add_users", "exploring", "arguments", "name")
"""Attributes that the simulator reads, passed on from the wrapped policy."""


class LoggingPolicy:
    """Plays uniformly with probability `share`, otherwise what a policy says, and keeps a log of it.

    With K arms the propensity of arm a is share/K + (1 − share)·1{a is the policy's arm}. It is exact: it
    conditions on the policy's own decision, also where that was drawn at random (Thompson sampling, uniform
    rounds). Estimates stay unbiased, because the draw of `share` comes after that decision and depends on
    nothing else; a marginal propensity would only make them less noisy.

    Parameters
    ----------
    policy : Policy
        Any object with `recommend` and `update`; it learns from all events, uniform ones too.
    share : float
        The probability ε of a uniform draw, above 0 and at most 1. Estimates from n events are about as good
        as from ε·n/K events of the policy's own: with few arms, start with 0.1 to 0.3.
    seed : int
        Seed of the uniform draws.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> world = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1)
    >>> policy = LoggingPolicy(coterie.LinUCBInd(8, 5, beta=0.1), share=0.2)
    >>> trace = coterie.simulate(policy, world, 600)
    >>> policy.log()
    <Log: 600 events of 8 users, 10 arms of dim 5 a round, propensities 0.02 to 0.82>
    """

    def __init__(self, policy: Policy, share: float, *, seed: int = 0) -> None:
        """Nothing is logged yet."""
        if isinstance(policy, type) or not isinstance(policy, Policy):
            raise ArgumentError(f"policy must have the methods recommend and update, got {shown(policy)}")
        self.policy, self.share = policy, number("share", share)
        if not 0 < self.share <= 1:
            raise ArgumentError(
                f"share must be above 0 and at most 1, got {share!r}: "
                "without uniform play a log says nothing about other arms"
            )
        self._calls = PolicyCalls(policy)
        self._rng = stream(seed, "logging policy")
        self._users: list[int] = []
        self._offers: list[list[int]] = []
        self._chosen: list[int] = []
        self._propensities: list[float] = []
        self._rewards: list[float] = []
        self._rows: dict[tuple[int | None, bytes], int] = {}
        self._open: defaultdict[tuple[int, int | bytes], deque[int]] = defaultdict(deque)

    def __getattr__(self, name: str) -> Any:
        """Pass on the attributes that the simulator reads."""
        if name in SHARED:
            return getattr(self.policy, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def recommend(self, user: int, arms: Floats, *, items: ArrayLike | None = None) -> int:
        """Choose an arm and log the event, with ids if there are any; `update` adds its reward."""
        matrix = reals("arms", arms, "a (K, dim) array")
        matrix = arms_matrix(matrix, matrix.shape[-1])
        k = len(matrix)
        ids = None if items is None else item_ids(items, (k,))
        own = self._calls.recommend(user, matrix, ids)
        # The policy decides in every round, also where the draw is uniform: its own random state then does
        # not depend on `share`.
        arm = int(self._rng.integers(k)) if self._rng.random() < self.share else own
        vectors = matrix.view(f"V{8 * matrix.shape[1]}").ravel().tolist()
        named: list[int | None] = [None] * k if ids is None else ids.tolist()
        self._open[int(user), arm_key(named[arm], vectors[arm])].append(len(self._users))
        self._users.append(int(user))
        keys = zip(named, vectors, strict=True)
        self._offers.append([self._rows.setdefault(key, len(self._rows)) for key in keys])
        self._chosen.append(arm)
        self._propensities.append(self.share / k + (1.0 - self.share) * (arm == own))
        self._rewards.append(np.nan)
        return arm

    def update(self, user: int, x: Floats, reward: float, *, item: int | None = None) -> None:
        """Let the policy learn; the reward goes to the oldest event of this user and arm that lacks one."""
        known = None if item is None else item_id(item)
        self._calls.update(user, x, reward, known)
        key = int(user), arm_key(known, np.ascontiguousarray(x, np.float64).tobytes())
        # Feedback may come late and in any order; events are matched by user and arm, oldest first.
        waiting = self._open.get(key)
        if waiting is None:
            return
        self._rewards[waiting.popleft()] = number("reward", reward)
        if not waiting:
            del self._open[key]

    def log(self) -> Log:
        """The events that have a reward so far; the time of an event is its number."""
        done = np.flatnonzero(~np.isnan(self._rewards))
        if not len(done):
            raise ArgumentError("no reward has come yet, there is nothing to log")
        offers = [self._offers[t] for t in done]
        users = np.array(self._users)[done]
        ids, vectors = zip(*self._rows, strict=True)
        items = np.frombuffer(b"".join(vectors), np.float64).reshape(len(vectors), -1)
        names, item_of = numbered_ids(ids)
        return Log(
            user_ids=range(int(users.max()) + 1),
            users=users,
            items=items,
            offers=np.concatenate(offers),
            starts=np.cumsum([0, *map(len, offers)]),
            chosen=np.array(self._chosen)[done],
            propensities=np.array(self._propensities)[done],
            rewards=np.array(self._rewards)[done],
            times=done.astype(np.float64),
            item_ids=names,
            item_of=item_of,
        ).ordered()


def arm_key(item: int | None, vector: bytes) -> int | bytes:
    """What an arm is known by: its id, or its vector where it has none."""
    return vector if item is None else item
