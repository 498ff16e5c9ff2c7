"""ItemUCB and ItemTS: the baseline that knows how popular each item is, and nothing of users and vectors."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.declarations import BUDGET, Declaration, Grid, Style, geometric
from coterie.policies.items.item_means import ItemMeans, SampledItems
from coterie.validation import nonnegative

SCALES = Grid(scale=geometric(0.05, 2.0, BUDGET))
"""Of both policies; their only constant needs no unit, since the deviation of rewards is learnt."""


class ItemUCB(LinearBandit):
    """An upper confidence bound for each item, from the rewards of all users; vectors do not count.

    The baseline of popularity: on real clicks it often beats policies that learn from vectors alone.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    scale : float, default 1.0
        Factor c of the bonus, at least 0, in standard deviations of rewards. Smaller exploits more, larger
        explores more.
    ridge : float, default 2.0
        λ, positive: an item starts with as much weight as λ rewards of the average new item.
    seed : int, default 0
        Seed of the policy's own random numbers; ItemUCB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    Each round plays the item of largest

        (S + λm) / (n + λ) + c s √(ln(1 + t / (K (n + λ))) / (n + λ))

    where S is the sum of its n rewards, m the mean first reward of all items, s the standard deviation of
    recent rewards, t the number of the round and K the number of items that have a reward. An item is known
    by its id (`recommend(..., items=ids)`, `update(..., item=id)`); without ids, equal vectors are one item.
    Duels teach it nothing.

    References
    ----------
    Audibert and Bubeck, *Minimax policies for adversarial and stochastic bandits*, COLT 2009, for the bonus.

    Examples
    --------
    >>> policy = ItemUCB(n_users=2, dim=1)
    >>> arms = [[0.5], [0.5]]
    >>> for reward, item in ((0.1, 7), (0.9, 8)):
    ...     policy.update(0, [0.5], reward, item=item)
    >>> policy.recommend(1, arms, items=[7, 8])
    1
    """

    declared = Declaration(
        summary="a mean and a bonus for each item, the same for all users",
        use_when="you want to know what popularity alone is worth; vectors of items say little",
        style=Style("ItemUCB", "#DC267F", "8", "-"),
        grid=SCALES,
        cost=3.0,
        clusters=False,
    )

    def __init__(
        self, n_users: int, dim: int, *, scale: float = 1.0, ridge: float = 2.0, seed: int = 0
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, scale=scale, ridge=ridge, seed=seed)

    @staticmethod
    def _plan(n_users: int, dim: int, *, scale: float, ridge: float, seed: int) -> Plan:
        return Plan(ItemMeans, {"scale": nonnegative("scale", scale)}, items=True)


class ItemTS(LinearBandit):
    """Thompson sampling with a mean for each item, from the rewards of all users; vectors do not count.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    scale : float, default 0.25
        Factor c of the samples' spread, at least 0, in standard deviations of rewards; 1 is plain Thompson
        sampling, which explores too much if there are almost as many items as rewards. Smaller exploits more.
    ridge : float, default 2.0
        λ, positive: an item starts with as much weight as λ rewards of the average new item.
    seed : int, default 0
        Seed of the samples, at least 0.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    Each decision draws N((S + λm)/(n + λ), c²s²/(n + λ)) for every item on offer and plays the item of the
    largest sample; S, n, m and s are those of `ItemUCB`.

    Examples
    --------
    >>> policy = ItemTS(n_users=2, dim=1, scale=0.01)
    >>> for reward, item in ((0.1, 7), (0.9, 8)):
    ...     policy.update(0, [0.5], reward, item=item)
    >>> policy.recommend(1, [[0.5], [0.5]], items=[7, 8])
    1
    """

    declared = Declaration(
        summary="Thompson sampling with a mean for each item, the same for all users",
        use_when="you want to know what popularity alone is worth; decisions should be randomized",
        style=Style("ItemTS", "#DC267F", "8", "--"),
        grid=SCALES,
        cost=4.0,
        clusters=False,
    )

    def __init__(
        self, n_users: int, dim: int, *, scale: float = 0.25, ridge: float = 2.0, seed: int = 0
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, scale=scale, ridge=ridge, seed=seed)

    @staticmethod
    def _plan(n_users: int, dim: int, *, scale: float, ridge: float, seed: int) -> Plan:
        return Plan(SampledItems, {"scale": nonnegative("scale", scale)}, items=True)
