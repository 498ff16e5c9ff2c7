from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.datasets import Dataset, load
from coterie.errors import ArgumentError
from datasets import generated


def test_the_six_fields_are_those_promised() -> None:
    assert Dataset._fields == ("name", "users", "items", "user_ids", "item_ids", "provenance")


def test_a_description_tells_all_that_decided_the_vectors(tmp_path: Path) -> None:
    table = generated.rows()
    path = generated.write(tmp_path / "u.data", generated.movielens_data(table))
    facts = load("movielens", path, dim=5, n_users=20, n_items=40).provenance
    text = facts.describe()
    assert text.splitlines()[0] == "movielens"
    expected = [
        ("vectors", f"20 users and {40 - facts.dropped_items} items of 5 dimensions"),
        ("scale", "unit"),
        ("feedback", "1 if the rating is above 3"),
        ("file", "u.data"),
        ("sha256", facts.sha256),
        ("rows", "700 by 30 users and 60 items"),
        ("requested", "the 20 users and 40 items with the most rows"),
        ("ties", f"{facts.tied_users} users and {facts.tied_items} items at the cut, lower ids first"),
        ("dropped", f"0 users and {facts.dropped_items} items with a zero vector"),
        ("density", f"{facts.density:.4f} of the feedback matrix is 1"),
    ]
    for title, value in expected:
        assert f"\n  {title:<10}{value}\n" in text
    assert "no. 1: " in text


def test_own_vectors_become_a_world_that_policies_play_in() -> None:
    rng = np.random.default_rng(0)
    items = rng.normal(size=(30, 4))
    items[3] = 0.0
    data = Dataset.from_vectors(rng.normal(size=(8, 4)), items, item_ids=[f"i{k}" for k in range(30)])
    np.testing.assert_allclose(np.linalg.norm(data.items, axis=1), 1.0)
    assert data.item_ids.tolist() == [f"i{k}" for k in range(30) if k != 3]
    assert data.user_ids.tolist() == list(range(8))
    assert (data.provenance.items_kept, data.provenance.dropped_items) == (29, 1)
    assert "0 users and 1 item with a zero vector" in data.provenance.describe()
    assert not data.users.flags.writeable
    world = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=5, seed=0)
    assert coterie.simulate(coterie.LinUCBInd(8, 4, beta=0.1), world, 100).regret[-1] > 0


def test_raw_vectors_stay_as_they_are_and_are_copied() -> None:
    users = np.array([[3.0, 4.0]])
    data = Dataset.from_vectors(users, [[1, 0], [0, 2]], scale="raw")
    users[0, 0] = 9.0
    assert data.users.tolist() == [[3.0, 4.0]]
    assert data.items.tolist() == [[1.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize(
    ("users", "items", "options", "fault"),
    [
        (np.eye(3), np.eye(2), {}, "users and items must have equally many columns, got 3 and 2"),
        (np.ones(3), np.eye(3), {}, r"users must be a matrix .* got shape \(3,\)"),
        (np.eye(2), np.zeros((2, 2)), {}, "items must be a matrix with a row each that is not all zero"),
        ([[np.nan]], [[1]], {}, "users must hold finite numbers only, got nan"),
        ([[1e300]], [[1]], {}, r"users must hold numbers below 1e\+100 in size, got 1e\+300"),
        (np.eye(2), np.eye(2), {"user_ids": ["a", "a"]}, "user_ids must differ"),
        (np.eye(2), np.eye(2), {"item_ids": [1]}, "item_ids must be 2 whole numbers or strings"),
        (np.eye(2), np.eye(2), {"scale": "sqrt-s"}, "scale must be 'unit' or 'raw', got 'sqrt-s'"),
    ],
)
def test_vectors_that_cannot_be_used_are_refused(
    users: Any, items: Any, options: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ArgumentError, match=fault):
        Dataset.from_vectors(users, items, **options)
