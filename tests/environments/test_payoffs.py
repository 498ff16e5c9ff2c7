"""Worlds of real feedback: what is offered, what it is worth, and that nobody made it up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import coterie
from coterie.datasets import PayoffTable, payoff_table
from coterie.datasets.payoff_table import SparseTable
from coterie.environments import Payoffs, Rounds, Shifted, Stochastic
from coterie.environments.blocks import BLOCK
from coterie.simulation import simulate
from inspection import remember_widths_of

RNG = np.random.default_rng(5)
ITEMS = RNG.normal(size=(40, 4))
DENSE = np.where(RNG.random((12, 40)) < 0.3, RNG.random((12, 40)) + 0.01, 0.0)
KNOWN = csr_array(DENSE)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 6), st.integers(1, 9), st.data())
def test_a_sparse_table_agrees_with_a_dense_one(n: int, m: int, drawn: st.DataObject) -> None:
    cells = drawn.draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, m - 1))))
    rows, columns = (np.array([c[k] for c in sorted(cells)], np.int64) for k in (0, 1))
    table = SparseTable(rows, columns, np.arange(1.0, len(cells) + 1), (n, m))
    dense, users = table.dense(), np.arange(n)
    everything = np.tile(np.arange(m), (n, 1))
    np.testing.assert_array_equal(table.values_at(users, everything, 0.0), dense)
    for user in range(n):
        known, unknown = np.flatnonzero(dense[user]), np.flatnonzero(dense[user] == 0)
        one = np.array([user])
        assert table.known(one, np.arange(len(known))[None, :])[0].tolist() == known.tolist()
        assert table.others(one, np.arange(len(unknown))[None, :])[0].tolist() == unknown.tolist()
    order = np.array(drawn.draw(st.permutations(range(n))), np.int64)
    np.testing.assert_array_equal(table.select(order).dense(), dense[order])


@pytest.mark.parametrize("offers", ["all", "known", "one-positive", "window"])
def test_rewards_are_the_payoffs_of_distinct_items(offers: Any) -> None:
    world = Payoffs(KNOWN, ITEMS, n_arms=5, seed=3, offers=offers, window=600)
    for number in range(3):
        block = world.block(number)
        assert all(len(set(row)) == 5 for row in block.picks.tolist())
        rows = world.members[block.users]
        np.testing.assert_array_equal(block.means, DENSE[rows[:, None], block.picks])
        assert not block.noise.any()
        assert block.lasting
    np.testing.assert_array_equal(
        world.block(1).picks, Payoffs(KNOWN, ITEMS, 5, 3, offers=offers, window=600).block(1).picks
    )


def test_known_items_are_those_that_the_user_told_of() -> None:
    world = Payoffs(KNOWN, ITEMS, n_arms=4, offers="known")
    assert (world.block(0).means > 0).all()
    assert world.left_out == int(((DENSE > 0).sum(axis=1) < 4).sum())


def test_users_with_too_few_known_items_are_left_out_and_counted() -> None:
    few = DENSE.copy()
    few[:3, 2:] = 0.0
    world = Payoffs(csr_array(few), ITEMS, n_arms=4, offers="known")
    assert (world.left_out, world.n_users) == (3, 9)
    assert not set(world.members.tolist()) & {0, 1, 2}
    with pytest.raises(
        coterie.ArgumentError, match="n_users must be at most 9, the number of eligible users, got 10"
    ):
        Payoffs(csr_array(few), ITEMS, n_arms=4, offers="known", n_users=10)
    with pytest.raises(coterie.ArgumentError, match="no user has 39 items whose payoff"):
        Payoffs(KNOWN, ITEMS, n_arms=39, offers="known")


def test_one_item_is_positive_anywhere_and_the_others_are_uniform() -> None:
    world = Payoffs(KNOWN, ITEMS, n_arms=5, offers="one-positive", n_users=1)
    blocks = [world.block(number) for number in range(40)]
    means, picks = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("means", "picks"))
    assert ((means > 0).sum(axis=1) == 1).all()
    places = np.bincount(means.argmax(axis=1), minlength=5)
    assert chi_square(places) < 18.5  # the 0.1 % point with 4 degrees of freedom; the seed is fixed
    unknown = np.flatnonzero(DENSE[world.members[0]] == 0)
    shown = np.bincount(picks[means == 0], minlength=40)
    assert shown.sum() == shown[unknown].sum()
    assert chi_square(shown[unknown]) < len(unknown) + 4 * np.sqrt(2 * len(unknown))


def chi_square(counts: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    expected = counts.sum() / len(counts)
    return float(((counts - expected) ** 2 / expected).sum())


def test_a_wrong_arm_may_cost_something() -> None:
    world = Payoffs(csr_array((DENSE > 0) * 1.0), ITEMS, n_arms=25, offers="one-positive", default=-1 / 24)
    means = world.block(0).means
    assert np.unique(means).tolist() == [-1 / 24, 1.0]
    np.testing.assert_allclose(means.sum(axis=1), 0.0, atol=1e-12)
    trace = simulate(coterie.LinUCBOne(world.n_users, 4, beta=0.1), world, 300)
    assert np.isnan(trace.relative).all()  # uniform play earns nothing but rounding errors


def test_the_window_passes_the_whole_catalogue_once() -> None:
    world = Payoffs(KNOWN, ITEMS, n_arms=5, offers="window", window=3 * BLOCK)
    picks = np.concatenate([world.block(number).picks for number in range(3)])
    first = [row[0] for row in picks.tolist()]
    assert len(dict.fromkeys(first)) == 36
    assert set(picks.ravel().tolist()) == set(range(40))
    later = world.block(7).picks
    assert (later == picks[-1]).all()  # beyond its rounds it stays where it is


def test_there_are_no_clusters_and_no_rand_index() -> None:
    world = Payoffs(DENSE, ITEMS, n_arms=6)
    trace = simulate(coterie.CLUB(12, 4, confidence=coterie.Tuned(alpha=1, beta=0.1)), world, 500, record=5)
    assert world.labels is None
    assert np.isnan(trace.ari).all()
    assert trace.clusters[-1] >= 1
    assert "ARI" not in repr(trace)


def test_uniform_play_is_known_exactly() -> None:
    world = Payoffs(DENSE, ITEMS, n_arms=6)
    trace = simulate(coterie.LinUCBOne(12, 4, beta=0.1), world, 300, record=3)
    every = np.concatenate([world.block(0).means, world.block(1).means])[:300].mean(axis=1)
    np.testing.assert_allclose(trace.uniform, np.cumsum(every)[[99, 199, 299]])
    np.testing.assert_allclose(trace.relative, trace.reward / trace.uniform)


def test_uniform_play_of_lists_is_the_mean_over_all_lists() -> None:
    from itertools import combinations

    data = coterie.environments.lifted(coterie.datasets.load("synthetic", dim=3, n_users=20, n_items=30))
    base = Stochastic(data, 6, 2, 7, noise=coterie.environments.Bernoulli(), seed=4)
    world = coterie.environments.Cascade(base, 3)
    trace = simulate(coterie.LinUCBInd(6, 4, beta=0.1), world, 50, record=1)
    every = [
        np.mean([1 - np.prod(1 - row[list(chosen)]) for chosen in combinations(range(7), 3)])
        for row in world.block(0).means[:50]
    ]
    assert trace.uniform[-1] == pytest.approx(sum(every))


def test_widths_that_would_not_fit_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Payoffs(DENSE, ITEMS, n_arms=6)
    traces = []
    for most in (2**26, 12 * 40 * 8 - 1):
        remember_widths_of(most, monkeypatch)
        traces.append(simulate(coterie.LinUCBInd(12, 4, beta=0.5), world, 600))
    np.testing.assert_array_equal(traces[0].reward, traces[1].reward)


@pytest.mark.parametrize(
    ("payoffs", "items", "says"),
    [
        (DENSE, None, "payoffs need vectors of the items"),
        (DENSE, ITEMS[:30], "a column for each of the 30 items, got shape"),
        (DENSE[:, :1], ITEMS[:1], "items must be at least two vectors"),
        (np.where(DENSE > 0, np.nan, 0), ITEMS, "payoffs must hold finite numbers only, got nan"),
        (DENSE, np.where(ITEMS > 0, np.inf, 0), "items must hold finite numbers only, got inf"),
        (DENSE[0], ITEMS, "payoffs must have a row a user"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(payoffs: Any, items: Any, says: str) -> None:
    with pytest.raises(coterie.ArgumentError, match=says):
        Payoffs(payoffs, items, n_arms=1)


def test_the_best_connected_are_served_with_their_friendships() -> None:
    table = payoff_table(DENSE, ITEMS)
    pairs = np.array([(0, 1), (0, 2), (0, 3), (2, 3)])
    both = np.vstack([pairs, pairs[:, ::-1]])
    table = table._replace(friends=SparseTable(both[:, 0], both[:, 1], np.ones(8), (12, 12)))
    world = Payoffs(table, n_arms=5, n_users=3, connected=True)
    assert world.members.tolist() == [0, 2, 3]
    assert world.graph is not None
    assert world.graph.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    with pytest.raises(coterie.ArgumentError, match="table with friendships"):
        Payoffs(DENSE, ITEMS, n_arms=5, connected=True)


def own_rounds(n: int = 600) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(2)
    users, arms = rng.integers(7, size=n), rng.normal(size=(n, 5, 3))
    return users, arms, arms @ np.array([1.0, -0.5, 0.2])


def test_own_rounds_are_played_as_they_are() -> None:
    users, arms, payoffs = own_rounds()
    world = Rounds(users, arms, payoffs)
    trace = simulate(coterie.LinUCBOne(world.present(0), 3, beta=0.1), world, 600, record=1)
    assert trace.regret[-1] < 20
    assert trace.reward[-1] == pytest.approx(payoffs.max(axis=1).sum() - trace.regret[-1])
    catalogue = Rounds(users, np.arange(3000).reshape(600, 5), payoffs, arms.reshape(-1, 3))
    again = simulate(coterie.LinUCBOne(world.present(0), 3, beta=0.1), catalogue, 600, record=1)
    assert again.reward[-1] == trace.reward[-1]
    with pytest.raises(coterie.ArgumentError, match="horizon must be at most 600"):
        simulate(coterie.LinUCBOne(7, 3, beta=0.1), world, 601)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda u, a, p: (u, a, p[:5]), "payoffs must have one row per round"),
        (lambda u, a, p: (u, a[:, :2], p), "arms must have shape"),
        (lambda u, a, p: (u - 1, a, p), "users must be from 0"),
        (lambda u, a, p: (u, a * np.nan, p), "arms must hold finite numbers"),
        (lambda u, a, p: (u, a, p, np.ones((9, 3))), "arms must be integers"),
    ],
)
def test_rounds_that_do_not_fit_are_refused(change: Any, says: str) -> None:
    with pytest.raises(coterie.ArgumentError, match=says):
        Rounds(*change(*own_rounds()))


def test_an_offset_does_not_matter_with_an_intercept() -> None:
    data = coterie.datasets.load("synthetic", dim=8, n_users=40, n_items=300)
    plain = Stochastic(data, 12, 3, 15, seed=1)
    regret = {}
    for name, world in {
        "plain": Shifted(plain),
        "with": Shifted(plain, 5.0),
        "without": Shifted(plain, 5.0, intercept=False),
    }.items():
        policy = coterie.LinUCBInd(world.n_users, world.dim, beta=0.1)
        regret[name] = simulate(policy, world, 4000).regret[-1]
    assert regret["with"] < 1.5 * regret["plain"]
    assert regret["without"] > 4 * regret["with"]


def test_a_shifted_world_is_the_base_with_one_more_coordinate() -> None:
    base = Payoffs(DENSE, ITEMS, n_arms=6)
    world = Shifted(base, 2.0)
    block, plain = world.block(0), base.block(0)
    np.testing.assert_array_equal(block.means, plain.means + 2.0)
    np.testing.assert_array_equal(block.items, np.column_stack([ITEMS, np.full(40, 5.0)]))
    assert world.block(1).items is block.items  # made once
    assert (world.n_users, world.labels, world.dim) == (12, None, 5)
    clicks = Stochastic(
        coterie.environments.lifted(coterie.datasets.load("synthetic", dim=3, n_users=9, n_items=30)),
        6,
        2,
        5,
        noise=coterie.environments.Bernoulli(),
    )
    with pytest.raises(coterie.ArgumentError, match="cannot have an offset"):
        Shifted(clicks, 1.0)


def test_a_table_has_vectors_of_its_own() -> None:
    table = payoff_table(DENSE, ITEMS)
    assert isinstance(table, PayoffTable)
    with pytest.raises(coterie.ArgumentError, match="items must not be given"):
        Payoffs(table, ITEMS)
