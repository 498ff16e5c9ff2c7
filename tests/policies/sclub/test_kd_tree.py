"""The tree of points that move: whatever is within reach is found, and most of what is not is passed over."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.policies.sclub.kd_tree import found_near
from coterie.types import Floats

POINTS = 700
MOVES = {
    "nowhere": lambda points, rng: points,
    "a little": lambda points, rng: points + 0.05 * rng.normal(size=points.shape),
    "elsewhere": lambda points, rng: rng.normal(size=points.shape),
    "into one leaf": lambda points, rng: 5.0 + 0.3 * rng.normal(size=points.shape),
    "far away": lambda points, rng: 1e6 + rng.normal(size=points.shape),
}


def within(points: Floats, reaches: Floats, factor: float) -> list[set[int]]:
    """The same by comparing all."""
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    return [set(np.flatnonzero(row).tolist()) for row in apart < factor * (reaches[:, None] + reaches)]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("dim", [1, 3, 8, 9, 20])
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_all_that_is_within_reach_is_found_wherever_points_went(move: str, dim: int, factor: float) -> None:
    rng = np.random.default_rng(dim)
    planted = rng.normal(size=(POINTS, dim))
    points = np.ascontiguousarray(MOVES[move](planted, rng))
    spread = (points - points.mean(axis=0)).std() * dim**0.5
    reaches = rng.uniform(0.1, 0.6, size=POINTS) * spread / factor
    slack = 1e-6 * np.sqrt((points**2).sum(axis=1))  # what the policy adds, since sketches are rounded
    found = found_near(planted, points, reaches + slack, factor)
    wanted = within(points, reaches, factor)
    assert sum(map(len, wanted)) > 2 * POINTS
    for near, known in zip(found, wanted, strict=True):
        assert len(near) == len(set(near))
        assert known <= set(near)


def test_points_out_of_reach_are_passed_over() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(POINTS, 20))
    found = found_near(points, points, np.full(POINTS, 0.1), 1.0)
    assert found == [[row] for row in range(POINTS)]
