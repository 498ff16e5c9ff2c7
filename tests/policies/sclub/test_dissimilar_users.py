"""SCLUB with very many clusters: a search passes over most of them, and no close pair is ever missed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Never

import numpy as np
import pytest

import coterie
from coterie.policies.sclub import kd_tree
from coterie.policies.sclub.split_merge import SplitMerge
from coterie.types import Floats
from inspection import learner_of

USERS, ALPHA, RIDGE = 400, 0.06, 0.01
MAKERS = {"SCLUB": coterie.SCLUB, "SCLUB2019": coterie.SCLUB2019}


def made(maker: Callable[..., coterie.LinearBandit], dim: int) -> tuple[coterie.LinearBandit, SplitMerge]:
    """A policy and its sets."""
    policy = maker(USERS, dim, confidence=coterie.Tuned(alpha=ALPHA, beta=0.1), ridge=RIDGE)
    learner = learner_of(policy)
    assert isinstance(learner, SplitMerge)
    return policy, learner


def preferences(rng: np.random.Generator, dim: int, n: int = USERS) -> Floats:
    """Of any three users two are not alike: they have the same preference in pairs."""
    return np.repeat(rng.normal(size=(n // 2, dim)) / dim**0.5, 2, axis=0)


def close_to(learner: SplitMerge, row: int, closeness: float) -> int:
    """How many clusters are close to one, by comparing with all."""
    unchecked, sizes = learner.array("unchecked"), learner.array("sizes")
    if unchecked[row] or not sizes[row]:
        return 0
    estimates, pulls = learner.array("pools.estimate"), learner.array("pools.pulls")
    radii = ALPHA * np.sqrt((1 + np.log(1 + pulls)) / (1 + pulls))
    apart = np.sqrt(((estimates - estimates[row]) ** 2).sum(axis=1))
    near = (sizes > 0) & (unchecked == 0) & (apart < closeness * (radii + radii[row]) * (1 - 1e-12))
    return int(near.sum()) - 1


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dim", [3, 12])
def test_no_close_pair_is_missed_where_estimates_slowly_meet(name: str, dim: int) -> None:
    rng, closeness = np.random.default_rng(dim), 1.0 if name == "SCLUB" else 0.5
    theta = preferences(rng, dim)
    policy, learner = made(MAKERS[name], dim)
    merges, most, before = 0, 0, 1
    for t in range(int(2.5 * dim * USERS)):
        user, x = int(rng.integers(USERS)), rng.normal(size=dim) / dim**0.5
        policy.update(user, x, float(x @ theta[user] + 0.002 * rng.normal()))
        rows = range(USERS) if t % 1_000 == 999 else learner.array("labels")[[user]].tolist()
        assert all(close_to(learner, row, closeness) == 0 for row in rows)
        merges += learner.n_clusters < before
        most, before = max(most, learner.n_clusters), learner.n_clusters
    assert most > 0.6 * USERS
    assert merges > 0.4 * USERS


def test_a_reward_looks_at_few_of_many_clusters() -> None:
    rng, dim = np.random.default_rng(0), 12
    theta = rng.normal(size=(USERS, dim)) / dim**0.5
    policy, learner = made(coterie.SCLUB, dim)
    looked = 0
    for _ in range(4 * dim):
        looked = learner.tree.visited
        users, xs = rng.permutation(USERS), rng.normal(size=(USERS, dim)) / dim**0.5
        policy.update_many(users, xs, (xs * theta[users]).sum(axis=1))
    assert learner.n_clusters == USERS
    assert 1 < (learner.tree.visited - looked) / USERS < 0.6 * USERS


def test_newcomers_and_a_snapshot_leave_clusters_as_they_are(tmp_path: Path) -> None:
    rng, dim = np.random.default_rng(1), 12
    theta = preferences(rng, dim, USERS + 40)
    policy, learner = made(coterie.SCLUB, dim)
    played = [policy]
    for t in range(20 * USERS):
        user, x = int(rng.integers(policy.n_users)), rng.normal(size=dim) / dim**0.5
        for one in played:
            one.update(user, x, float(x @ theta[user]))
            if t % 150 == 149 and one.n_users < len(theta):
                one.add_users(1)
        assert close_to(learner, int(learner.array("labels")[user]), 1.0) == 0
        if t == 5_000:
            policy.save(tmp_path / "snapshot")
            played.append(coterie.load(tmp_path / "snapshot"))
    assert policy.n_users == len(theta)
    assert np.array_equal(played[0].labels(), played[1].labels())
    assert len(np.unique(policy.labels())) < 0.9 * USERS


def test_a_lack_of_memory_for_the_tree_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lacking:
        def __getattr__(self, name: str) -> Never:
            raise MemoryError

    rng, dim = np.random.default_rng(2), 4
    theta = rng.normal(size=(USERS + 10, dim))
    policies = [made(coterie.SCLUB, dim)[0] for _ in range(2)]

    def play(rounds: int) -> None:
        for _ in range(rounds):
            user, x = int(rng.integers(policies[0].n_users)), rng.normal(size=dim)
            for policy in policies:
                policy.update(user, x, float(x @ theta[user]))

    play(300)
    with monkeypatch.context() as patch:
        patch.setattr(kd_tree, "np", Lacking())
        with pytest.raises(MemoryError):
            policies[0].add_users(10)
    assert policies[0].n_users == USERS
    play(300)
    for policy in policies:
        policy.add_users(10)
    play(300)
    assert np.array_equal(policies[0].labels(), policies[1].labels())
    assert len(np.unique(policies[0].labels())) > 10
