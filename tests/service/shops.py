"""Recommenders that tests use, and whether two of them are in the same state."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import Recommender
from coterie.types import Floats
from inspection import live_of

ITEMS = {"tea": [1.0, 0.0], "coffee": [0.0, 1.0], "cocoa": [0.6, 0.6]}


def shop(**options: Any) -> Recommender:
    """Three items in two dimensions, one ridge regression a user."""
    options.setdefault("policy", "LinUCBInd")
    options.setdefault("items", ITEMS)
    return Recommender(**options)


def arms(seed: int, n: int = 6, dim: int = 3) -> Floats:
    """Arms of length 1."""
    drawn: Floats = np.random.default_rng(seed).normal(size=(n, dim))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn


def waiting(recommender: Recommender) -> list[object]:
    """The decisions that wait, in order, without their ids and times."""
    kept = live_of(recommender).state.waiting.values()
    return [(one.user, one.items, one.vectors().tolist()) for one in kept]


def outcomes(recommender: Recommender) -> list[object]:
    """What decisions have brought, without times."""
    found = live_of(recommender).state.outcomes
    experiments = [(name, one.users, one.sums) for name, one in found.experiments.items()]
    return [found.total, found.items[found.items[:, 0] > 0, :3].tolist(), experiments]


def same_state(one: Recommender, other: Recommender) -> bool:
    """Are two recommenders in the same state, to the last bit?"""
    ours, theirs = one.policy, other.policy
    arrays, others = ours.learner.arrays(), theirs.learner.arrays()
    return (
        one.users == other.users
        and one.items == other.items
        and waiting(one) == waiting(other)
        and ours.generator.bit_generator.state == theirs.generator.bit_generator.state
        and ours.learner.numbers() == theirs.learner.numbers()
        and all(np.array_equal(arrays[name], others[name], equal_nan=True) for name in arrays)
        and outcomes(one) == outcomes(other)
    )
