"""New users at run time, in every policy."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.examples import ALL, POPULARITY, changed, feedback, grow, make, memory, play
from coterie import ArgumentError
from inspection import state_arrays


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("more", [1, 3, 64])
def test_known_users_keep_their_pulls_and_estimates(example: str, more: int) -> None:
    policy = make(example)
    play(policy, 150)
    pulls, estimates, rounds = policy.pulls.copy(), policy.estimates.copy(), policy.rounds
    generator = memory(policy)["generator"]
    grow(policy, more)
    assert policy.n_users == 6 + more
    assert policy.rounds == rounds
    assert np.array_equal(policy.pulls[:6], pulls)
    assert np.array_equal(policy.estimates[:6], estimates)
    assert memory(policy)["generator"] == generator


@pytest.mark.parametrize("example", ALL)
def test_known_users_keep_every_statistic_of_their_own(example: str) -> None:
    policy = make(example)
    play(policy, 150)
    own = {n: a for n, a in state_arrays(policy).items() if n.startswith(("users.", "grams", "joint."))}
    grow(policy, 2)
    held = state_arrays(policy)
    for name, array in own.items():
        assert np.array_equal(held[name][tuple(map(slice, array.shape))], array), name


@pytest.mark.parametrize("example", ALL)
def test_newcomers_have_no_pulls_no_estimate_of_their_own_and_are_served(example: str) -> None:
    policy = make(example)
    play(policy, 150)
    assert grow(policy, 3).tolist() == [6, 7, 8]
    assert policy.pulls[6:].tolist() == [0, 0, 0]
    one, oracle = policy.estimates[[0, 0, 0]], policy.estimates[[0, 1, 0]]
    pooled = dict.fromkeys(("LinUCBOne", "LinTSOne", "CascadeLinUCB"), one)
    pooled |= dict.fromkeys(("LinUCBOracle", "LinTSOracle"), oracle)
    assert np.array_equal(policy.estimates[6:], pooled.get(policy.name, np.zeros((3, 3))))
    for user in (6, 7, 8):
        assert user in policy.cluster_of(user)
        assert 0 <= policy.recommend(user, np.eye(3)) < 3
        policy.update(user, np.eye(3)[0], 1.0)
        assert policy.pulls[user] == 1
        if policy.name not in (*pooled, *POPULARITY):
            assert policy.estimates[user, 0] > 0
    play(policy, 300)


@pytest.mark.parametrize("example", ALL)
def test_a_policy_that_grew_before_any_feedback_is_as_if_made_so(example: str) -> None:
    grown = make(example, n_users=4)
    grow(grown, 2)
    whole = make(example, n_users=6)
    assert grown.n_users == whole.n_users
    assert grown.exploration == whole.exploration
    if not example.startswith(("GOBLin", "GraphUCB", "SCLUB", "UniSCLUB", "SASCLUB", "RSCLUMB")):
        assert play(grown, 200) == play(whole, 200)
        assert np.array_equal(grown.labels(), whole.labels())


@pytest.mark.parametrize("example", ALL)
def test_growing_again_and_again_across_a_word_of_bits_keeps_going(example: str) -> None:
    policy = make(example, n_users=61, dim=2)
    for step in range(6):
        play(policy, 60, seed=step)
        grow(policy, 1)
        grow(policy, 2)
        assert policy.labels().shape == policy.pulls.shape == (policy.n_users,)
        assert all(u in policy.cluster_of(u) for u in range(policy.n_users))
    assert policy.pulls.sum() == policy.rounds == 360


@pytest.mark.parametrize("example", ALL)
def test_after_growing_many_updates_are_still_the_same_as_one_by_one(example: str) -> None:
    many, single = make(example), make(example)
    for policy in (many, single):
        play(policy, 60)
        grow(policy, 3)
    users, xs, rewards = feedback(many, 200)
    many.update_many(users, xs, rewards)
    for user, x, reward in zip(users, xs, rewards, strict=True):
        single.update(int(user), x, float(reward))
    assert changed(many, single) == []


@pytest.mark.parametrize("example", [e for e in ALL if e.startswith(("CLUB", "UniCLUB", "SACLUB", "Phase"))])
def test_in_a_graph_newcomers_are_everybodys_neighbours(example: str) -> None:
    policy = make(example)
    play(policy, 300)
    grow(policy, 2)
    assert policy.cluster_of(6).tolist() == list(range(8))
    assert policy.labels().tolist() == [0] * 8


@pytest.mark.parametrize("example", [e for e in ALL if "SCLUB" in e])
def test_among_sets_newcomers_start_as_one_set_of_their_own(example: str) -> None:
    policy = make(example)
    play(policy, 300)
    before = policy.labels()
    grow(policy, 2)
    assert np.array_equal(policy.labels()[:6], before)
    assert policy.cluster_of(6).tolist() == policy.cluster_of(7).tolist() == [6, 7]


@pytest.mark.parametrize("example", [e for e in ALL if e.startswith(("GOBLin", "GraphUCB"))])
def test_in_a_given_graph_newcomers_have_no_friends(example: str) -> None:
    policy = make(example)
    play(policy, 100)
    arms = np.eye(3)
    before = policy.scores(0, arms)
    grow(policy, 1)
    policy.update(6, arms[0], 5.0)
    after = policy.scores(0, arms)
    assert np.array_equal(after.mean, before.mean)


@pytest.mark.parametrize("example", [e for e in ALL if "Oracle" not in e])
def test_only_oracles_take_labels_of_newcomers(example: str) -> None:
    policy = make(example)
    before = memory(policy)
    with pytest.raises(ArgumentError, match="labels must not be given: this policy finds clusters itself"):
        policy.add_users(2, labels=[0, 1])
    assert changed(before, policy) == []


@pytest.mark.parametrize("example", ["LinUCBOracle", "LinTSOracle"])
@pytest.mark.parametrize("labels", [None, [0], [0, 1, 0], [0.5, 1.0], ["a", "b"], [[0, 1]]])
def test_an_oracle_needs_a_label_for_each_newcomer(labels: list[int] | None, example: str) -> None:
    policy = make(example)
    play(policy, 20)
    before = memory(policy)
    with pytest.raises(ArgumentError, match="labels must be 2 whole numbers"):
        policy.add_users(2, labels=labels)
    assert changed(before, policy) == []


def test_a_newcomer_of_the_oracle_learns_from_its_cluster_at_once() -> None:
    policy = make("LinUCBOracle")
    play(policy, 100)
    policy.add_users(3, labels=[1, 0, 9])
    assert policy.cluster_of(6).tolist() == [1, 3, 5, 6]
    assert policy.cluster_of(7).tolist() == [0, 2, 4, 7]
    assert policy.cluster_of(8).tolist() == [8]
    assert np.array_equal(policy.scores(6, np.eye(3)).ucb, policy.scores(1, np.eye(3)).ucb)


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("call", ["zeros", "full", "empty"])
def test_a_lack_of_memory_while_growing_changes_nothing(
    example: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = make(example)
    play(policy, 60)
    before = memory(policy)

    def fails(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(np, call, fails)
        failed = False
        try:
            grow(policy, 200)
        except MemoryError:
            failed = True
    assert not failed or changed(before, policy) == []
    play(policy, 60)
    grow(policy, 5)
    play(policy, 60)
