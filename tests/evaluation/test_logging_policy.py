from __future__ import annotations

import numpy as np
import pytest

import coterie
from coterie.environments import Delay, Stochastic
from coterie.evaluation import LoggingPolicy
from coterie.policies.protocols import Policy
from evaluation.worlds import ARMS, DIM, USERS, Noting, logged, world


def test_propensities_are_those_of_the_mixture() -> None:
    """ε/K for the others, ε/K + 1 − ε for the policy's arm."""
    noting = Noting(coterie.LinUCBOne(USERS, DIM, beta=0.3))
    log = logged(world(), 2000, 0.4, policy=noting)
    own = np.array(noting.arms) == log.chosen
    assert np.allclose(log.propensities, np.where(own, 0.1 + 0.6, 0.1))
    assert np.mean(own) == pytest.approx(0.7, abs=4 * np.sqrt(0.7 * 0.3 / 2000))


def test_a_random_decision_is_conditioned_on() -> None:
    noting = Noting(coterie.LinTSInd(USERS, DIM, beta=0.3, seed=5))
    log = logged(world(), 500, 0.2, policy=noting)
    own = np.array(noting.arms) == log.chosen
    assert np.allclose(log.propensities, np.where(own, 0.05 + 0.8, 0.05))


def test_a_share_of_one_plays_uniformly() -> None:
    log = logged(world(), 4000, 1.0)
    assert np.all(log.propensities == 1 / ARMS)
    counts = np.bincount(log.chosen, minlength=ARMS)
    assert np.abs(counts - 1000).max() < 4 * np.sqrt(4000 * 0.25 * 0.75)


def test_the_log_holds_what_the_world_offered() -> None:
    environment = world()
    log = logged(environment, 300, 0.3)
    first, second = environment.block(0), environment.block(1)
    ids = np.array(log.user_ids)[log.users]
    assert ids.tolist() == [*first.users, *second.users[:44]]
    assert np.array_equal(log.arms(260), second.items[second.picks[4]])
    reward = second.means[4, log.chosen[260]] + second.noise[4]
    assert log.rewards[260] == pytest.approx(reward)
    assert len(log.items) <= len(environment.dataset.items)


def test_late_rewards_find_their_event() -> None:
    data = world().dataset
    late = Stochastic(data, n_users=USERS, n_clusters=2, n_arms=ARMS, seed=2, delay=Delay(most=20))
    log = logged(late, 512, 0.5)
    assert 492 <= len(log) < 512
    wrong = 0
    for t in range(len(log)):
        block, place = late.block(int(log.times[t]) // 256), int(log.times[t]) % 256
        assert np.array_equal(log.arms(t), block.items[block.picks[place]])
        wrong += not np.isclose(log.rewards[t], block.means[place, log.chosen[t]] + block.noise[place])
    assert wrong < 0.05 * len(log)  # the same user and arm again, its reward before the earlier one


def test_a_policy_that_finds_clusters_still_tells_them() -> None:
    policy = LoggingPolicy(coterie.AutoCLUB(USERS, DIM), 0.2)
    trace = coterie.simulate(policy, world(), 500, record=1)
    assert trace.clusters[-1] >= 1
    assert not hasattr(policy, "recommend_list")


def test_newcomers_are_let_in() -> None:
    data = world().dataset
    growing = Stochastic(data, n_users=20, n_clusters=2, n_arms=3, seed=2, late=0.5, settled=2000)
    log = logged(growing, 4000, 0.5, policy=coterie.AutoCLUB(10, DIM))
    assert log.n_users == 20


@pytest.mark.parametrize("share", [0, -0.1, 1.5, float("nan"), "half"])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(coterie.ArgumentError, match="share must be"):
        LoggingPolicy(coterie.LinUCBOne(1, 2), share)


@pytest.mark.parametrize("policy", [coterie.LinUCBOne, 3, None])
def test_what_is_no_policy_is_refused(policy: Policy) -> None:
    with pytest.raises(coterie.ArgumentError, match="policy must have the methods recommend and update"):
        LoggingPolicy(policy, 0.1)


def test_without_a_reward_there_is_no_log() -> None:
    policy = LoggingPolicy(coterie.LinUCBOne(1, 2), 0.1)
    policy.recommend(0, np.eye(2))
    with pytest.raises(coterie.ArgumentError, match="no reward has come yet"):
        policy.log()
    policy.update(0, np.array([0.5, 0.5]), 1.0)  # of no event: learnt, not logged
    with pytest.raises(coterie.ArgumentError, match="no reward has come yet"):
        policy.log()


def test_the_same_arm_offered_twice_is_two_arms() -> None:
    policy = LoggingPolicy(coterie.LinUCBOne(1, 2), 0.5, seed=1)
    arms = np.array([[1.0, 0.0], [1.0, 0.0]])
    for _ in range(50):
        policy.update(0, arms[policy.recommend(0, arms)], 1.0)
    log = policy.log()
    assert set(log.chosen.tolist()) == {0, 1}
    assert np.allclose(log.propensities, np.where(log.chosen == 0, 0.75, 0.25))
