"""Rounds in which a policy chooses two arms and the feedback is which one the user prefers."""

from __future__ import annotations

from collections.abc import Callable
from math import tanh

from coterie.environments.blocks import Block
from coterie.errors import ArgumentError
from coterie.policies.kernel.learner import Learner
from coterie.policies.protocols import PairPolicy, takes_items
from coterie.simulation._rounds import Ledger
from coterie.types import Ints
from coterie.validation import shown as printed


def play_duels(policy: PairPolicy, learner: Learner, block: Block, ledger: Ledger) -> None:
    """Run the duels of a block; `learner` provides the cluster labels of the policy."""
    given = named_ids(policy, block)
    for user, picks, means, noise in zip(
        block.users.tolist(), block.picks, block.means, block.noise.tolist(), strict=True
    ):
        arms = block.items[picks]
        explored = bool(getattr(policy, "exploring", False))
        first, second = pair_of(
            policy.recommend_pair(user, arms, **given("recommend_pair", picks)), len(arms)
        )
        one, two = float(means[first]), float(means[second])
        gap = block.sharpness * (one - two) if one != two else 0.0  # the sharpness may be infinite
        wins = noise < win_probability(gap)
        winner, loser = (first, second) if wins else (second, first)
        shown = given("update_pair", picks[[winner, loser]])
        policy.update_pair(user, arms[winner].copy(), arms[loser].copy(), **shown)
        regret = 2.0 * float(means.max()) - one - two
        ledger.add(learner, regret, one + two, 2.0 * float(means.mean()), explored)


def named_ids(policy: PairPolicy, block: Block) -> Callable[[str, Ints], dict[str, Ints]]:
    """Pass ids of items as arguments to methods that take them, where the environment has any."""
    known = block.lasting or block.ids is not None
    takes = {one for one in ("recommend_pair", "update_pair") if known and takes_items(policy, one)}

    def given(method: str, picks: Ints) -> dict[str, Ints]:
        if method not in takes:
            return {}
        return {"items": picks.copy() if block.ids is None else block.ids[picks]}

    return given


def win_probability(gap: float) -> float:
    """Compute 1/(1 + e^(−gap)) without overflow for any gap.

    >>> win_probability(0.0), win_probability(-1e9), win_probability(1e9)
    (0.5, 0.0, 1.0)
    """
    return 0.5 * (1.0 + tanh(0.5 * gap))


def pair_of(answer: object, n_arms: int) -> tuple[int, int]:
    """Validate that a policy returned the row numbers of two arms."""
    if isinstance(answer, tuple | list) and len(answer) == 2:
        first, second = answer
        if all(hasattr(one, "__index__") and 0 <= int(one) < n_arms for one in answer):
            return int(first), int(second)
    raise ArgumentError(
        f"recommend_pair must return two row numbers from 0 to {n_arms - 1}, got {printed(answer)}"
    )
