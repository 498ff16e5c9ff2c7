"""linalg.c against NumPy, and its promise: a number's bits do not depend on what is computed beside it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.examples import make
from coterie.policies.kernel import linalg
from coterie.types import Floats
from inspection import state_array
from policies.histories import rows

CASES = settings(deadline=None, derandomize=True, max_examples=100)
SEEDS = st.integers(0, 2**32)
LENGTHS = (*range(1, 10), 15, 16, 17, 31, 33, 64, 255, 256, 257, 513, 600)


def positive_definite(rng: np.random.Generator, d: int, spread: float) -> Floats:
    basis, _ = np.linalg.qr(rng.normal(size=(d, d)))
    matrix = np.asarray((basis * np.geomspace(1.0, spread, d)) @ basis.T)
    return np.asarray(0.5 * (matrix + matrix.T))


@CASES
@given(seed=SEEDS, d=st.integers(1, 30), spread=st.sampled_from([1.0, 10.0, 1e3, 1e6]))
def test_inverses_and_factors_agree_with_numpy(seed: int, d: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    matrix, right = positive_definite(rng, d, spread), rng.normal(size=d)
    inverse = linalg.inverted(matrix, 0.5)
    assert np.array_equal(inverse, inverse.T)
    assert np.allclose(inverse, np.linalg.inv(matrix), rtol=1e-9 * spread, atol=1e-13 * spread)
    assert np.allclose(inverse @ matrix, np.eye(d), rtol=0, atol=1e-12 * spread)
    factor = linalg.cholesky_factor(matrix)
    assert np.allclose(factor, np.linalg.cholesky(matrix), rtol=1e-9, atol=1e-9 * spread)
    logdet, explained, solution = linalg.eliminated(np.triu(matrix), right.copy(), 0.5)
    assert logdet == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-9, abs=1e-9)
    assert explained == pytest.approx(right @ np.linalg.solve(matrix, right), rel=1e-8)
    assert np.allclose(solution, np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1e-250, 1e-60, 1.0, 1e60, 1e250])
def test_a_determinant_of_any_size_has_its_logarithm(size: float) -> None:
    pivots = size * np.geomspace(1.0, 7.0, 9)
    logdet, _, _ = linalg.eliminated(np.diag(pivots), np.zeros(9), 0.5 * size)
    assert logdet == pytest.approx(np.log(pivots).sum(), rel=1e-14)
    mixed = np.array([1e250, 1e-250, 3.0, 1e250, 1e250, 1e-250])
    logdet, _, _ = linalg.eliminated(np.diag(mixed), np.zeros(6), 1e-300)
    assert logdet == pytest.approx(np.log(mixed).sum(), rel=1e-14)


@CASES
@given(seed=SEEDS, d=st.integers(1, 30), share=st.floats(0, 1), kind=st.integers(0, 3))
def test_few_vectors_have_as_many_coordinates(seed: int, d: int, share: float, kind: int) -> None:
    rng, n = np.random.default_rng(seed), max(1, round(share * d))
    vectors = rng.normal(size=(n, d)) * np.array([1.0, 1e-8, 1e8])[rng.integers(3, size=n)][:, None]
    if kind == 1:
        vectors[rng.integers(n)] = 0.0
    elif kind == 2:
        vectors[rng.integers(n)] = vectors[rng.integers(n)]
    elif kind == 3:
        vectors = np.eye(d)[rng.integers(d, size=n)]
    lengths = np.linalg.norm(vectors, axis=1)
    made_of_them, other = rng.normal(size=n) @ vectors, rng.normal(size=d)
    gram, turned, _ = linalg.folded(vectors, made_of_them.copy())
    assert np.allclose(turned[n:], 0, atol=1e-13 * np.linalg.norm(made_of_them))
    products = vectors @ made_of_them
    assert turned[:n] @ gram @ turned[:n] == pytest.approx(products @ products, rel=1e-11)
    assert np.trace(gram) == pytest.approx(lengths @ lengths, rel=1e-12)
    assert np.array_equal(gram, gram.T)
    _, turned, back = linalg.folded(vectors, other.copy())
    assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(other), rel=1e-13)
    assert np.allclose(back, other, atol=1e-13)


@pytest.mark.parametrize("d", LENGTHS)
def test_products_agree_with_numpy(d: int) -> None:
    rng = np.random.default_rng(d)
    half = rng.normal(size=(d, d)) / np.sqrt(d)
    matrix, a, b = np.eye(d) + half @ half.T, rng.normal(size=d), rng.normal(size=d)
    assert linalg.dot_product(a, b) == pytest.approx(a @ b, abs=1e-11)
    assert linalg.squared_distance(a, b) == pytest.approx(np.sum((a - b) ** 2), rel=1e-12)
    assert linalg.squared_distance(a, a) == 0.0
    assert linalg.squared_distance(a, b) == linalg.squared_distance(b, a)
    assert linalg.dot_product(a, b) == linalg.dot_product(b, a)
    assert linalg.quadratic_form(matrix, a) == pytest.approx(a @ matrix @ a, rel=1e-12)
    assert np.allclose(linalg.applied(matrix, a), matrix @ a, atol=1e-11)


@pytest.mark.parametrize("d", LENGTHS)
def test_a_quadratic_form_and_a_mean_have_the_same_bits_alone_and_among_others(d: int) -> None:
    rng = np.random.default_rng(d)
    half = rng.normal(size=(d, d)) / np.sqrt(d)
    matrix, arms, theta = np.eye(d) + half @ half.T, rng.normal(size=(21, d)), rng.normal(size=d)
    alone = np.array([linalg.quadratic_form(matrix, x) for x in arms])
    means = np.array([linalg.products(theta, arms[k : k + 1])[0] for k in range(21)])
    for count in (1, 2, 3, 7, 8, 9, 15, 16, 17, 21):
        out = np.full(count, np.nan)
        linalg.quadratic_forms(matrix, arms[:count].copy(), out)
        assert np.array_equal(out, alone[:count])
        assert np.array_equal(linalg.products(theta, arms[:count].copy()), means[:count])
    out = np.empty(21)
    linalg.quadratic_forms(matrix, arms[::-1].copy(), out)
    assert np.array_equal(out[::-1], alone)
    assert np.array_equal(linalg.products(theta, arms[::-1].copy())[::-1], means)
    assert np.allclose(means, arms @ theta, atol=1e-11)
    plain = np.empty(21)
    linalg.plain_quadratic_forms(matrix, arms, plain)
    assert np.allclose(plain, alone, rtol=1e-12)


@CASES
@given(seed=SEEDS, d=st.integers(1, 8), weight=st.sampled_from([0.1, 1.0, 7.0]), n=st.integers(0, 30))
def test_absorbing_one_by_one_is_ridge_regression_on_all(seed: int, d: int, weight: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    xs, rewards = rng.normal(size=(n, d)), rng.normal(size=n)
    inverse, moment, estimate, gram = np.eye(d) / weight, np.zeros(d), np.zeros(d), np.zeros((d, d))
    for x, reward in zip(xs, rewards, strict=True):
        width2 = x @ np.linalg.inv(weight * np.eye(d) + gram) @ x
        assert linalg.absorbed(inverse, moment, estimate, x, reward) == pytest.approx(width2)
        gram += np.outer(x, x)
    matrix = weight * np.eye(d) + gram
    assert np.array_equal(inverse, inverse.T)
    assert np.allclose(inverse @ matrix, np.eye(d), atol=1e-9)
    assert np.allclose(moment, xs.T @ rewards)
    assert np.allclose(estimate, np.linalg.solve(matrix, xs.T @ rewards))


def test_absorbing_on_paper() -> None:
    inverse, moment, estimate = np.eye(1), np.zeros(1), np.zeros(1)
    width2 = linalg.absorbed(inverse, moment, estimate, np.array([2.0]), 3.0)  # 1 + 4 = 5, b = 6
    assert width2 == 4.0
    assert inverse[0, 0] == pytest.approx(1 / 5)
    assert moment[0] == 6.0
    assert estimate[0] == pytest.approx(6 / 5)


@CASES
@given(SEEDS, st.integers(1, 10), st.integers(0, 30), st.sampled_from([1.0, 1e-2, 1e-4, 1e-5]))
def test_the_bound_of_the_largest_eigenvalue_is_one(seed: int, d: int, n: int, scale: float) -> None:
    """However close the eigenvalues: a width xᵀM⁻¹x never exceeds the bound times ‖x‖²."""
    rng = np.random.default_rng(seed)
    data = scale * rng.normal(size=(n, d))
    inverse = linalg.inverted(0.1 * np.eye(d) + data.T @ data, 0.05)
    bound, largest = linalg.eigenvalue_bound(inverse), np.linalg.eigvalsh(inverse)[-1]
    assert bound * (1 + 1e-9) >= largest
    assert bound <= np.trace(inverse) * (1 + 1e-9)
    for x in np.linalg.eigh(inverse)[1].T:
        assert bound * (1 + 1e-9) * (x @ x) >= linalg.quadratic_form(inverse, x.copy())


@pytest.mark.parametrize("example", ["CLUB", "SCLUB", "PhaseUniCLUB"])
@settings(deadline=None, derandomize=True, max_examples=30)
@given(seed=SEEDS, weight=st.sampled_from([0.1, 1.0, 7.0]))
def test_a_pool_is_the_sum_of_its_members(example: str, seed: int, weight: float) -> None:
    policy, rng = make(example, n_users=5, ridge=weight), np.random.default_rng(seed)
    grams, moments = np.zeros((5, 3, 3)), np.zeros((5, 3))
    for _ in range(40):
        user, x, reward = int(rng.integers(5)), rng.normal(size=3), float(rng.normal())
        policy.update(user, x, reward)
        grams[user] += np.outer(x, x)
        moments[user] += reward * x
    for row, mine in rows(policy).items():
        matrix, moment = weight * np.eye(3) + grams[mine].sum(axis=0), moments[mine].sum(axis=0)
        assert np.allclose(state_array(policy, "pools.inverse")[row] @ matrix, np.eye(3), atol=1e-9)
        assert np.allclose(state_array(policy, "pools.moment")[row], moment)
        estimate = state_array(policy, "pools.estimate")[row]
        assert np.allclose(estimate, np.linalg.solve(matrix, moment), atol=1e-9)
