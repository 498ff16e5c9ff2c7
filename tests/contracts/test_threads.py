"""Threads: they take turns on one policy and lose nothing; different policies do not wait for each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import numpy as np
import pytest

import coterie
from contracts.examples import ALL, World, changed, make, play
from coterie import LinearBandit, simulate
from coterie.environments import Stochastic
from inspection import learner_of, state_array

THREADS, TURNS = 8, 250


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], object]) -> None:
    """Do the work in all threads, starting together."""
    barrier = Barrier(THREADS)

    def start(number: int) -> object:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(start, range(THREADS)))


def serve(policy: LinearBandit, number: int) -> None:
    """Play as one of the threads, looking at everything, with sets of arms of changing size."""
    world = World(policy.dim, n_arms=1, seed=number)
    for turn in range(TURNS):
        world.n_arms = 1 + (7 * turn + number) % 40
        user, arms = (turn + number) % 12, world.arms()
        arm = policy.recommend(user, arms)
        if turn % 5 == 0:
            policy.scores(user, world.arms())
            policy.recommend_many([0, 1, user], arms)
            policy.recommend_list(user, arms, len(arms))
            assert len(policy.labels()) == len(policy.pulls) == 12
            assert user in policy.cluster_of(user)
        policy.update(user, arms[arm], world.reward(user, arms[arm]))


SHARED = ["SCLUB", "CLUB", "PhaseUniCLUB", "AutoCLUB", "LinTSInd", "GraphUCB", "HierTS"]


@pytest.mark.parametrize("example", SHARED)
def test_eight_threads_on_one_policy_lose_no_round(example: str) -> None:
    policy = make(example, n_users=12)
    in_threads(lambda number: serve(policy, number))
    wanted = np.zeros(12, np.int64)
    for number in range(THREADS):
        np.add.at(wanted, (np.arange(TURNS) + number) % 12, 1)
    assert policy.rounds == THREADS * TURNS
    assert policy.pulls.tolist() == wanted.tolist()
    assert np.isfinite(policy.estimates).all()


def test_the_statistics_of_sclub_are_the_sums_of_what_eight_threads_told_it() -> None:
    policy = make("SCLUB", n_users=12)
    rng = np.random.default_rng(0)
    users, xs = rng.integers(12, size=(THREADS, TURNS)), rng.normal(size=(THREADS, TURNS, 3))
    rewards = rng.normal(size=(THREADS, TURNS))

    def tell(number: int) -> None:
        for user, x, reward in zip(users[number], xs[number], rewards[number], strict=True):
            policy.update(int(user), x, float(reward))

    in_threads(tell)
    grams, moments = np.zeros((12, 3, 3)), np.zeros((12, 3))
    np.add.at(grams, users.ravel(), np.einsum("ni,nj->nij", xs.reshape(-1, 3), xs.reshape(-1, 3)))
    np.add.at(moments, users.ravel(), rewards.ravel()[:, None] * xs.reshape(-1, 3))
    assert policy.rounds == THREADS * TURNS
    np.testing.assert_array_equal(policy.pulls, np.bincount(users.ravel(), minlength=12))
    np.testing.assert_allclose(state_array(policy, "grams"), grams, atol=1e-9)
    np.testing.assert_allclose(state_array(policy, "users.moment"), moments, atol=1e-9)


def test_users_may_join_while_others_are_served() -> None:
    policy = make("SCLUB", n_users=12)

    def work(number: int) -> None:
        if number:
            serve_known(policy, number)
        else:
            for _ in range(30):
                policy.add_users(3)

    in_threads(work)
    assert policy.n_users == 12 + 90
    assert policy.rounds == policy.pulls.sum() == (THREADS - 1) * TURNS


def serve_known(policy: LinearBandit, number: int) -> None:
    """Play for users who were there from the start."""
    world = World(policy.dim, seed=number)
    for turn in range(TURNS):
        user, arms = turn % 12, world.arms()
        policy.update(user, x := arms[policy.recommend(user, arms)], world.reward(user, x))


def test_snapshots_and_copies_are_taken_between_rounds() -> None:
    """Whatever moment is caught, the sums of all users are those of the clusters."""
    import pickle

    policy, done = make("SCLUB", n_users=12), Event()

    def keep_playing() -> None:
        while not done.is_set():
            play(policy, 20, seed=policy.rounds)

    player = Thread(target=keep_playing)
    player.start()
    try:
        for _ in range(60):
            twin = learner_of(pickle.loads(pickle.dumps(policy)))
            used = twin.array("sizes") > 0
            assert twin.array("pools.pulls")[used].sum() == twin.array("users.pulls").sum() == twin.rounds
    finally:
        done.set()
        player.join()


def test_policies_of_their_own_play_in_threads_as_they_play_alone() -> None:
    alone = {example: make(example) for example in ALL}
    wanted = {example: play(policy, 100) for example, policy in alone.items()}
    with ThreadPoolExecutor(THREADS) as pool:
        beside = {example: make(example) for example in ALL}
        found = dict(zip(ALL, pool.map(lambda e: play(beside[e], 100), ALL), strict=True))
    assert found == wanted
    assert all(changed(alone[example], beside[example]) == [] for example in ALL)


def test_while_one_policy_is_simulated_another_answers() -> None:
    """The compiled loop lets go of the interpreter and holds no lock but its policy's."""
    data = coterie.datasets.load("synthetic", dim=10, n_users=40, n_items=200)
    world = Stochastic(data, n_users=30, n_clusters=3, n_arms=20, seed=1)
    busy, other, done = coterie.LinUCBInd(30, 10), make("CLUB"), Event()

    def run() -> None:
        simulate(busy, world, 40_000)
        done.set()

    answered, thread = 0, Thread(target=run)
    thread.start()
    while not done.is_set():
        other.recommend(0, np.eye(3))
        answered += 1
    thread.join()
    assert answered > 100
