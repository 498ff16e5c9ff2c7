from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels import ridge as kernels
from coterie.policies.partition import empty
from coterie.types import Floats

CASES = settings(deadline=None, derandomize=True, max_examples=100)
SEEDS = st.integers(0, 2**32)


def positive_definite(rng: np.random.Generator, d: int, spread: float) -> Floats:
    basis, _ = np.linalg.qr(rng.normal(size=(d, d)))
    matrix = np.asarray((basis * np.geomspace(1.0, spread, d)) @ basis.T)
    return np.asarray(0.5 * (matrix + matrix.T))


@CASES
@given(seed=SEEDS, d=st.integers(1, 30), spread=st.sampled_from([1.0, 10.0, 1e3, 1e6]))
def test_invert_agrees_with_numpy(seed: int, d: int, spread: float) -> None:
    matrix = positive_definite(np.random.default_rng(seed), d, spread)
    inverse = matrix.copy()
    kernels.invert(inverse)
    assert np.array_equal(inverse, inverse.T)
    assert np.allclose(inverse, np.linalg.inv(matrix), rtol=1e-9 * spread, atol=1e-13 * spread)
    assert np.allclose(inverse @ matrix, np.eye(d), rtol=0, atol=1e-12 * spread)


@CASES
@given(seed=SEEDS, d=st.integers(1, 30))
def test_products_agree_with_numpy(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, a, b, work = positive_definite(rng, d, 10.0), rng.normal(size=d), rng.normal(size=d), np.empty(d)
    assert kernels.dot(a, b) == pytest.approx(a @ b, abs=1e-12)
    assert kernels.distance2(a, b) == pytest.approx(np.sum((a - b) ** 2), abs=1e-12)
    assert kernels.distance2(a, a) == 0.0
    assert kernels.distance2(a, b) == kernels.distance2(b, a)
    assert kernels.quadratic(matrix, a, work) == pytest.approx(a @ matrix @ a, rel=1e-12)
    kernels.apply(matrix, a, work)
    assert np.allclose(work, matrix @ a, atol=1e-12)


@CASES
@given(seed=SEEDS, d=st.integers(1, 8), weight=st.sampled_from([0.1, 1.0, 7.0]), n=st.integers(0, 30))
def test_absorbing_one_by_one_is_ridge_regression_on_all(seed: int, d: int, weight: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    xs, rewards, gain = rng.normal(size=(n, d)), rng.normal(size=n), np.empty(d)
    held = empty(3, d, weight)
    gram = np.zeros((d, d))
    for x, reward in zip(xs, rewards, strict=True):
        width2 = x @ np.linalg.inv(weight * np.eye(d) + gram) @ x
        assert kernels.absorb(held, 1, x, reward, gain) == pytest.approx(width2)
        kernels.accumulate(gram, x)
    matrix = weight * np.eye(d) + xs.T @ xs
    assert np.allclose(gram, xs.T @ xs)
    assert np.allclose(held.inverse[1] @ matrix, np.eye(d), atol=1e-9)
    assert np.allclose(held.moment[1], xs.T @ rewards)
    assert np.allclose(held.estimate[1], np.linalg.solve(matrix, xs.T @ rewards))
    assert held.pulls.tolist() == [0, n, 0]
    assert np.array_equal(held.inverse[[0, 2]], empty(2, d, weight).inverse)


def test_absorbing_on_paper() -> None:
    held = empty(1, 1, 1.0)
    gain = np.empty(1)
    kernels.absorb(held, 0, np.array([2.0]), 3.0, gain)  # 1 + 4 = 5, b = 6
    assert held.inverse[0, 0, 0] == pytest.approx(1 / 5)
    assert held.estimate[0, 0] == pytest.approx(6 / 5)
    assert gain[0] == 2.0


@CASES
@given(seed=SEEDS, members=st.sets(st.integers(0, 4)), weight=st.sampled_from([0.1, 1.0, 7.0]))
def test_a_pool_is_the_sum_of_its_members(seed: int, members: set[int], weight: float) -> None:
    rng = np.random.default_rng(seed)
    users, grams, pools = empty(5, 3, weight), np.zeros((5, 3, 3)), empty(2, 3, weight)
    for _ in range(20):
        user, x = int(rng.integers(5)), rng.normal(size=3)
        kernels.absorb(users, user, x, rng.normal(), np.empty(3))
        kernels.accumulate(grams[user], x)
    mine = np.array(sorted(members), np.int64)
    kernels.pool(pools, 1, users, grams, mine, weight)
    matrix = weight * np.eye(3) + grams[mine].sum(axis=0)
    moment = users.moment[mine].sum(axis=0)
    assert np.allclose(pools.inverse[1] @ matrix, np.eye(3), atol=1e-9)
    assert np.allclose(pools.moment[1], moment)
    assert np.allclose(pools.estimate[1], np.linalg.solve(matrix, moment), atol=1e-9)
    assert pools.pulls.tolist() == [0, users.pulls[mine].sum()]


def test_a_copied_row_shares_nothing_with_its_source() -> None:
    source, target = empty(2, 2, 1.0), empty(2, 2, 1.0)
    kernels.absorb(source, 0, np.ones(2), 1.0, np.empty(2))
    kernels.copy_row(source, 0, target, 1)
    assert all(np.array_equal(a[0], b[1]) for a, b in zip(source, target, strict=True))
    kernels.absorb(source, 0, np.ones(2), 1.0, np.empty(2))
    assert target.pulls.tolist() == [0, 1]


@CASES
@given(st.lists(st.integers(0, 4), max_size=30), st.integers(0, 5))
def test_where_lists_the_users_of_a_label(labels: list[int], label: int) -> None:
    wanted = [user for user, mine in enumerate(labels) if mine == label]
    assert kernels.where(np.array(labels, np.int64), label).tolist() == wanted
