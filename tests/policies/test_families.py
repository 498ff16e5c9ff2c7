"""Each family in an example small enough for paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.sparse import csr_array

from coterie import (
    CLUB,
    SCLUB,
    GOBLin,
    GraphUCB,
    LinearBandit,
    LinUCBInd,
    LinUCBOne,
    LinUCBOracle,
    PhaseUniCLUB,
    Tuned,
)

LOVES, HATES = 1.0, -1.0
SURE = Tuned(alpha=0.2, beta=0.5)
"""f(1) = 0.2 √((1 + ln 2)/2) ≈ 0.18, f(3) ≈ 0.15, f(0) = 0.2."""


def say(policy: LinearBandit, user: int, reward: float, times: int = 3) -> None:
    for _ in range(times):
        policy.update(user, [1.0], reward)


def test_three_rewards_of_one_user_on_paper() -> None:
    policy = LinUCBInd(1, 1, beta=2.0)
    say(policy, 0, 1.0)  # λ + S = 4, b = 3
    scores = policy.scores(0, [[1.0], [2.0]])
    assert scores.mean == pytest.approx([0.75, 1.5])
    assert scores.width == pytest.approx([2 / 2, 2 * 2 / 2])
    assert policy.recommend(0, [[1.0], [2.0]]) == 1


def test_one_pools_all_ind_pools_none_and_oracle_as_told() -> None:
    for policy, wanted in (
        (LinUCBOne(3, 1), [0.75, 0.75, 0.75]),
        (LinUCBInd(3, 1), [0.75, 0.0, 0.0]),
        (LinUCBOracle(3, 1, labels=[4, 9, 4]), [0.75, 0.0, 0.75]),
    ):
        say(policy, 0, 1.0)
        assert policy.estimates[:, 0] == pytest.approx(wanted)


def test_cutting_the_last_edge_splits_the_cluster() -> None:
    policy = CLUB(3, 1, confidence=SURE)
    say(policy, 0, LOVES)  # 0 leaves 1 and 2, of whom nothing is known
    assert policy.labels().tolist() == [0, 1, 1]
    say(policy, 1, HATES)
    assert policy.labels().tolist() == [0, 1, 2]
    say(policy, 2, HATES)
    assert policy.labels().tolist() == [0, 1, 2]  # what is cut stays cut
    assert policy.scores(2, [[1.0]]).mean == pytest.approx([-0.75])


def test_a_user_whose_friends_are_connected_stays_in_the_cluster() -> None:
    policy = CLUB(3, 1, confidence=Tuned(alpha=0.5, beta=0.5))
    say(policy, 0, 0.6)
    say(policy, 1, -0.6)  # 0 and 1 are too far apart, 2 is near both
    assert policy.labels().tolist() == [0, 0, 0]
    assert policy.scores(2, [[1.0]]).mean == pytest.approx([0.0])


def test_phaseuniclub_pools_direct_neighbours_not_the_component() -> None:
    policy = PhaseUniCLUB(3, 1, confidence=Tuned(alpha=0.5, beta=0.5, explore=0))
    say(policy, 0, 0.6)
    say(policy, 1, -0.6)
    assert [policy.cluster_of(user).tolist() for user in range(3)] == [[0, 2], [1, 2], [0, 1, 2]]
    assert policy.labels().tolist() == [0, 0, 0]
    means = [float(policy.scores(user, [[1.0]]).mean[0]) for user in range(3)]
    assert means == pytest.approx([0.45, -0.45, 0.0])


def test_phaseuniclub_cuts_nothing_in_its_first_stretch() -> None:
    policy = PhaseUniCLUB(2, 1, confidence=Tuned(alpha=0.1, beta=0.5, explore=6))
    say(policy, 0, LOVES)
    say(policy, 1, HATES)
    assert policy.cluster_of(0).tolist() == [0, 1]
    say(policy, 1, HATES, times=1)
    assert policy.cluster_of(0).tolist() == [0]


def test_sets_that_parted_meet_again_when_they_turn_out_alike() -> None:
    policy = SCLUB(2, 1, confidence=SURE)
    say(policy, 0, LOVES)
    assert policy.labels().tolist() == [0, 1]
    say(policy, 1, LOVES, times=40)
    assert policy.labels().tolist() == [0, 1]  # 0 has not been served in this phase: nobody knows
    say(policy, 0, LOVES, times=40)
    assert policy.labels().tolist() == [0, 0]


def test_sets_that_are_not_alike_stay_apart() -> None:
    policy = SCLUB(4, 1, confidence=SURE)
    for _ in range(60):
        for user in range(4):
            say(policy, user, LOVES if user % 2 else HATES, times=1)
    assert policy.labels().tolist() == [0, 1, 0, 1]


def test_with_arrivals_a_user_who_comes_far_more_often_is_set_apart() -> None:
    alike = Tuned(alpha=100.0, beta=0.5)
    together, apart = SCLUB(2, 1, confidence=alike), SCLUB(2, 1, confidence=alike, arrivals=0.1)
    for policy in (together, apart):
        say(policy, 1, LOVES, times=1)
        say(policy, 0, LOVES, times=100)
    assert together.labels().tolist() == [0, 0]
    assert apart.labels().tolist() == [0, 1]


@pytest.mark.parametrize("maker", [GOBLin, GraphUCB])
def test_a_friend_learns_and_a_stranger_does_not(maker: Callable[..., LinearBandit]) -> None:
    policy = maker(3, 1, graph=[[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    say(policy, 0, LOVES)
    estimates = policy.estimates[:, 0]
    assert estimates[0] > estimates[1] > 0
    assert estimates[2] == 0


def test_goblin_with_one_friend_on_paper() -> None:
    policy = GOBLin(2, 1, graph=[[0, 1], [1, 0]])
    policy.update(
        0, [1.0], 1.0
    )  # V = [[2, −1], [−1, 2]] + [[1, 0], [0, 0]], |V| = 5, θ̂ = V⁻¹(1, 0) = (2, 1)/5
    assert policy.estimates[:, 0] == pytest.approx([0.4, 0.2])
    assert policy.scores(1, [[1.0]]).width == pytest.approx([np.sqrt(3 / 5)])


@pytest.mark.parametrize("maker", [GOBLin, GraphUCB])
def test_a_graph_may_be_sparse_boolean_or_a_list(maker: Callable[..., LinearBandit]) -> None:
    dense = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    estimates = []
    for graph in (dense, dense.tolist(), dense.astype(bool), dense.astype(int), csr_array(dense)):
        policy = maker(3, 1, graph=graph)
        say(policy, 0, LOVES)
        policy.add_users(1)
        estimates.append(policy.estimates.tolist())
    assert estimates.count(estimates[0]) == 5
