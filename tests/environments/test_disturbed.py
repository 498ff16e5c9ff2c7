"""Disturbed worlds: only what is said is disturbed, and as much as is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from coterie.datasets.dataset import Dataset
from coterie.environments import Bernoulli, Block, Disturbed, Smoothed, Stochastic, lifted
from coterie.environments.blocks import BLOCK
from coterie.environments.disturbed import OUTLIER_ROUND
from coterie.simulation import simulate


@pytest.fixture(scope="module")
def data() -> Dataset:
    return coterie.datasets.load("synthetic", dim=6, n_users=40, n_items=120)


def base(data: Dataset, **more: Any) -> Stochastic:
    return Stochastic(data, **{"n_users": 20, "n_clusters": 4, "n_arms": 10, "seed": 5, **more})


def rounds(world: Stochastic | Smoothed | Disturbed, blocks: int = 60) -> Block:
    """Many blocks as one; the items are those of the first."""
    every = [world.block(number) for number in range(blocks)]
    users, means, noise = (
        np.concatenate([getattr(one, name) for one in every]) for name in ("users", "means", "noise")
    )
    return every[0]._replace(users=users, means=means, noise=noise)


def test_a_world_that_nothing_disturbs_is_its_base(data: Dataset) -> None:
    plain = base(data)
    world = Disturbed(plain)
    for mine, same in zip(world.block(3), plain.block(3), strict=True):
        np.testing.assert_array_equal(mine, same)
    assert world.labels.tolist() == plain.labels.tolist()
    assert (world.n_users, world.dim, world.seed, world.gamma) == (20, 6, 5, plain.gamma)
    assert (world.lambda_x, world.longest_delay, world.present(0)) == (plain.lambda_x, 0, 20)
    np.testing.assert_array_equal(world.preferences, plain.preferences)
    assert repr(world) == f"<Disturbed: {plain!r}>"


def test_liars_answer_at_random_and_the_others_as_before(data: Dataset) -> None:
    plain, world = base(data), Disturbed(base(data), liars=2, liar_sd=7.0)
    told, before = rounds(world), rounds(plain)
    lying = np.isin(told.users, world.liars)
    assert 0.05 < lying.mean() < 0.15
    assert not told.means[lying].any()
    answers = told.noise[lying]
    assert answers.std() == pytest.approx(7.0, rel=0.1)
    assert abs(answers.mean()) < 4 * 7.0 / np.sqrt(len(answers))
    np.testing.assert_array_equal(told.noise[~lying], before.noise[~lying])
    np.testing.assert_array_equal(told.means[~lying], before.means[~lying])


def test_who_lies_depends_on_the_seed_alone_and_everybody_may(data: Dataset) -> None:
    found = {int(Disturbed(base(data, seed=seed), liars=1).liars[0]) for seed in range(40)}
    assert len(found) > 8
    assert Disturbed(base(data), liars=20).liars.tolist() == list(range(20))
    first, again = (Disturbed(base(data), liars=1, liar_sd=3.0).block(9).noise for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_liar_is_a_cluster_of_its_own(data: Dataset) -> None:
    plain, world = base(data), Disturbed(base(data), liars=2)
    honest = np.setdiff1d(np.arange(20), world.liars)
    assert world.labels[honest].tolist() == plain.labels[honest].tolist()
    assert world.labels[world.liars].tolist() == [4, 5]
    assert plain.labels.max() == 3  # that of the base is not changed
    assert not world.preferences[world.labels[world.liars]].any()


def test_regret_is_that_of_the_honest(data: Dataset) -> None:
    world = Disturbed(base(data), liars=20)
    policy = coterie.LinUCBInd(20, 6, beta=0.1)
    assert simulate(policy, world, 500, record=1).regret[-1] == 0.0


def test_an_outlier_is_one_reward(data: Dataset) -> None:
    told, before = rounds(Disturbed(base(data), outlier=-100.0)), rounds(base(data))
    (changed,) = np.flatnonzero(told.noise != before.noise)
    assert changed == OUTLIER_ROUND == 1000
    assert told.noise[changed] - before.noise[changed] == pytest.approx(-100.0)
    np.testing.assert_array_equal(told.means, before.means)


def test_a_fifth_of_the_users_is_noisier(data: Dataset) -> None:
    world = Disturbed(base(data, noise=0.05), uneven=20.0)
    told = rounds(world)
    noisy = np.isin(told.users, world.noisy)
    assert len(world.noisy) == 4
    assert told.noise[noisy].std() == pytest.approx(1.0, rel=0.1)
    assert told.noise[~noisy].std() == pytest.approx(0.05, rel=0.05)
    assert len(Disturbed(base(data, n_users=4), uneven=2.0).noisy) == 1


@pytest.mark.parametrize("kind", [Stochastic, Smoothed])
def test_users_deviate_from_their_cluster_by_a_share_of_the_gap(
    data: Dataset, kind: type[Stochastic] | type[Smoothed]
) -> None:
    plain = kind(data, n_users=20, n_clusters=4, n_arms=10, seed=5)
    world = Disturbed(plain, within=0.4)
    lengths = np.linalg.norm(world.deviations, axis=1)
    np.testing.assert_allclose(lengths, 0.4 * plain.gamma)
    block = world.block(2)
    own = (world.preferences[world.labels] + world.deviations)[block.users]
    expected = np.einsum("tkd,td->tk", block.items[block.picks], own)
    np.testing.assert_allclose(block.means, expected, atol=1e-12)
    assert len(np.unique(world.deviations.round(9), axis=0)) == 20
    assert world.labels.tolist() == plain.labels.tolist()


def test_all_disturbances_go_together(data: Dataset) -> None:
    world = Disturbed(base(data), liars=1, outlier=9.0, uneven=3.0, within=0.1)
    assert repr(world).startswith("<Disturbed by liars 1, outlier 9, uneven 3, within 0.1: <Stochastic on")
    block = world.block(OUTLIER_ROUND // BLOCK)
    assert not block.means[block.users == world.liars[0]].any()
    assert block.noise[OUTLIER_ROUND % BLOCK] > 5
    policy = coterie.AutoCLUB(20, 6)
    assert np.isfinite(simulate(policy, world, 1500, record=1).regret[-1])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"liars": 21}, "liars must be at most 20, got 21"),
        ({"liars": 0.5}, "liars must be a whole number"),
        ({"liar_sd": -1.0}, "liar_sd must be at least 0"),
        ({"outlier": np.nan}, "outlier must be a finite number"),
        ({"uneven": 0.0}, "uneven must be positive"),
        ({"within": -0.1}, "within must be at least 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(data: Dataset, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(coterie.ArgumentError, match=says):
        Disturbed(base(data), **wrong)


def test_some_bases_cannot_be_disturbed(data: Dataset) -> None:
    clicks = base(lifted(data), noise=Bernoulli())
    other: Any = Disturbed(base(data))
    for wrong in (clicks, other):
        with pytest.raises(coterie.ArgumentError, match="base must be Stochastic or Smoothed with rewards"):
            Disturbed(wrong, liars=1)
    with pytest.raises(coterie.ArgumentError, match="n_clusters must be at least 2"):
        Disturbed(base(data, n_clusters=1), within=0.1)
