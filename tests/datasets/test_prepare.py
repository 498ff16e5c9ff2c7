from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from coterie.datasets import load
from datasets import generated

TABLE = generated.rows()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return generated.write(tmp_path / "ratings.csv", generated.movielens_csv(TABLE))


def test_fewer_users_and_items_than_asked_is_allowed_with_a_note_that_is_seen(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):  # the second comes from the cache
        caplog.clear()
        facts = load("movielens", path, dim=5).provenance
        assert facts.notes == (
            "200 users requested, the data has 30: all were taken",
            "5,000 items requested, the data has 60: all were taken",
        )
        assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
        assert "movielens: 200 users requested, the data has 30: all were taken" in caplog.text
        assert "note      200 users requested" in facts.describe()


def test_as_many_as_asked_is_worth_no_note(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    facts = load("movielens", path, dim=5, n_users=30, n_items=60).provenance
    assert facts.notes == ()
    assert caplog.records == []


def test_dropped_vectors_are_counted_and_their_ids_go_with_them(path: Path) -> None:
    table = {"user": [1, 1, 2, 2, 3, 3], "item": [1, 2, 1, 3, 4, 4], "value": [5, 5, 5, 1, 1, 1]}
    data = load("interactions", pl.DataFrame(table), threshold=3, dim=2, n_users=3, n_items=4)
    assert (data.provenance.dropped_users, data.provenance.dropped_items) == (1, 2)
    assert data.user_ids.tolist() == [1, 2]
    assert data.item_ids.tolist() == [1, 2]
    assert data.users.shape == data.items.shape == (2, 2)


@pytest.mark.parametrize("scale", ["unit", "raw", "sqrt-s"])
def test_vectors_are_contiguous_floats_that_cannot_be_written(scale: str, path: Path) -> None:
    data = load("movielens", path, dim=5, n_users=20, n_items=40, scale=scale)
    assert data.provenance.scale == scale
    for vectors in (data.users, data.items):
        assert vectors.dtype == np.float64
        assert vectors.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            vectors[0, 0] = 1.0


def test_rows_stand_in_the_order_of_their_counts(path: Path) -> None:
    data = load("movielens", path, dim=5, n_users=20, n_items=40)
    counts = [sum(row.user == user for row in TABLE) for user in data.user_ids.tolist()]
    assert counts == sorted(counts, reverse=True)
