"""Other features, preferences of few dimensions, and noise of heavy tails."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from coterie.datasets.dataset import Dataset
from coterie.environments import Cauchy, Contaminated, Stochastic, low_rank, onehot, rescaled

DRAWS = 200_000


@pytest.fixture(scope="module")
def data() -> Dataset:
    return coterie.datasets.load("synthetic", dim=7, n_users=40, n_items=120)


def test_one_hot_items_are_worth_what_users_say() -> None:
    square = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=5)
    world = Stochastic(onehot(square), n_users=8, n_clusters=2, n_arms=5)
    block = world.block(0)
    preferences = world.preferences[world.labels[block.users]]
    np.testing.assert_allclose(block.means, np.take_along_axis(preferences, block.picks, axis=1))
    assert world.dataset.users is square.users


def test_one_hot_items_are_as_many_as_coordinates(data: Dataset) -> None:
    with pytest.raises(
        coterie.ArgumentError, match="as many items as dimensions, got 120 items of dimension 7"
    ):
        onehot(data)


@pytest.mark.parametrize(
    ("scale", "spread", "columns"),
    [(0.03, 1.0, [0.03] * 7), (1.0, 100.0, [1, 10, 100, 1, 10, 100, 1]), (2.0, 4.0, [2, 4, 8, 2, 4, 8, 2])],
)
def test_other_units_leave_expected_rewards_as_they_are(
    data: Dataset, scale: float, spread: float, columns: list[float]
) -> None:
    changed = rescaled(data, scale, spread)
    np.testing.assert_allclose(changed.items, data.items * columns)
    np.testing.assert_allclose(changed.items @ changed.users.T, data.items @ data.users.T, atol=1e-12)
    assert not changed.items.flags.writeable
    before, after = (Stochastic(one, 8, 2, 10, seed=3).block(4) for one in (data, changed))
    np.testing.assert_allclose(after.means, before.means, atol=1e-12)
    np.testing.assert_array_equal(after.picks, before.picks)


@pytest.mark.parametrize(("scale", "spread"), [(0.0, 1.0), (1.0, -2.0), (np.inf, 1.0)])
def test_units_are_positive(data: Dataset, scale: float, spread: float) -> None:
    with pytest.raises(coterie.ArgumentError, match=r"(scale|spread) must be"):
        rescaled(data, scale, spread)


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_users_of_low_rank_lie_in_a_subspace_and_have_length_one(data: Dataset, rank: int) -> None:
    users = low_rank(data, rank).users
    assert users.shape == data.users.shape
    np.testing.assert_allclose(np.linalg.norm(users, axis=1), 1.0)
    values = np.linalg.svd(users, compute_uv=False)
    assert int((values > 1e-9 * values[0]).sum()) == rank
    assert len(np.unique(users.round(9), axis=0)) == (2 if rank == 1 else 40)


@pytest.mark.parametrize("rank", [0, 8, 1.5])
def test_a_rank_is_at_most_the_dimension(data: Dataset, rank: int) -> None:
    with pytest.raises(coterie.ArgumentError, match="rank must be"):
        low_rank(data, rank)


def test_cauchy_noise_has_its_quartiles_and_its_bound() -> None:
    noise = Cauchy(0.1, most=50.0).draw(np.random.default_rng(1), DRAWS)
    np.testing.assert_allclose(np.quantile(noise, [0.25, 0.5, 0.75]), [-0.1, 0.0, 0.1], atol=0.003)
    assert np.abs(noise).max() == 50.0
    beyond = 1 - 2 / np.pi * np.arctan(10)  # P(|C| > 10)
    assert np.mean(np.abs(noise) > 1.0) == pytest.approx(beyond, rel=0.05)


def test_contaminated_noise_is_a_mixture() -> None:
    noise = Contaminated(0.1, factor=50.0, share=0.02).draw(np.random.default_rng(2), DRAWS)
    assert noise.std() == pytest.approx(np.sqrt(0.98 * 0.01 + 0.02 * 25.0), rel=0.03)
    assert np.mean(np.abs(noise) > 0.6) == pytest.approx(0.02 * 0.9045, rel=0.05)  # P(|N| > 0.12)
    assert np.median(np.abs(noise)) == pytest.approx(0.0674 * 1.02, rel=0.02)


@pytest.mark.parametrize(
    "wrong", [{"sigma": -1.0}, {"sigma": 1.0, "share": 1.0}, {"sigma": 1.0, "factor": -1}]
)
def test_noise_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(coterie.ArgumentError, match="must"):
        Contaminated(**wrong)
    with pytest.raises(coterie.ArgumentError, match="must be at least 0"):
        Cauchy(-0.1)
