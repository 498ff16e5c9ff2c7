"""The choice of an arm: few widths are computed, yet it is the first best of all, whatever is remembered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie
from contracts.examples import POPULARITY, SCORING, make, play
from coterie import AutoCLUB, LinearBandit, LinUCBOne
from coterie.environments.blocks import BLOCK, Block
from coterie.types import Floats, Ints

CASES = settings(deadline=None, derandomize=True, max_examples=200)


class Case(NamedTuple):
    """A policy with some data, and arms: coarse ones have ties, equal ones are repeated."""

    policy: LinearBandit
    arms: Floats


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d, n, k = draw(st.integers(1, 9)), draw(st.integers(1, 12)), draw(st.integers(1, 40))
    coarse = draw(st.booleans())
    items = rng.integers(-2, 3, size=(n, d)).astype(float) if coarse else rng.normal(size=(n, d))
    beta = draw(st.sampled_from([0.0, 0.1, 1.0, 20.0]))
    policy = AutoCLUB(1, d) if draw(st.booleans()) else LinUCBOne(1, d, beta=beta)
    taught = draw(st.integers(0, 20))
    data = rng.integers(-1, 2, size=(taught, d)).astype(float) if coarse else rng.normal(size=(taught, d))
    for x in data:
        policy.update(0, x, float(rng.integers(-1, 2)) if coarse else float(rng.normal()))
    return Case(policy, items[rng.integers(n, size=k)])


@CASES
@given(cases())
def test_the_choice_is_the_first_best_of_all_scores(case: Case) -> None:
    policy, arms = case
    assert policy.recommend(0, arms) == int(np.argmax(policy.scores(0, arms).ucb))


@CASES
@given(cases())
def test_the_first_of_equal_arms_is_chosen(case: Case) -> None:
    policy, arms = case
    best = policy.recommend(0, arms)
    assert not any(np.array_equal(arms[best], arm) for arm in arms[:best])


@CASES
@given(cases())
def test_an_arms_score_does_not_depend_on_the_others_or_their_order(case: Case) -> None:
    policy, arms = case
    scores, turned = policy.scores(0, arms), policy.scores(0, arms[::-1])
    assert np.array_equal(scores.ucb, turned.ucb[::-1])
    offset = policy.scores(0, np.zeros((1, policy.dim))).mean
    linear = policy.scores(0, np.eye(policy.dim)).mean - offset
    assert np.allclose(scores.mean, offset + arms @ linear, atol=1e-9)
    for k in range(0, len(arms), 7):
        assert policy.scores(0, arms[k : k + 1]).ucb[0] == scores.ucb[k]


@CASES
@given(cases())
def test_a_list_of_all_is_the_order_of_the_scores(case: Case) -> None:
    policy, arms = case
    order = np.argsort(-policy.scores(0, arms).ucb, kind="stable").tolist()
    assert policy.recommend_list(0, arms, len(arms)).tolist() == order
    assert policy.recommend_list(0, arms, 1).tolist() == [policy.recommend(0, arms)]


def test_one_arm_is_the_choice() -> None:
    for example in SCORING:
        assert make(example).recommend(0, [[1.0, 2.0, 3.0]]) == 0


def test_a_choice_is_exact_even_when_the_eigenvalues_almost_agree() -> None:
    policy = LinUCBOne(1, 2, beta=1.0)
    policy.update(0, [1e-4, 0.0], 0.0)
    arms = np.array([[np.sqrt(0.3), np.sqrt(0.7 + 1e-9)], [0.0, 1.0]])
    assert policy.recommend(0, arms) == int(np.argmax(policy.scores(0, arms).ucb)) == 1


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1.0, 1e4])
def test_the_best_arm_does_not_depend_on_the_scale_of_the_arms_when_nothing_is_known(scale: float) -> None:
    arms = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    assert make("CLUB").recommend(0, arms * scale) == 1


@pytest.mark.parametrize("example", ["CLUB", "SCLUB", "LinUCBOne"])
def test_vectors_of_very_different_lengths_keep_estimates_finite(example: str) -> None:
    policy = make(example)
    rng = np.random.default_rng(3)
    for t in range(300):
        x = rng.normal(size=3) * 10.0 ** rng.integers(-6, 5)
        policy.update(t % 6, x, float(rng.normal()))
    play(policy, 100)
    assert np.all(np.isfinite(policy.estimates))


class Lasting:
    """A world of a few coarse items that last: widths are remembered, and ties are many."""

    seed, n_users, dim, longest_delay = 0, 6, 3, 0
    labels: Ints = np.arange(6) % 2

    def __init__(self, *, lasting: bool) -> None:
        rng = np.random.default_rng(1)
        self.items = rng.integers(-1, 2, size=(30, 3)).astype(float)
        self.tastes, self.lasting = rng.normal(size=(2, 3)), lasting

    def present(self, number: int) -> int:
        return 6

    def block(self, number: int) -> Block:
        rng = np.random.default_rng(number)
        users, picks = rng.integers(6, size=BLOCK), rng.integers(30, size=(BLOCK, 12))
        means = np.einsum("tkd,td->tk", self.items[picks], self.tastes[users % 2])
        noise, delays = rng.normal(size=BLOCK), np.zeros(BLOCK, np.int64)
        return Block(users, self.items, picks, means, noise, delays, binary=False, lasting=self.lasting)


@pytest.mark.parametrize("example", [e for e in SCORING if e not in (*POPULARITY, "COFIBA")])  # have none
def test_remembered_widths_change_no_decision(example: str) -> None:
    """The same rounds with widths remembered, with every width bounded anew, and step by step."""
    remembering, forgetting, stepping = make(example), make(example), make(example)
    rounds = 6 * BLOCK
    traces = [
        coterie.simulate(policy, Lasting(lasting=lasting), rounds, record=rounds)
        for policy, lasting in ((remembering, True), (forgetting, False))
    ]
    np.testing.assert_array_equal(traces[0].regret, traces[1].regret)
    world, regret = Lasting(lasting=True), []
    for t in range(rounds):
        block, k = world.block(t // BLOCK), t % BLOCK
        user, arms = int(block.users[k]), block.items[block.picks[k]]
        if not (uniform := stepping.exploring):
            wanted = int(np.argmax(stepping.scores(user, arms).ucb))
        arm = stepping.recommend(user, arms)
        assert uniform or arm == wanted
        stepping.update(user, arms[arm], float(block.means[k, arm] + block.noise[k]))
        regret.append(block.means[k].max() - block.means[k, arm])
    np.testing.assert_array_equal(traces[0].regret, np.cumsum(regret))
