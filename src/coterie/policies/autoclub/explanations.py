"""Why AutoCLUB treats a user as it does: whom it learns from, and what its scores are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coterie.policies.base import LinearBandit
from coterie.types import Floats, Ints


class UserChanges(NamedTuple):
    """What `AutoCLUB.changes` returns: how often users were found to have changed, and the last of them.

    Parameters
    ----------
    total : int
        UserChanges of all users.
    users : array of int
        Users of the last changes, latest first; at most 32.
    rounds : array of int
        Number of rewards that the policy had learnt from when each was found.
    """

    total: int
    users: Ints
    rounds: Ints


class ScoreParts(NamedTuple):
    """What the score of each arm is made of; the parts sum to `Scores.ucb`.

    Parameters
    ----------
    offset : array of float, shape (K,)
        What is common to all rewards, as far as clusters are followed.
    cluster : array of float, shape (K,)
        What the user's cluster says, by its weight.
    alternatives : array of float, shape (K,)
        What other places where the user may belong say, by their weights at the user's last review.
    hierarchy : array of float, shape (K,)
        What the hierarchical model says, by its weight.
    items : array of float, shape (K,)
        Effects of the items: how much better each does, for all users, than its vector predicts.
    repeats : array of float, shape (K,)
        What the user's own rewards for the very same item change, where they come out the same each time.
    bonus : array of float, shape (K,)
        Bonus for what is not known yet.
    """

    offset: Floats
    cluster: Floats
    alternatives: Floats
    hierarchy: Floats
    items: Floats
    repeats: Floats
    bonus: Floats


@dataclass(frozen=True, slots=True)
class UserExplanation:
    """What `AutoCLUB.explain` returns.

    Parameters
    ----------
    user : int
        The user.
    rewards : int
        Number of rewards that it has given.
    known : float
        How much its own rewards tell of its preference, from 0 to 1 (tr H/d of its last review).
    noise_weight : float
        What its rewards count for beside those of others, at most 1; less if they are much noisier.
    cluster : array of int
        Users it learns from, itself included, ascending.
    influence : array of float
        Share of each of them in what the cluster has learnt; they sum to 1 if there are any rewards.
    weight : float
        Posterior probability of its cluster among the places where it may belong, from its last review.
    alone : float
        That of a preference of its own, which is `weight` itself if that is where it is.
    elsewhere : float
        That of the other clusters that were considered.
    hierarchy : float
        How much decisions follow the hierarchical model, instead of clusters; 0 to 1.
    noise : float
        Standard deviation of rewards, common to all users.
    changes : int
        How often its preference was found to have changed; each time it starts again, as a new user.
    since_change : int
        Number of its rewards since it last started again; `rewards` if it never has.
    scores : ScoreParts or None
        Scores of the arms that were asked for, taken apart.

    Examples
    --------
    >>> import coterie
    >>> policy = coterie.AutoCLUB(n_users=2, dim=1)
    >>> policy.update(0, [1.0], 0.5)
    >>> policy.update(0, [-1.0], -0.5)
    >>> policy.update(1, [1.0], 0.5)
    >>> print(policy.explain(0))
    user 0: 2 rewards, preference 0 % known from them
    learns from user 0 (67 %), user 1 (33 %); belongs there with probability 1.00
    decisions follow clusters by 66 %, the hierarchical model by 34 %
    """

    user: int
    rewards: int
    known: float
    noise_weight: float
    cluster: Ints
    influence: Floats
    weight: float
    alone: float
    elsewhere: float
    hierarchy: float
    noise: float
    changes: int = 0
    since_change: int = 0
    scores: ScoreParts | None = None

    def __str__(self) -> str:
        """A few lines; at most five of the cluster are named."""
        order = np.argsort(-self.influence, kind="stable")[:5]
        named = ", ".join(
            f"user {self.cluster[k]} ({self.influence[k]:.0%})".replace("%", " %") for k in order
        )
        more = len(self.cluster) - len(order)
        known = f"preference {100 * self.known:.0f} % known from them"
        lines = [
            f"user {self.user}: {self.rewards:,} rewards, {known}",
            f"learns from {named}{f' and {more:,} more' if more else ''}; "
            f"belongs there with probability {self.weight:.2f}",
        ]
        if 0.005 <= self.alone < self.weight:
            lines[-1] += f", has a preference of its own with {self.alone:.2f}"
        share = round(100 * self.hierarchy)
        lines.append(f"decisions follow clusters by {100 - share} %, the hierarchical model by {share} %")
        if self.changes:
            often = "once" if self.changes == 1 else f"{self.changes:,} times"
            lines.append(f"has changed {often}, last {self.since_change:,} rewards ago")
        if self.noise_weight < 1:
            lines.append(f"noisier than others: each of its rewards counts as {self.noise_weight:.2g}")
        return "\n".join(lines)


def explained(
    policy: LinearBandit, user: int, arms: Floats | None, ids: Ints | None = None
) -> UserExplanation:
    """The explanation of a user, who is known, and of arms with these ids, if any; the policy is locked."""
    learner: Any = policy.learner
    numbers, cluster = learner.explained(user), learner.cluster_of(user)
    counts = learner.noise_weights()[cluster] * learner.learnt_rewards()[cluster]
    influence = counts / counts.sum() if counts.any() else np.zeros(len(cluster))
    parts = None
    if arms is not None:
        parts = _parts(learner, user, arms, ids, numbers["hierarchy"], numbers["offset"])
    return UserExplanation(
        user=user,
        rewards=int(learner.pulls_of_users()[user]),
        known=numbers["known"],
        noise_weight=numbers["noise_weight"],
        cluster=cluster,
        influence=influence,
        weight=numbers["weight"],
        alone=numbers["alone"],
        elsewhere=max(
            0.0,
            1.0 - numbers["weight"] - (0.0 if numbers["alone"] == numbers["weight"] else numbers["alone"]),
        ),
        hierarchy=numbers["hierarchy"],
        noise=numbers["noise"],
        changes=learner.changes_of(user),
        since_change=numbers["current"],
        scores=parts,
    )


def _parts(
    learner: Any, user: int, arms: Floats, ids: Ints | None, weight: float, offset: float
) -> ScoreParts:
    """The scores of arms, taken apart; both models as far as each is followed."""
    mean, bonus = learner.scores(user, arms, ids)
    with_items, _ = learner.scores(user, arms, ids, effects=1)
    modelled, by_hierarchy, beside = learner.modelled(user, arms)
    hierarchy = weight * by_hierarchy + 0.0  # and not −0
    elsewhere = (1.0 - weight) * beside
    common = np.full(len(arms), (1.0 - weight) * offset)
    cluster = modelled - common - elsewhere - hierarchy
    return ScoreParts(common, cluster, elsewhere, hierarchy, with_items - modelled, mean - with_items, bonus)
