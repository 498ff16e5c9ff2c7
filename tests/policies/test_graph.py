"""Edges as rows of bits: through the policies, against sets and a search that anybody would write."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from coterie import CLUB, LinearBandit, PhaseUniCLUB, Tuned
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
    edges = unpacked(policy.learner.array("edges"), n)
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
    edges = unpacked(CLUB(n, 2, confidence=TUNED).learner.array("edges"), n)
    assert np.array_equal(edges, ~np.eye(n, dtype=bool))


def test_a_component_may_hang_together_by_one_user_at_the_end_of_a_word() -> None:
    """Users 0 and 129 part, 63 knows both: its bits are the last of a word."""
    policy = CLUB(130, 1, confidence=Tuned(alpha=0.5, beta=0.5))
    for user, reward in ((0, 0.6), (129, -0.6)):
        for _ in range(3):
            policy.update(user, [1.0], reward)
    assert not unpacked(policy.learner.array("edges"), 130)[0, 129]
    assert policy.labels().tolist() == [0] * 130
