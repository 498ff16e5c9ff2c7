from __future__ import annotations

import numpy as np
import pytest

from coterie.datasets import load
from coterie.errors import ArgumentError


def test_the_paper_has_200_users_and_5000_items_of_50_dimensions_and_unit_length() -> None:
    data = load("synthetic")
    assert data.users.shape == (200, 50)
    assert data.items.shape == (5000, 50)
    for vectors in (data.users, data.items):
        assert vectors.dtype == np.float64
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-12)


def test_before_scaling_each_coordinate_is_uniform_on_minus_one_to_one() -> None:
    drawn = load("synthetic", scale="raw").items.ravel()  # 250,000 draws
    assert -1.0 <= drawn.min() < -0.9999
    assert 0.9999 < drawn.max() <= 1.0
    shares = np.histogram(drawn, bins=10, range=(-1.0, 1.0))[0] / drawn.size
    np.testing.assert_allclose(shares, 0.1, atol=0.003)  # five standard deviations


def test_unit_is_raw_with_rows_normalised() -> None:
    raw = load("synthetic", scale="raw", n_items=10, seed=3).items
    unit = load("synthetic", n_items=10, seed=3).items
    np.testing.assert_array_equal(unit, raw / np.linalg.norm(raw, axis=1, keepdims=True))


def test_a_seed_decides_everything_and_another_gives_other_vectors() -> None:
    first, again, other = (load("synthetic", seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.users, again.users)
    np.testing.assert_array_equal(first.items, again.items)
    assert not np.isclose(first.users, other.users).any(axis=1).all()
    assert first.provenance == again.provenance


def test_asking_for_more_items_changes_neither_the_first_ones_nor_the_users() -> None:
    few, many = load("synthetic", n_items=10), load("synthetic", n_items=20)
    np.testing.assert_array_equal(few.items, many.items[:10])
    np.testing.assert_array_equal(few.users, many.users)


def test_arrays_are_contiguous_and_cannot_be_written() -> None:
    data = load("synthetic", n_users=3, n_items=3)
    for array in (data.users, data.items, data.user_ids, data.item_ids):
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_a_path_is_refused() -> None:
    with pytest.raises(ArgumentError, match="'synthetic' reads no file"):
        load("synthetic", "ratings.csv")


def test_sqrt_s_is_refused_because_nothing_was_decomposed() -> None:
    with pytest.raises(ArgumentError, match="needs singular values"):
        load("synthetic", scale="sqrt-s")


def test_the_description_tells_the_seed_and_no_file() -> None:
    text = load("synthetic", dim=2, n_users=3, n_items=4, seed=9).provenance.describe()
    assert "seed      9" in text
    assert "3 users and 4 items of 2 dimensions" in text
    assert "sha256" not in text
