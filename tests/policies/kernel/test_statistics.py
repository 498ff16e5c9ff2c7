"""The statistics that every decision rests on are what a fresh sum would give."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings

from contracts.examples import ALL, FORGETTING, POPULARITY, grow, halves, make, play, ring
from coterie.policies.base import by_appearance
from coterie.policies.graph.graphucb import WALK_FLOOR
from coterie.policies.kernel.learner import Learner
from coterie.types import Floats
from inspection import array_names, learner_of, state_array, state_arrays, state_numbers
from policies.histories import DIM, Event, Sums, events, live, rows, unpacked

OVER_ITEMS = ("CAB", "COFIBA", *POPULARITY)
OTHERS = (
    "GOBLin",
    "GraphUCB",
    "AutoCLUB",
    "Hier",
    "DyClu",
    "RCLUBWCU",
    "COLDB",
    "OffC2LUB",
    "FCLUBDC",
    *OVER_ITEMS,
)
POOLED = [e for e in ALL if not e.startswith(OTHERS) and e not in FORGETTING]
CLUSTERING = [e for e in POOLED if not e.startswith(("Lin", "CascadeLinUCB"))]
OVER_GRAPHS = [e for e in ALL if e.startswith(("GOBLin", "GraphUCB"))]
CASES = settings(deadline=None, derandomize=True, max_examples=30)


class Fresh(NamedTuple):
    """S, b and T summed from a history, and the ridge."""

    gram: Floats
    moment: Floats
    pulls: int
    ridge: float


def check_row(learner: Learner, kind: str, row: int, fresh: Fresh) -> None:
    """A row of the users or the pools against λI + S, b and T; of a user never seen only zeros are kept."""
    gram, moment, pulls, ridge = fresh
    held = {name: learner.array(f"{kind}.{name}")[row] for name in ("inverse", "moment", "estimate", "pulls")}
    matrix = ridge * np.eye(len(moment)) + gram
    if pulls == 0 and kind == "users":
        assert not any(array.any() for name, array in held.items() if name != "inverse")
    else:
        check_sums(held, matrix, moment, pulls)


def check_sums(held: dict[str, Any], matrix: Floats, moment: Floats, pulls: int) -> None:
    """The inverse, moment, estimate and pulls that follow from a gram matrix with its ridge."""
    inverse = held["inverse"]
    assert np.allclose(inverse @ matrix, np.eye(len(moment)), rtol=0, atol=1e-8)
    assert np.allclose(inverse, inverse.T, rtol=0, atol=1e-12)
    assert np.allclose(held["moment"], moment, atol=1e-9)
    assert np.allclose(held["estimate"], np.linalg.solve(matrix, moment), atol=1e-8)
    assert held["pulls"] == pulls


def check_users(learner: Learner, sums: Sums, ridge: float) -> None:
    """Each user's own statistics against its own sums."""
    for user in range(len(sums.pulls)):
        fresh = Fresh(sums.grams[user], sums.moments[user], int(sums.pulls[user]), ridge)
        check_row(learner, "users", user, fresh)


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


def check_joint(example: str, learner: Learner, sums: Sums, ridge: float) -> None:
    n, d = sums.moments.shape
    start, weights = penalty(example, n, ridge)
    matrix = np.kron(start, np.eye(d))
    for user in range(n):
        at = slice(user * d, (user + 1) * d)
        matrix[at, at] += weights[user] * sums.grams[user]
    weighted = (weights[:, None] * sums.moments).reshape(-1)
    inverse = learner.arrays()["joint.inverse"].reshape(n * d, n * d)
    assert np.allclose(inverse @ matrix, np.eye(n * d), rtol=0, atol=1e-8)
    assert np.allclose(learner.array("joint.moment"), sums.moments, atol=1e-9)
    assert np.allclose(
        learner.array("joint.estimate").reshape(-1), np.linalg.solve(matrix, weighted), atol=1e-7
    )
    assert np.array_equal(learner.array("joint.pulls"), sums.pulls)


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
        check_row(learner_of(policy), "pools", row, Fresh(gram, moment, sums.pulls[members].sum(), 1.0))


