"""Users spread over policies: each policy decides as it would alone, and the hash never changes."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie
from coterie import ArgumentError, LinearBandit, Sharded
from coterie.environments import Bernoulli, Cascade, Duel, Stochastic
from coterie.placement import MOST_SHARDS, shard_of, user_hash


def clubs(n_users: int, shard: int) -> LinearBandit:
    return coterie.CLUB(n_users, 4, alpha=1.0, beta=0.2, seed=shard)


def autoclubs(n_users: int, shard: int) -> LinearBandit:
    return coterie.AutoCLUB(n_users, 4, seed=shard)


def thompson(n_users: int, shard: int) -> LinearBandit:
    return coterie.LinTSInd(n_users, 4, seed=shard)


MAKERS = {"CLUB": clubs, "AutoCLUB": autoclubs, "LinTSInd": thompson}


@pytest.mark.parametrize(
    ("user", "digits"),
    [("", "e3b0c442"), ("abc", "ba7816bf"), ("ada", "fdee430d"), ("Ωμέγα", "59b35e54"), (7, "7902699b")],
)
def test_the_hash_of_a_user_is_the_start_of_sha_256(user: str | int, digits: str) -> None:
    assert f"{user_hash(user):08x}" == digits
    assert shard_of(user, 12) == int(digits, 16) % 12


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum")
def test_a_shell_finds_the_same_shard() -> None:
    script = 'echo $((0x$(printf %s "$1" | sha256sum | cut -c1-8) % 4))'
    for user in ("ada", "user 17", "Ωμέγα", "a'b\"c$d"):
        said = subprocess.run(["bash", "-c", script, "-", user], capture_output=True, text=True, check=True)
        assert int(said.stdout) == shard_of(user, 4)


@given(st.text(), st.integers(1, MOST_SHARDS))
def test_every_text_has_a_shard_that_doubling_leaves_or_moves_by_the_number(user: str, shards: int) -> None:
    found = shard_of(user, shards)
    assert 0 <= found < shards
    if 2 * shards <= MOST_SHARDS:
        assert shard_of(user, 2 * shards) in (found, found + shards)


def test_users_are_spread_evenly() -> None:
    counts = np.bincount([shard_of(f"user-{number}", 16) for number in range(16_000)], minlength=16)
    assert np.abs(counts - 1_000).max() < 150


@pytest.mark.parametrize("name", MAKERS)
def test_each_shard_decides_as_a_policy_that_has_its_users_alone(name: str) -> None:
    rng = np.random.default_rng(1)
    policy = Sharded(MAKERS[name], 3, n_users=20)
    members: dict[int, list[int]] = defaultdict(list)
    for user in range(20):
        members[shard_of(user, 3)].append(user)
    alone = {shard: MAKERS[name](len(users), shard) for shard, users in members.items()}
    for _ in range(400):
        user, arms = int(rng.integers(20)), rng.normal(size=(6, 4)) / 2
        shard = shard_of(user, 3)
        number = members[shard].index(user)
        arm = policy.recommend(user, arms)
        assert arm == alone[shard].recommend(number, arms)
        reward = float(arms[arm] @ [0.5, -0.5, 0.2, 0.1 * (user % 2)])
        policy.update(user, arms[arm], reward)
        alone[shard].update(number, arms[arm], reward)
    assert policy.rounds == 400
    for user in range(20):
        shard = shard_of(user, 3)
        cluster = [members[shard][one] for one in alone[shard].cluster_of(members[shard].index(user))]
        assert policy.cluster_of(user).tolist() == cluster


def test_users_who_come_later_join_the_shard_of_their_number() -> None:
    early, late = Sharded(clubs, 4, n_users=60), Sharded(clubs, 4)
    assert late.add_users(9).tolist() == list(range(1, 10))
    assert late.add_users(50).tolist() == list(range(10, 60))
    assert late.n_users == early.n_users == 60
    for user in range(60):
        shard, number = late.find(user)
        assert late.policies.index(shard) == shard_of(user, 4)
        assert number == early.find(user)[1]
    # The policies of shards that were empty at first have no user who does not exist.
    assert [one.n_users for one in late.policies] == [one.n_users for one in early.policies]


def test_labels_keep_shards_apart_and_are_numbered_by_appearance() -> None:
    policy = Sharded(clubs, 3, n_users=12)
    labels = policy.labels()
    shards = [shard_of(user, 3) for user in range(12)]
    assert labels[0] == 0
    assert all((labels[a] == labels[b]) == (shards[a] == shards[b]) for a in range(12) for b in range(12))


def test_one_shard_is_the_policy_itself() -> None:
    one = coterie.simulate(Sharded(autoclubs, 1, n_users=24), world(), 1_500, record=5)
    plain = coterie.simulate(autoclubs(24, 0), world(), 1_500, record=5)
    assert one.regret.tolist() == plain.regret.tolist()
    assert one.clusters.tolist() == plain.clusters.tolist()
    assert one.policy == "AutoCLUB in 1 shard"


def world(**options: Any) -> Stochastic:
    data = coterie.environments.lifted(coterie.datasets.load("synthetic", dim=3, n_users=30, n_items=100))
    return Stochastic(data, n_users=24, n_clusters=3, n_arms=8, seed=1, **options)


def test_it_can_be_simulated_with_users_who_come_later() -> None:
    trace = coterie.simulate(Sharded(autoclubs, 4, n_users=3), world(), 600, record=2)
    assert trace.rounds.tolist() == [300, 600]
    assert trace.clusters[-1] >= 4


def test_it_can_be_simulated_with_lists() -> None:
    policy = Sharded(autoclubs, 4, n_users=24)
    lists = Cascade(world(noise=Bernoulli()), length=3)
    assert coterie.simulate(policy, lists, 300).rounds[-1] == 300
    assert policy.rounds >= 300


def test_it_can_be_simulated_in_duels() -> None:
    policy = Sharded(lambda n, shard: coterie.COLDB(n, 4, alpha=1.0, beta=0.5, seed=shard), 4, n_users=24)
    assert coterie.simulate(policy, Duel(world()), 300).rounds[-1] == 300
    assert policy.rounds == 300


def test_a_pickled_copy_goes_on_with_the_same_decision() -> None:
    rng = np.random.default_rng(2)
    policy = Sharded(thompson, 3, n_users=9)
    for _ in range(50):
        policy.update(int(rng.integers(9)), rng.normal(size=4) / 2, float(rng.random()))
    copy = pickle.loads(pickle.dumps(policy))
    for user in range(9):
        arms = rng.normal(size=(5, 4)) / 2
        assert copy.recommend(user, arms) == policy.recommend(user, arms)


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (None, {}, "make must be a function"),
        (clubs, {"shards": 0}, "shards must be a whole number of at least 1"),
        (clubs, {"shards": 5_000}, "shards must be at most 4096"),
        (clubs, {"n_users": 0}, "n_users must be a whole number of at least 1"),
        (lambda n, shard: clubs(n + 1, shard), {}, "a policy with 1 user for shard 0"),
        (lambda n, shard: coterie.CLUB(n, 3 + shard, alpha=1.0, beta=0.1), {}, "one dim for all shards"),
        (lambda n, shard: object(), {}, "make must return a policy"),
    ],
)
def test_what_cannot_be_sharded_is_refused(make: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        Sharded(make, **options)


def test_a_user_who_is_not_there_is_refused_and_nothing_changes() -> None:
    policy = Sharded(clubs, 4, n_users=5)
    users: list[Any] = [-1, 5, True, "ada"]
    for user in users:
        with pytest.raises(ArgumentError, match="user must be"):
            policy.update(user, np.zeros(4), 1.0)
    assert policy.rounds == 0
    assert repr(policy) == "<Sharded: CLUB in 4 shards, 5 users, dim 4, 0 rounds>"
