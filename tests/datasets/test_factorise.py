from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.datasets.factorise import factorise, has_length, signs_of
from coterie.errors import ArgumentError, DataError
from coterie.seeding import stream
from coterie.types import Floats


def matrix(n_users: int = 12, n_items: int = 30, seed: int = 0) -> Floats:
    return (stream(seed, "tests", "matrix").random((n_users, n_items)) < 0.3).astype(np.float64)


def test_all_directions_together_give_the_matrix_back() -> None:
    feedback = matrix()
    users, items, singular = factorise(feedback, 12)
    np.testing.assert_allclose(users * singular @ items.T, feedback, atol=1e-12)


def test_raw_vectors_are_orthonormal_directions() -> None:
    factors = factorise(matrix(), 4)
    users, items, _, _ = factors.scaled("raw")
    np.testing.assert_allclose(users.T @ users, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(items.T @ items, np.eye(4), atol=1e-12)


def test_sqrt_s_vectors_have_the_best_approximation_as_their_product() -> None:
    feedback = matrix()
    users, items, _, kept = factorise(feedback, 4).scaled("sqrt-s")
    left, singular, right = np.linalg.svd(feedback, full_matrices=False)
    best = left[:, :4] * singular[:4] @ right[:4]
    np.testing.assert_allclose(users @ items.T, best[:, kept], atol=1e-12)


def test_unit_vectors_are_the_raw_ones_divided_by_their_length() -> None:
    factors = factorise(matrix(), 4)
    raw, unit = factors.scaled("raw")[1], factors.scaled("unit")[1]
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(unit * np.linalg.norm(raw, axis=1, keepdims=True), raw, atol=1e-14)


@given(seed=st.integers(min_value=0, max_value=200), flips=st.lists(st.booleans(), min_size=5, max_size=5))
def test_signs_do_not_depend_on_those_the_machine_chose(seed: int, flips: list[bool]) -> None:
    directions = np.linalg.svd(matrix(seed=seed), full_matrices=False)[2][:5].T
    turned = directions * np.where(flips, -1.0, 1.0)
    np.testing.assert_array_equal(directions * signs_of(directions), turned * signs_of(turned))


def test_the_entry_of_largest_magnitude_becomes_positive() -> None:
    items = factorise(matrix(), 6).items
    assert (items[np.abs(items).argmax(axis=0), np.arange(6)] > 0).all()


@pytest.mark.parametrize("rounding", [0.0, 1e-15, -1e-15])
def test_of_entries_equal_up_to_rounding_the_first_becomes_positive(rounding: float) -> None:
    directions = np.array([[0.1], [-0.7 - rounding], [0.7]])
    assert signs_of(directions).tolist() == [-1.0]


def test_users_and_items_turn_together() -> None:
    feedback = matrix()
    users, items, singular = factorise(feedback, 3)
    np.testing.assert_allclose(feedback @ items, users * singular[:3], atol=1e-12)


def test_rows_that_are_zero_up_to_rounding_are_no_vectors() -> None:
    assert has_length(np.array([[0.0, 0.0], [1e-17, -1e-16], [1e-3, 0.0]])).tolist() == [False, False, True]


def test_zero_users_and_items_are_dropped_from_every_scale() -> None:
    feedback = matrix()
    feedback[3], feedback[:, [0, 7]] = 0.0, 0.0
    for scale in ("unit", "raw", "sqrt-s"):
        users, items, has_user, has_item = factorise(feedback, 4).scaled(scale)
        assert np.flatnonzero(~has_user).tolist() == [3]
        assert has_item.tolist() == feedback.any(axis=0).tolist()
        assert users.shape == (11, 4)
        assert items.shape == (np.sum(has_item), 4)
        assert np.isfinite(users).all()
        assert np.isfinite(items).all()


def test_an_item_outside_the_strongest_directions_is_a_zero_vector_too() -> None:
    feedback = np.zeros((3, 4))
    feedback[:2, :3], feedback[2, 3] = 1.0, 1.0  # two components; the second has the smaller singular value
    _, _, has_user, has_item = factorise(feedback, 1).scaled("unit")
    assert has_user.tolist() == [True, True, False]
    assert has_item.tolist() == [True, True, True, False]


def test_fewer_directions_than_asked_is_an_error_that_says_how_many_there_are() -> None:
    feedback = np.ones((6, 9))
    feedback[:3, :4] = 0.0  # rank 2
    with pytest.raises(
        ArgumentError, match="dim must be at most 2, the number of directions in the data, got 3"
    ):
        factorise(feedback, 3)


def test_no_feedback_at_all_is_an_error() -> None:
    with pytest.raises(DataError, match="all zero"):
        factorise(np.zeros((3, 4)), 1)


def test_equal_singular_values_are_noted() -> None:
    assert factorise(np.eye(3), 2).notes() == (
        "singular values 1 and 2 are equal: another machine may turn their directions",
        "singular values 2 and 3 are equal: another machine may turn their directions",
    )
    assert factorise(np.diag([3.0, 2.0, 1.0, 1.0]), 2).notes() == ()


def test_a_second_machine_with_other_rounding_gives_the_same_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    feedback = matrix()
    ours = factorise(feedback, 6)
    left, singular, right = np.linalg.svd(feedback.T, full_matrices=False)  # another road to the same
    monkeypatch.setattr(np.linalg, "svd", lambda *_, **__: (-right.T, singular, -left.T))
    theirs = factorise(feedback, 6)
    np.testing.assert_allclose(ours.users, theirs.users, atol=1e-12)
    np.testing.assert_allclose(ours.items, theirs.items, atol=1e-12)
