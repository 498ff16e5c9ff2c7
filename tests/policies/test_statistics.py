"""The statistics that every decision rests on are what a fresh sum would give."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from contracts.examples import EXAMPLES, grow, halves, make, play, ring
from coterie.policies.graphs import WALK_FLOOR
from coterie.policies.partition import arrays, by_appearance
from coterie.types import Floats
from policies.histories import DIM, Event, Sums, events, live, rows

ALL = sorted(EXAMPLES)
POOLED = [e for e in ALL if not e.startswith(("GOBLin", "GraphUCB", "AutoCLUB"))]
CLUSTERING = [e for e in POOLED if not e.startswith("LinUCB")]
OVER_GRAPHS = [e for e in ALL if e.startswith(("GOBLin", "GraphUCB"))]
CASES = settings(deadline=None, derandomize=True, max_examples=30)


def check_row(ridge_rows: Any, row: int, gram: Floats, moment: Floats, pulls: int, ridge: float) -> None:
    """A row of statistics against λI + S, b and T."""
    matrix = ridge * np.eye(len(moment)) + gram
    inverse = ridge_rows.inverse[row]
    assert np.allclose(inverse @ matrix, np.eye(len(moment)), rtol=0, atol=1e-8)
    assert np.allclose(inverse, inverse.T, rtol=0, atol=1e-12)
    assert np.allclose(ridge_rows.moment[row], moment, atol=1e-9)
    assert np.allclose(ridge_rows.estimate[row], np.linalg.solve(matrix, moment), atol=1e-8)
    assert ridge_rows.pulls[row] == pulls


def penalty(example: str, n_users: int, ridge: float) -> tuple[Floats, Floats]:
    """The regulariser of all users at once and the weight of each user's data."""
    graph = np.zeros((n_users, n_users))
    graph[:6, :6] = ring(6)
    totals = graph.sum(axis=1)
    laplacian = np.diag(totals) - graph
    if example.startswith("GOBLin"):
        return ridge * (np.eye(n_users) + laplacian), np.ones(n_users)
    degrees = np.where(totals > 0, totals, 1.0)
    return ridge * (laplacian + WALK_FLOOR * np.diag(degrees)), degrees


def check_joint(example: str, joint: Any, sums: Sums, ridge: float) -> None:
    n, d = sums.moments.shape
    start, weights = penalty(example, n, ridge)
    matrix = np.kron(start, np.eye(d))
    for user in range(n):
        at = slice(user * d, (user + 1) * d)
        matrix[at, at] += weights[user] * sums.grams[user]
    weighted = (weights[:, None] * sums.moments).reshape(-1)
    inverse = joint.inverse.reshape(n * d, n * d)
    assert np.allclose(inverse @ matrix, np.eye(n * d), rtol=0, atol=1e-8)
    assert np.allclose(joint.moment, sums.moments, atol=1e-9)
    assert np.allclose(joint.estimate.reshape(-1), np.linalg.solve(matrix, weighted), atol=1e-7)
    assert np.array_equal(joint.pulls, sums.pulls)


@pytest.mark.parametrize("example", POOLED)
@CASES
@given(history=events())
def test_pooled_statistics_are_the_sum_of_the_members_after_any_history(
    example: str, history: list[Event]
) -> None:
    policy = make(example)
    sums = live(policy, history)
    for row, members in rows(policy).items():
        gram, moment = sums.grams[members].sum(axis=0), sums.moments[members].sum(axis=0)
        check_row(policy.partition.state.pools, row, gram, moment, sums.pulls[members].sum(), 1.0)


@pytest.mark.parametrize("example", CLUSTERING)
@CASES
@given(history=events())
def test_each_users_statistics_are_its_own_sum_after_any_history(example: str, history: list[Event]) -> None:
    policy = make(example, ridge=0.5)
    sums = live(policy, history)
    state = policy.partition.state
    assert np.allclose(state.grams, sums.grams, atol=1e-9)
    for user in range(policy.n_users):
        check_row(state.users, user, sums.grams[user], sums.moments[user], sums.pulls[user], 0.5)
    assert np.array_equal(policy.pulls, sums.pulls)
    assert policy.rounds == len(history)


@pytest.mark.parametrize("example", OVER_GRAPHS)
@CASES
@given(history=events(30))
def test_the_regression_over_a_graph_is_the_dense_one_after_any_history(
    example: str, history: list[Event]
) -> None:
    policy = make(example, ridge=2.0)
    sums = live(policy, history)
    state = policy.partition.state
    check_joint(example, getattr(state, "joint", state), sums, 2.0)
    if example.startswith("GraphUCB"):
        for user in range(policy.n_users):
            check_row(state.users, user, sums.grams[user], sums.moments[user], sums.pulls[user], 2.0)
        dense = np.linalg.slogdet(np.eye(DIM) + sums.grams / 2.0)[1]
        assert np.allclose(state.logdets, dense, atol=1e-9)


