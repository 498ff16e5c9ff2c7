from __future__ import annotations

from pathlib import Path

from coterie.datasets import Dataset, load
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
        ("asked", "the 20 users and 40 items with the most rows"),
        ("ties", f"{facts.tied_users} users and {facts.tied_items} items at the cut, lower ids first"),
        ("dropped", f"0 users and {facts.dropped_items} items with a zero vector"),
        ("density", f"{facts.density:.4f} of the feedback matrix is 1"),
    ]
    for title, value in expected:
        assert f"\n  {title:<10}{value}\n" in text
    assert "no. 1: " in text
