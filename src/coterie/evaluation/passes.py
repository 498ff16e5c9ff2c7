"""Passes of a policy over a log: it learns from the events in which it chooses the logged arm, or all."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from coterie.errors import ArgumentError
from coterie.evaluation.log import Log
from coterie.policies.linucb.linucb import LinUCBInd, LinUCBOne
from coterie.policies.protocols import Policy, takes_items
from coterie.types import Bools, Floats, Ints
from coterie.validation import shown

Advance: TypeAlias = Callable[[int], object]
"""Called with the number of events just passed."""

EVERY = 256
"""Events between two calls of it."""

MOST_MODELS = 2**30
"""Bytes that reward models of single users may take; beyond that, one model serves all users."""


class Passage(NamedTuple):
    """The choices of a policy at each event, and the reward model's predictions before it.

    `arms` are the policy's choices (n,). `expected` is the predicted reward of that arm, `expected_logged` of
    the arm that was logged; both are zeros where there was no model.
    """

    arms: Ints
    expected: Floats
    expected_logged: Floats


class RewardModel:
    """Predicts rewards by ridge regression on (x, 1): one for all users, and one a user on what it leaves.

    Both have λ = 1. A prediction depends on the past only.

    Examples
    --------
    >>> model = RewardModel(n_users=2, dim=1)
    >>> model.learn(0, np.array([1.0]), 3.0)
    >>> [round(float(model.predict(user, np.array([[1.0]]))[0]), 3) for user in (0, 1)]
    [2.667, 2.0]
    """

    def __init__(self, n_users: int, dim: int) -> None:
        """Nothing is learnt: every prediction is 0."""
        self._shared = LinUCBOne(1, dim + 1, beta=0.0)
        personal = 8 * n_users * (dim + 1) ** 2 <= MOST_MODELS
        self._personal = LinUCBInd(n_users, dim + 1, beta=0.0) if personal else None

    def predict(self, user: int, arms: Floats) -> Floats:
        """The reward that this user is expected to give for each arm."""
        rows = np.column_stack([arms, np.ones(len(arms))])
        mean = self._shared.scores(0, rows).mean
        return mean if self._personal is None else mean + self._personal.scores(user, rows).mean

    def learn(self, user: int, x: Floats, reward: float) -> None:
        """Take in one event; what is personal is what all users together leave unexplained."""
        row = np.append(x, 1.0)
        self._shared.update(0, row, reward)
        if self._personal is not None:
            # Computed after the shared model has learnt the event: what it still leaves unexplained.
            rest = reward - float(self._shared.scores(0, row[None]).mean[0])
            self._personal.update(user, row, rest)


class PolicyCalls:
    """Calls of a policy, with ids of items where there are any and its methods take them."""

    def __init__(self, policy: Policy) -> None:
        """Look at the signatures once."""
        self._policy = policy
        self._recommends, self._updates = takes_items(policy, "recommend"), takes_items(policy, "update")

    def recommend(self, user: int, arms: Floats, ids: Ints | None) -> int:
        """The arm that the policy recommends, checked to be the number of one."""
        named: dict[str, Any] = {"items": ids} if self._recommends and ids is not None else {}
        arm = self._policy.recommend(user, arms, **named)
        try:
            number = index(arm)
        except TypeError:
            number = -1
        if not 0 <= number < len(arms):
            raise ArgumentError(
                f"recommend must return a row number from 0 to {len(arms) - 1}, got {shown(arm)}"
            )
        return number

    def update(self, user: int, x: Floats, reward: float, item: int | None) -> None:
        """Let the policy learn."""
        named: dict[str, Any] = {"item": item} if self._updates and item is not None else {}
        self._policy.update(user, x, reward, **named)


def replay_pass(log: Log, policy: Policy, draws: Floats, *, advance: Advance | None = None) -> Bools:
    """Let a policy learn from the events in which it chooses the logged arm, and return which ones these are.

    An event counts where the policy chooses the arm that was logged and `draws` (n,), uniform in [0, 1), lies
    below p_min / p: so each arm counts with probability p_min, however it was logged. For uniform logs with
    one number of arms that is every match (Li et al. 2011); for others, rejection (Dudík et al. 2012).
    """
    counted = np.zeros(len(log), np.bool_)
    keep = log.propensities.min() / log.propensities
    calls = PolicyCalls(policy)
    for t in range(len(log)):
        user, chosen, ids = int(log.users[t]), int(log.chosen[t]), log.ids(t)
        if calls.recommend(user, log.arms(t), ids) == chosen and draws[t] < keep[t]:
            counted[t] = True
            calls.update(user, log.x(t), float(log.rewards[t]), None if ids is None else int(ids[chosen]))
        count_event(t, len(log), advance)
    return counted


def progressive_pass(
    log: Log, policy: Policy, model: RewardModel | None = None, *, advance: Advance | None = None
) -> Passage:
    """Ask a policy for an arm at every event, then let it learn the arm and the reward that were logged.

    A choice depends on earlier events only, and so does a prediction of the model.
    """
    n, calls = len(log), PolicyCalls(policy)
    found = Passage(np.zeros(n, np.int64), np.zeros(n), np.zeros(n))
    for t in range(n):
        user, x, reward, ids = int(log.users[t]), log.x(t), float(log.rewards[t]), log.ids(t)
        arm = found.arms[t] = calls.recommend(user, log.arms(t), ids)
        if model is not None:
            # Predicted before learning from this event, or the estimate would be biased.
            found.expected[t], found.expected_logged[t] = model.predict(user, np.stack([log.arms(t)[arm], x]))
            model.learn(user, x, reward)
        calls.update(user, x, reward, None if ids is None else int(ids[log.chosen[t]]))
        count_event(t, n, advance)
    return found


def count_event(t: int, n: int, advance: Advance | None) -> None:
    """Report progress now and then."""
    if advance is not None and ((t + 1) % EVERY == 0 or t + 1 == n):
        advance((t % EVERY) + 1)