@pytest.mark.parametrize("example", [e for e in CLUSTERING if "SCLUB" not in e])
@CASES
@given(history=events())
def test_a_graph_stays_symmetric_without_loops_and_knows_its_components(
    example: str, history: list[Event]
) -> None:
    policy = make(example)
    live(policy, history)
    n = policy.n_users
    edges = np.unpackbits(policy.partition.state.edges.view(np.uint8), axis=1, bitorder="little")
    assert not edges[:, n:].any()
    graph = edges[:, :n].astype(bool)
    assert np.array_equal(graph, graph.T)
    assert not graph.diagonal().any()
    reached = np.linalg.matrix_power((graph | np.eye(n, dtype=bool)).astype(float), n) > 0
    assert np.array_equal(policy.labels(), by_appearance(reached.argmax(axis=1)))
    if policy.name == "PhaseUniCLUB":
        assert all(set(policy.cluster_of(u)) == {u, *np.flatnonzero(graph[u])} for u in range(n))


@pytest.mark.parametrize("example", [e for e in CLUSTERING if e.startswith("Phase")])
@CASES
@given(history=events())
def test_a_room_holds_exactly_the_neighbourhood_of_each_tenant(example: str, history: list[Event]) -> None:
    policy = make(example)
    live(policy, history)
    state = policy.partition.state
    homes = state.room[state.room >= 0]
    assert np.array_equal(np.bincount(homes, minlength=policy.n_users), state.tenants)
    held = rows(policy)
    for user in np.flatnonzero(state.room >= 0):
        assert held[int(state.room[user])].tolist() == policy.cluster_of(int(user)).tolist()


@pytest.mark.parametrize("example", [e for e in CLUSTERING if "SCLUB" in e])
@CASES
@given(history=events())
def test_sets_know_their_sizes_and_who_of_them_is_unchecked(example: str, history: list[Event]) -> None:
    policy = make(example)
    live(policy, history)
    state = policy.partition.state
    n, count = policy.n_users, int(state.clock[1])
    assert np.array_equal(np.bincount(state.labels, minlength=n), state.sizes)
    used = np.flatnonzero(state.sizes)
    assert sorted(state.order[:count].tolist()) == used.tolist()
    waiting = np.bincount(state.labels[~state.checked], minlength=n)
    assert np.array_equal(waiting[used], state.unchecked[used])


@pytest.mark.parametrize("example", ALL)
def test_no_array_is_shared_between_two_owners(example: str) -> None:
    policy, twin = make(example), make(example)
    for step in range(3):
        held = list(arrays(policy.partition.state))
        others = list(arrays(twin.partition.state))
        for (one, a), (other, b) in combinations(held, 2):
            assert not np.shares_memory(a, b), (one, other)
        for one, a in held:
            assert not any(np.shares_memory(a, b) for _, b in others), one
        play(policy, 40, seed=step)
        grow(policy, 2)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("example", [*POOLED, *OVER_GRAPHS])
def test_inverse_times_matrix_is_the_identity_after_100_000_updates(example: str, ridge: float) -> None:
    policy = make(example, ridge=ridge)
    rng = np.random.default_rng(17)
    n, rounds = policy.n_users, 100_000
    users = rng.choice(n, size=rounds, p=[0.4, 0.3, 0.2, 0.07, 0.02, 0.01])
    xs = rng.normal(size=(rounds, DIM)) * [1.0, 1.0, 0.01]
    xs /= np.linalg.norm(xs, axis=1, keepdims=True)
    rewards = np.where(users % 2, xs[:, 0], xs[:, 1]) + 0.1 * rng.normal(size=rounds)
    policy.update_many(users, xs, rewards)
    sums = Sums(n)
    for user in range(n):
        mine = users == user
        sums.grams[user] = xs[mine].T @ xs[mine]
        sums.moments[user] = xs[mine].T @ rewards[mine]
        sums.pulls[user] = mine.sum()
    state = policy.partition.state
    if example in OVER_GRAPHS:
        check_joint(example, getattr(state, "joint", state), sums, ridge)
    else:
        for row, members in rows(policy).items():
            gram, moment = sums.grams[members].sum(axis=0), sums.moments[members].sum(axis=0)
            check_row(state.pools, row, gram, moment, sums.pulls[members].sum(), ridge)
    if hasattr(state, "users"):
        for user in range(n):
            check_row(state.users, user, sums.grams[user], sums.moments[user], sums.pulls[user], ridge)


def test_the_oracle_pools_by_its_labels_whatever_they_are_called() -> None:
    policy = make("LinUCBOracle")
    assert policy.labels().tolist() == halves(6).tolist()