@pytest.mark.parametrize("example", CLUSTERING)
@CASES
@given(history=events())
def test_each_users_statistics_are_its_own_sum_after_any_history(example: str, history: list[Event]) -> None:
    policy = make(example, ridge=0.5)
    sums = live(policy, history)
    assert np.allclose(state_array(policy, "grams"), sums.grams, atol=1e-9)
    check_users(learner_of(policy), sums, 0.5)
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
    check_joint(example, learner_of(policy), sums, 2.0)
    if example.startswith("GraphUCB"):
        check_users(learner_of(policy), sums, 2.0)
        dense = np.linalg.slogdet(np.eye(DIM) + sums.grams / 2.0)[1]
        assert np.allclose(state_array(policy, "logdets"), dense, atol=1e-9)


@pytest.mark.parametrize("example", [e for e in ALL if "edges" in array_names(make(e))])
@CASES
@given(history=events())
def test_a_graph_stays_symmetric_without_loops_and_knows_its_components(
    example: str, history: list[Event]
) -> None:
    policy = make(example)
    live(policy, history)
    n = policy.n_users
    graph = unpacked(state_array(policy, "edges"), n)
    assert np.array_equal(graph, graph.T)
    assert not graph.diagonal().any()
    reached = np.linalg.matrix_power((graph | np.eye(n, dtype=bool)).astype(float), n) > 0
    assert np.array_equal(policy.labels(), by_appearance(reached.argmax(axis=1)))
    if policy.name in ("PhaseUniCLUB", "DyClu"):
        assert all(set(policy.cluster_of(u)) == {u, *np.flatnonzero(graph[u])} for u in range(n))


@pytest.mark.parametrize("example", [e for e in CLUSTERING if e.startswith("Phase")])
@CASES
@given(history=events())
def test_a_row_holds_exactly_the_neighbourhood_of_its_sharers(example: str, history: list[Event]) -> None:
    policy = make(example)
    live(policy, history)
    rows_of, sharers = state_array(policy, "neighbourhoods"), state_array(policy, "sharers")
    assert np.array_equal(np.bincount(rows_of[rows_of >= 0], minlength=policy.n_users), sharers)
    held = rows(policy)
    for user in np.flatnonzero(rows_of >= 0):
        assert held[int(rows_of[user])].tolist() == policy.cluster_of(int(user)).tolist()


@pytest.mark.parametrize("example", [e for e in CLUSTERING if "SCLUB" in e])
@CASES
@given(history=events())
def test_sets_know_their_sizes_and_who_of_them_is_unchecked(example: str, history: list[Event]) -> None:
    policy = make(example)
    live(policy, history)
    held, n = state_arrays(policy), policy.n_users
    count = int(state_numbers(policy)["n_clusters"])
    assert np.array_equal(np.bincount(held["labels"], minlength=n), held["sizes"])
    used = np.flatnonzero(held["sizes"])
    assert sorted(held["order"][:count].tolist()) == used.tolist()
    waiting = np.bincount(held["labels"][~held["checked"]], minlength=n)
    assert np.array_equal(waiting[used], held["unchecked"][used])
    for row in used:
        members = held["labels"] == row
        assert np.allclose(held["pools.gram"][row], held["grams"][members].sum(axis=0), atol=1e-9)


@pytest.mark.parametrize("example", ALL)
def test_no_array_is_shared_between_two_owners(example: str) -> None:
    policy, twin = make(example), make(example)
    for step in range(3):
        held = [(name, state_array(policy, name)) for name in array_names(policy)]
        others = [(name, state_array(twin, name)) for name in array_names(twin)]
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
    if example in OVER_GRAPHS:
        check_joint(example, learner_of(policy), sums, ridge)
    else:
        for row, members in rows(policy).items():
            gram, moment = sums.grams[members].sum(axis=0), sums.moments[members].sum(axis=0)
            check_row(learner_of(policy), "pools", row, Fresh(gram, moment, sums.pulls[members].sum(), ridge))
    if "users.inverse" in array_names(policy):
        check_users(learner_of(policy), sums, ridge)


def test_the_oracle_pools_by_its_labels_whatever_they_are_called() -> None:
    policy = make("LinUCBOracle")
    assert policy.labels().tolist() == halves(6).tolist()
