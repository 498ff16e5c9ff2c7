"""Recommenders that tests use, and how they are interrupted."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import Recommender
from coterie.types import Floats

ITEMS = {"tea": [1.0, 0.0], "coffee": [0.0, 1.0], "cocoa": [0.6, 0.6]}


def shop(**options: Any) -> Recommender:
    """Three items in two dimensions, one ridge regression a user."""
    options.setdefault("policy", "LinUCBInd")
    options.setdefault("items", ITEMS)
    return Recommender(**options)


def pass_time(recommender: Recommender, seconds: float) -> None:
    """Let the recommender's clock run ahead."""
    recommender._engine.journal._start += seconds


def abandon(recommender: Recommender) -> None:
    """Stop without a last snapshot, as after a crash between two commits."""
    engine = recommender._engine
    recommender._closing.detach()
    engine._stop.set()
    engine._keeper.join()
    engine.journal.close()


def arms(seed: int, n: int = 6, dim: int = 3) -> Floats:
    """Arms of length 1."""
    drawn: Floats = np.random.default_rng(seed).normal(size=(n, dim))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn


def waiting(recommender: Recommender) -> list[object]:
    """The decisions that wait, in order, without their ids and times."""
    kept = recommender._live.state.waiting.values()
    return [(one.user, one.items, one.vectors().tolist()) for one in kept]


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
    )
