"""Edges as rows of bits: through the policies, against sets and a search that anybody would write."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from coterie import CLUB, LinearBandit, PhaseUniCLUB, Tuned
from inspection import state_array
from policies.histories import unpacked

SIZES = [1, 2, 63, 64, 65, 127, 128, 129, 200]
TUNED = Tuned(alpha=0.55, beta=0.1, explore=0)
Neighbours = list[set[int]]


class Naive:
    """Alg. 1, lines 11 and 12, with sets and dense solves."""

    def __init__(self, n_users: int, dim: int) -> None:
        self.grams, self.moments = np.zeros((n_users, dim, dim)), np.zeros((n_users, dim))
        self.pulls = np.zeros(n_users)
        self.near: Neighbours = [set(range(n_users)) - {user} for user in range(n_users)]
        self.cut = 0

    def join(self, n: int) -> None:
        known, dim = self.moments.shape
        self.grams = np.concatenate([self.grams, np.zeros((n, dim, dim))])
        self.moments = np.concatenate([self.moments, np.zeros((n, dim))])
        self.pulls = np.concatenate([self.pulls, np.zeros(n)])
        for user in range(known):
            self.near[user] |= set(range(known, known + n))
        self.near += [set(range(known + n)) - {user} for user in range(known, known + n)]

    def update(self, user: int, x: np.ndarray[tuple[int], np.dtype[np.float64]], reward: float) -> None:
        self.grams[user] += np.outer(x, x)
        self.moments[user] += reward * x
        self.pulls[user] += 1
        estimates = np.linalg.solve(np.eye(len(x)) + self.grams, self.moments[:, :, None])[:, :, 0]
        radii = 0.55 * np.sqrt((1 + np.log1p(self.pulls)) / (1 + self.pulls))
        far = np.linalg.norm(estimates - estimates[user], axis=1) > radii + radii[user]
        for other in self.near[user] & set(np.flatnonzero(far).tolist()):
            self.near[user].remove(other)
            self.near[other].remove(user)
            self.cut += 1

    def component(self, user: int) -> set[int]:
        reached, frontier = {user}, [user]
        while frontier:
            for other in self.near[frontier.pop()] - reached:
                reached.add(other)
                frontier.append(other)
        return reached


def agree(policy: LinearBandit, naive: Naive) -> None:
    n = policy.n_users
    edges = unpacked(state_array(policy, "edges"), n)
    assert [set(np.flatnonzero(row).tolist()) for row in edges] == naive.near
    lowest = [min(naive.component(user)) for user in range(n)]
    assert policy.labels().tolist() == [sorted(set(lowest)).index(root) for root in lowest]
    for user in {0, n // 2, n - 1}:
        wanted = naive.near[user] | {user} if policy.name == "PhaseUniCLUB" else naive.component(user)
        assert policy.cluster_of(user).tolist() == sorted(wanted)


def play(policy: LinearBandit, naive: Naive, rounds: int, rng: np.random.Generator) -> None:
    """Few users give strong rewards, so that edges are cut a few at a time."""
    n = policy.n_users
    crew = rng.permutation(n)[: max(1, min(n, 12))]
    for t in range(rounds):
        user, x = int(rng.choice(crew)), rng.normal(size=2)
        reward = float(x[0] if user % 3 else -x[0]) + 0.1 * float(rng.normal())
        policy.update(user, x, reward)
        naive.update(user, x, reward)
        if t % 10 == 0:
            agree(policy, naive)


@pytest.mark.parametrize("make", [CLUB, PhaseUniCLUB])
@pytest.mark.parametrize("n", SIZES)
def test_edges_and_components_are_those_of_a_naive_search(make: Callable[..., LinearBandit], n: int) -> None:
    policy, naive = make(n, 2, confidence=TUNED), Naive(n, 2)
    agree(policy, naive)
    play(policy, naive, 80, np.random.default_rng(n))
    agree(policy, naive)
    assert naive.cut > n // 4 or n < 3


@pytest.mark.parametrize("make", [CLUB, PhaseUniCLUB])
@pytest.mark.parametrize(
    ("known", "n"), [(1, 2), (3, 5), (60, 70), (63, 64), (64, 65), (64, 200), (130, 131)]
)
def test_newcomers_are_joined_to_all_and_old_edges_stay(
    make: Callable[..., LinearBandit], known: int, n: int
) -> None:
    policy, naive, rng = make(known, 2, confidence=TUNED), Naive(known, 2), np.random.default_rng(n)
    play(policy, naive, 40, rng)
    policy.add_users(n - known)
    naive.join(n - known)
    agree(policy, naive)
    play(policy, naive, 40, rng)
    agree(policy, naive)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 128, 130])
def test_the_complete_graph_joins_all_but_a_user_with_itself(n: int) -> None:
    edges = unpacked(state_array(CLUB(n, 2, confidence=TUNED), "edges"), n)
    assert np.array_equal(edges, ~np.eye(n, dtype=bool))


def test_a_component_may_hang_together_by_one_user_at_the_end_of_a_word() -> None:
    """Users 0 and 129 part, 63 knows both: its bits are the last of a word."""
    policy = CLUB(130, 1, confidence=Tuned(alpha=0.5, beta=0.5))
    for user, reward in ((0, 0.6), (129, -0.6)):
        for _ in range(3):
            policy.update(user, [1.0], reward)
    assert not unpacked(state_array(policy, "edges"), 130)[0, 129]
    assert policy.labels().tolist() == [0] * 130


def searched(edges: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> list[int]:
    """The lowest user of each user's component."""
    lowest = list(range(len(edges)))
    for user in range(len(edges)):
        frontier = [user] if lowest[user] == user else []
        while frontier:
            for other in np.flatnonzero(edges[frontier.pop()]).tolist():
                if lowest[other] > user:
                    lowest[other] = user
                    frontier.append(other)
    return lowest


