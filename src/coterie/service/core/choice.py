"""A decision: the policy's own choice, or one drawn uniformly, with the probability of what was chosen."""

from __future__ import annotations

from math import perm
from typing import Any, NamedTuple

from coterie.policies.base import LinearBandit
from coterie.service.core.state import PolicyState, kept_generator
from coterie.types import Floats


class Outcome(NamedTuple):
    """What was decided, and why.

    Attributes
    ----------
    arms : list of int
        Row numbers, best first.
    mean, width : list of float
        The estimate and the bonus of each of these arms.
    propensity : float or None
        The probability of this choice; None where it has no closed form (Thompson sampling).
    first_propensity : float or None
        The probability of the first of these arms being first.
    cluster : int or None
        The cluster of the user, named by its first member; None for a stranger to a frozen policy.
    drawn : bool
        Was it drawn uniformly, as a part of the uniform share?
    generator : list or None
        Where the policy's generator stands afterwards, if the decision moved it.
    """

    arms: list[int]
    mean: list[float]
    width: list[float]
    propensity: float | None
    first_propensity: float | None
    cluster: int | None
    drawn: bool
    generator: list[Any] | None


def choose(state: PolicyState, user: str, arms: Floats, k: int) -> Outcome:
    """Decide for a user among `arms`, which were checked; a stranger joins."""
    policy, number = state.seat(user)
    learner = policy.learner
    before = state.generator_state(policy)
    exploring = bool(learner.exploring)
    own = _own_choice(policy, number, arms, k)
    after = policy.generator.bit_generator.state
    sampled = not exploring and after != before
    share = state.settings.uniform_share
    picks = own
    drawn = share > 0 and policy.generator.random() < share
    if drawn:
        picks = policy.generator.choice(len(arms), k, replace=False).tolist()
    if share > 0:
        after = policy.generator.bit_generator.state
    whole: float | None = 1.0  # unless something was random
    first: float | None = 1.0
    if sampled and share != 1:
        whole = first = None
    elif exploring or share > 0:
        whole = _probability(1.0 / perm(len(arms), k), share, None if exploring else picks == own)
        first = _probability(1.0 / len(arms), share, None if exploring else picks[0] == own[0])
    if policy is not state.policy:
        state.policy.generator.bit_generator.state = after
    state.know_generator(after)
    shown = arms[picks[0] : picks[0] + 1] if k == 1 else arms.take(picks, axis=0)
    with policy.lock:
        mean, width = learner.scores(number, shown)
    return Outcome(
        picks,
        mean.tolist(),
        width.tolist(),
        whole,
        first,
        state.cluster_number(number) if policy is state.policy else None,
        drawn,
        None if after == before else kept_generator(dict(after)),
    )


def _probability(uniform: float, share: float, same: bool | None) -> float:
    """The probability of a choice, if it is the policy's own or not; None: that one is uniform, too."""
    return share * uniform + (1.0 - share) * (uniform if same is None else float(same))


def _own_choice(policy: LinearBandit, number: int, arms: Floats, k: int) -> list[int]:
    """What the policy itself recommends."""
    if k == 1:
        return [policy.recommend(number, arms)]
    return [int(arm) for arm in policy.recommend_list(number, arms, k)]
