"""The cascade model of docs/how-to/ranked-lists.md: a list is read from the top until something attracts."""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reference.users import Array


class Ranker(Protocol):
    """A policy that shows lists."""

    def recommend_list(self, user: int, arms: Array, k: int, /) -> Iterable[int] | NDArray[np.int64]: ...
    def update_list(self, user: int, xs: Array, clicked: int | None, /) -> None: ...


class Visit(NamedTuple):
    """A user, the arms on offer, how attractive each is, and a uniform number for each position."""

    user: int
    arms: Array
    attractions: Array
    draws: Array


class Outcome(NamedTuple):
    """What a run came to."""

    regret: float
    clicks: int


def first_click(attractions: Sequence[float] | Array, draws: Sequence[float] | Array) -> int | None:
    """The first position whose item attracts: its draw lies below its probability. None if none does."""
    for position, attraction in enumerate(attractions):
        if draws[position] < attraction:
            return position
    return None


def click_probability(attractions: Iterable[float]) -> float:
    """1 − Π(1 − w): the expected reward of a list."""
    return 1.0 - math.prod(1.0 - float(w) for w in attractions)


def regret(attractions: Sequence[float] | Array, shown: Sequence[int]) -> float:
    """What the most attractive list of that length gives in expectation, less what the shown one gives."""
    best = sorted((float(w) for w in attractions), reverse=True)[: len(shown)]
    return click_probability(best) - click_probability(attractions[arm] for arm in shown)


def regret_over_all_lists(attractions: Sequence[float] | Array, shown: Sequence[int]) -> float:
    """The same, by trying every list of that length."""
    lists = combinations([float(w) for w in attractions], len(shown))
    return max(map(click_probability, lists)) - click_probability(attractions[arm] for arm in shown)


def play(policy: Ranker, visits: Iterable[Visit], length: int) -> Outcome:
    """Show every visitor a list, and tell the policy where the click was."""
    lost, clicks = 0.0, 0
    for visit in visits:
        shown = [int(arm) for arm in policy.recommend_list(visit.user, visit.arms, length)]
        position = first_click(visit.attractions[shown], visit.draws)
        policy.update_list(visit.user, visit.arms[shown], position)
        lost += regret(visit.attractions, shown)
        clicks += position is not None
    return Outcome(lost, clicks)