def falling_apart(policy: LinearBandit, rounds: int) -> Iterator[int]:
    """Users served in a graph that loses all of its edges."""
    rng = np.random.default_rng(0)
    tastes = rng.normal(size=(policy.n_users, 2))
    for _ in range(rounds):
        user, x = int(rng.integers(policy.n_users)), rng.normal(size=2)
        policy.update(user, x, float(x @ tastes[user]) + 0.1 * float(rng.normal()))
        yield user


@pytest.mark.parametrize(("n", "alpha"), [(60, 0.3), (130, 0.2), (200, 0.4)])
def test_parts_are_numbered_by_their_lowest_users_and_hold_their_sums(n: int, alpha: float) -> None:
    policy = CLUB(n, 2, confidence=Tuned(alpha=alpha, beta=0.1))
    rows, most = np.zeros(n, np.int64), 0
    for _ in falling_apart(policy, 8 * n):
        lowest = np.array(searched(unpacked(state_array(policy, "edges"), n)))
        before = int(rows.max()) + 1
        for row in range(before):
            for root in np.unique(lowest[rows == row])[1:]:
                rows[(rows == row) & (lowest == root)] = rows.max() + 1
        most = max(most, int(rows.max()) + 1 - before)
        assert state_array(policy, "labels").tolist() == rows.tolist()
    assert rows.max() >= n // 4
    assert most > 1
    grams, pulls = state_array(policy, "grams"), state_array(policy, "users.pulls")
    for row in range(rows.max() + 1):
        inverse = state_array(policy, "pools.inverse")[row]
        assert np.allclose(inverse @ (np.eye(2) + grams[rows == row].sum(axis=0)), np.eye(2))
        assert state_array(policy, "pools.pulls")[row] == pulls[rows == row].sum()


@pytest.mark.parametrize(("n", "alpha"), [(60, 0.3), (130, 0.2), (200, 0.4)])
def test_users_of_the_same_neighbourhood_share_the_lowest_row_that_is_free(n: int, alpha: float) -> None:
    policy = PhaseUniCLUB(n, 2, confidence=Tuned(alpha=alpha, beta=0.1, explore=0))
    before = state_array(policy, "neighbourhoods").copy()
    reused = 0
    for user in falling_apart(policy, 8 * n):
        around = unpacked(state_array(policy, "edges"), n) | np.eye(n, dtype=bool)
        rows = state_array(policy, "neighbourhoods")
        if before[user] < 0 or rows[user] != before[user]:
            alike = [
                rows[k] for k in range(n) if k != user and rows[k] >= 0 and (around[k] == around[user]).all()
            ]
            others = set(np.delete(rows, user).tolist())
            assert rows[user] == (alike[0] if alike else next(k for k in range(n) if k not in others))
            reused += not alike and rows[user] < before.max()
        before = rows.copy()
        assert len({(int(rows[k]), around[k].tobytes()) for k in range(n) if rows[k] >= 0}) == len(
            set(rows[rows >= 0].tolist())
        )
    assert reused > 5
