"""Users who are known from the start and users who join when they first come are decided for alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie

USERS, DIM, ARMS = 6, 3, 5
MAKERS = [coterie.AutoCLUB, coterie.HierUCB, coterie.HierTS]


def decisions(
    make: type[coterie.AutoCLUB | coterie.HierUCB | coterie.HierTS], order: list[int], *, known: bool
) -> list[tuple[int, bytes]]:
    """Each chosen arm and the scores of its round, with users of two clusters who come in this order."""
    policy = make(USERS if known else 1, DIM, seed=7)
    rng, numbers = np.random.default_rng(1), dict[int, int]()
    preferences = rng.normal(size=(2, DIM))
    found = []
    for user in order:
        if user not in numbers:
            if numbers and not known:
                policy.add_users(1)
            numbers[user] = user if known else len(numbers)
        arms, noise = rng.normal(size=(ARMS, DIM)), 0.3 * rng.normal()
        scores = policy.scores(numbers[user], arms)
        arm = policy.recommend(numbers[user], arms)
        found.append((arm, scores.ucb.tobytes()))
        policy.update(numbers[user], arms[arm], float(arms[arm] @ preferences[user % 2] + noise))
    return found


@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=15, deadline=None)
@given(order=st.lists(st.integers(0, USERS - 1), min_size=40, max_size=200))
def test_joining_when_first_seen_decides_as_being_known(
    make: type[coterie.AutoCLUB | coterie.HierUCB | coterie.HierTS], order: list[int]
) -> None:
    assert decisions(make, order, known=True) == decisions(make, order, known=False)
