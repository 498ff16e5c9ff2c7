from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from coterie.errors import ArgumentError
from coterie.theory import Setup
from theory.setups import PAPER


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_users": 0}, "n_users must be at least 1, got 0"),
        ({"dim": -1}, "dim must be at least 1, got -1"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"n_clusters": 51}, "n_clusters must be from 1 to n_users = 50, got 51"),
        ({"gamma": 0.0}, "gamma must be positive and finite, got 0.0"),
        ({"gamma": 2.5}, "gamma must be at most 2"),
        ({"lambda_x": math.nan}, "lambda_x must be positive and finite, got nan"),
        ({"lambda_x": 0.03}, "lambda_x must be at most norm²/dim = 0.02, got 0.03"),
        ({"ridge": math.inf}, "ridge must be positive and finite, got inf"),
        ({"sigma": 100.0}, "c1 · sigma² / ln n_arms must be at most"),
    ],
)
def test_an_impossible_setup_is_refused_in_one_sentence(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        replace(PAPER, **wrong)
    assert str(caught.value).startswith(says)


def test_the_largest_possible_eigenvalue_is_accepted() -> None:
    for dim in range(1, 200):
        Setup(n_users=2, dim=dim, n_clusters=1, n_arms=2, horizon=10, gamma=1.0, lambda_x=1 / dim)


def test_delta_is_one_in_the_horizon() -> None:
    assert PAPER.delta == 1e-5


def test_smoothed_replaces_the_eigenvalue_and_the_norm_and_nothing_else() -> None:
    smoothed = replace(PAPER, sigma=0.5, truncation=2.0).smoothed()
    assert smoothed.lambda_x == pytest.approx(0.25 / math.log(100))
    assert smoothed.norm == pytest.approx(1 + 2 * math.sqrt(50))
    assert replace(smoothed, lambda_x=0.017, norm=1.0, sigma=PAPER.sigma, truncation=1.0) == PAPER


def test_a_setup_does_not_change() -> None:
    frozen: Any = PAPER
    with pytest.raises(FrozenInstanceError):
        frozen.gamma = 0.1


def test_pulls_to_separate_is_where_twice_the_radius_meets_the_gap() -> None:
    pulls = PAPER.pulls_to_separate()
    assert 2 * PAPER.radius(pulls) < PAPER.gamma <= 2 * PAPER.radius(pulls / 1.01)
