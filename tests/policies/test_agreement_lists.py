"""Ranked lists against the naive transcriptions: the same lists and clusters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

import coterie
from coterie.seeding import stream
from policies.agreeing import (
    SEEDS,
    TIE,
    Fast,
    Maker,
    Pair,
    Slow,
    alpha,
    clusters,
    fast_lints,
    labelled,
    radius,
    small,
)
from reference import autoclub, codband, lints, lists
from reference.cascade import first_click
from worlds import Array, Round, World, friends, world

pytestmark = pytest.mark.slow


def linucb_lists(w: World, seed: int) -> Pair:
    fast = coterie.LinUCBOracle(w.n_users, w.dim, labels=w.labels.tolist(), beta=0.4, ridge=w.ridge)
    slow = lists.ListLinUCB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, labels=labelled("oracle", w))
    return Pair(fast, slow)


def lints_lists(w: World, seed: int) -> Pair:
    labels, rng = labelled("ind", w), stream(seed, "policy")
    slow = lists.ListLinTS(w.n_users, w.dim, ridge=w.ridge, beta=0.4, labels=labels, rng=rng)
    return Pair(fast_lints("ind", w, seed), slow)


def goblin_lists(w: World, seed: int) -> Pair:
    graph, growing = friends(seed, w.n_users), bool(seed % 2)
    fast = coterie.GOBLin(w.n_users, w.dim, graph=graph, alpha=0.4, growing=growing, ridge=w.ridge)
    slow = lists.ListGOBLin(w.n_users, w.dim, graph=graph, ridge=w.ridge, alpha=0.4, source=growing)
    return Pair(fast, slow)


def graphucb_lists(w: World, seed: int) -> Pair:
    graph, growing = friends(seed, w.n_users), bool(seed % 2)
    fast = coterie.GraphUCB(
        w.n_users, w.dim, graph=graph, alpha=0.4, growing=growing, delta=0.05, ridge=w.ridge
    )
    slow = lists.ListGraphUCB(
        w.n_users, w.dim, graph=graph, ridge=w.ridge, alpha=0.4, source=growing, delta=0.05
    )
    return Pair(fast, slow)


def club_lists(w: World, seed: int) -> Pair:
    explore = 20 * (seed % 3)
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4, explore=explore)
    slow = lists.ListCLUB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=radius(seed), explore=explore)
    return Pair(coterie.UniCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge, seed=seed), slow)


def phase_lists(w: World, seed: int) -> Pair:
    first, length = 20 * (seed % 4), (0, 3, 6)[seed % 3]
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4, explore=first, phase=length, growth=1.5)
    slow = lists.ListPhaseUniCLUB(
        w.n_users,
        w.dim,
        ridge=w.ridge,
        beta=0.4,
        radius=radius(seed),
        first=first,
        phase=float(length),
        growth=1.5,
    )
    return Pair(coterie.PhaseUniCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge, seed=seed), slow)


def sclub_lists(w: World, seed: int) -> Pair:
    explore = 10 * (seed % 3)
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4, explore=explore)
    slow = lists.ListSCLUB(
        w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=radius(seed), explore=2 * explore
    )
    return Pair(coterie.UniSCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge, seed=seed), slow)


def sclub_arrivals_lists(w: World, seed: int) -> Pair:
    arrivals = (0.02, 0.1, 0.3)[seed % 3]
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4)
    slow = lists.ListSCLUB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=radius(seed), arrivals=arrivals)
    return Pair(
        coterie.SCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge, arrivals=arrivals), slow
    )


def autoclub_lists(w: World, seed: int) -> Pair:
    slow = autoclub.AutoCLUB(w.n_users, w.dim, ridge=w.ridge)
    return Pair(coterie.AutoCLUB(w.n_users, w.dim, ridge=w.ridge), slow)


def attractions(w: World, turn: Round) -> Array:
    """Probabilities that are not quite linear, as in life; the policies do not mind."""
    means = turn.arms @ w.preferences[w.labels[turn.user]]
    return np.asarray(np.clip(0.3 + 0.7 * means, 0.0, 1.0))


def assert_ranked(shown: list[int], scores: Array, arms: Array) -> None:
    """Distinct rows, best first, nothing better left out; of equal arms the lower row comes first."""
    assert len(set(shown)) == len(shown)
    left = [float(scores[arm]) for arm in range(len(arms)) if arm not in shown]
    order = [float(scores[arm]) for arm in shown] + [max(left, default=-np.inf)]
    assert all(above >= below - TIE for above, below in pairwise(order))
    for place, arm in enumerate(shown):
        twins = [other for other in range(arm) if np.array_equal(arms[other], arms[arm])]
        assert set(twins) <= set(shown[:place])


class Counted(NamedTuple):
    """How many lists were decided by scores, drawn, clicked above their end, and not clicked."""

    decided: int = 0
    drawn: int = 0
    cut_short: int = 0
    ignored: int = 0

    def plus(self, *, exploring: bool, clicked: int | None, length: int) -> Counted:
        return Counted(
            self.decided + (not exploring),
            self.drawn + exploring,
            self.cut_short + (clicked is not None and clicked < length - 1),
            self.ignored + (clicked is None),
        )


def show(pair: Pair, turn: Round, length: int, rng: np.random.Generator) -> list[int]:
    """The list of the fast policy, after the slow one has agreed; `rng` stands where the policy's stands."""
    fast, slow = pair
    assert fast.exploring == slow.exploring
    shown: list[int] = fast.recommend_list(turn.user, turn.arms, length).tolist()
    if slow.exploring:
        assert shown == lists.shuffled(rng, len(turn.arms), length)
        return shown
    scored = slow.sample if isinstance(slow, lints.LinTS | codband.CoDBand) else slow.scores
    assert len(shown) == length
    assert_ranked(shown, scored(turn.user, turn.arms), turn.arms)
    return shown


def walk_lists(pair: Pair, w: World, seed: int, counted: Counted) -> Counted:
    """Show every list on both, up to the first tie of a review that has a margin."""
    length, draws = min(1 + seed % 5, w.n_arms), np.random.default_rng([seed, 4])
    rng = stream(seed, "policy")
    for turn in w.rounds:
        exploring = pair.slow.exploring
        shown = show(pair, turn, length, rng)
        clicked = first_click(attractions(w, turn)[shown], draws.random(length))
        pair.fast.update_list(turn.user, turn.arms[shown], clicked)
        pair.slow.update_list(turn.user, turn.arms[shown], clicked)
        counted = counted.plus(exploring=exploring, clicked=clicked, length=length)
        assert pair.fast.rounds == pair.slow.rounds
        if getattr(pair.slow, "margin", np.inf) < TIE:
            return counted
        assert clusters(pair.fast) == pair.slow.clusters()
    return counted


def show_all(make: Maker, n_rounds: int, shrink: Callable[[World], World]) -> tuple[Counted, list[Slow]]:
    counted, played = Counted(), []
    for seed in SEEDS:
        w = shrink(world(seed, n_rounds))
        pair = make(w, seed)
        counted = walk_lists(pair, w, seed, counted)
        played.append(pair.slow)
    return counted, played


@pytest.mark.parametrize("make", [linucb_lists, lints_lists, goblin_lists, graphucb_lists])
def test_lists_of_policies_without_a_review_agree_with_their_reference(make: Maker) -> None:
    counted, _ = show_all(make, 80, lambda w: small(w, most=96))
    assert counted.decided == len(SEEDS) * 80
    assert counted.cut_short > 500
    assert counted.ignored > 300


@pytest.mark.parametrize("make", [club_lists, phase_lists])
def test_lists_of_graph_policies_agree_with_their_reference_while_clusters_split(make: Maker) -> None:
    counted, played = show_all(make, 80, lambda w: w)
    assert counted.decided > 1000
    assert counted.drawn > 200
    assert sum(slow.splits for slow in played) > 100


@pytest.mark.parametrize("make", [sclub_lists, sclub_arrivals_lists])
def test_lists_of_set_policies_agree_with_their_reference_while_clusters_split_and_merge(make: Maker) -> None:
    counted, played = show_all(make, 80, lambda w: w)
    assert counted.decided > 1000
    assert sum(slow.splits for slow in played) > 200
    assert sum(slow.merges for slow in played) > 50


def test_lists_of_autoclub_agree_with_their_reference_while_users_move() -> None:
    counted, played = show_all(autoclub_lists, 150, small)
    assert counted.decided > 0.9 * len(SEEDS) * 150
    assert sum(slow.moves for slow in played if isinstance(slow, autoclub.AutoCLUB)) > 250


@pytest.mark.parametrize("make", [coterie.CLUB, coterie.PhaseUniCLUB])
def test_edges_are_cut_after_the_whole_list_and_not_within(make: Callable[..., Fast]) -> None:
    """Small enough for paper: d = 1, x = 1, λ = 1, f(T) = 0.6 √((1 + ln(1 + T))/(1 + T)).

    User 1 has clicked ten times: θ̂ = 0.909, f = 0.333. User 0 ignores three items: θ̂ = 0, f = 0.463, and
    0.909 is more than both radii together. Then it clicks the fourth: θ̂ = 0.2, f = 0.433, and 0.709 is less.
    """
    x = np.ones((1, 1))
    whole = make(2, 1, confidence=coterie.Tuned(alpha=0.6, beta=0.4, explore=0))
    apart = make(2, 1, confidence=coterie.Tuned(alpha=0.6, beta=0.4, explore=0))
    for policy in (whole, apart):
        for _ in range(10):
            policy.update_list(1, x, 0)
        assert policy.cluster_of(0).tolist() == [0, 1]
    whole.update_list(0, np.ones((4, 1)), 3)
    assert whole.cluster_of(0).tolist() == [0, 1]
    for clicked in (None, None, None, 0):
        apart.update_list(0, x, clicked)
    assert apart.cluster_of(0).tolist() == [0]


@pytest.mark.parametrize(("make", "least"), [(sclub_lists, 3), (autoclub_lists, 12)])
def test_a_review_after_every_reward_would_be_noticed(make: Maker, least: int) -> None:
    """On the references alone, over the lists of `walk_lists`: in so many worlds clusters would differ."""
    differ = 0
    for seed in SEEDS:
        w = small(world(seed, 80))
        once, each = make(w, seed).slow, make(w, seed).slow
        assert isinstance(each, lists.ListSCLUB | autoclub.AutoCLUB)
        draws, same = np.random.default_rng([seed, 4]), True
        for turn in w.rounds:
            shown = lists.ranked(once.scores(turn.user, turn.arms), min(1 + seed % 5, w.n_arms))
            clicked = first_click(attractions(w, turn)[shown], draws.random(len(shown)))
            once.update_list(turn.user, turn.arms[shown], clicked)
            for x, reward in lists.observed(turn.arms[shown], clicked):
                each.update(turn.user, x, reward)
            same = same and once.clusters() == each.clusters()
        differ += not same
    assert differ >= least


@pytest.mark.parametrize(
    "make",
    [
        linucb_lists,
        lints_lists,
        goblin_lists,
        graphucb_lists,
        club_lists,
        phase_lists,
        sclub_lists,
        autoclub_lists,
    ],
)
def test_a_list_of_one_is_a_round(make: Maker) -> None:
    w = small(world(5, 120))
    single, listed = make(w, 5).fast, make(w, 5).fast
    draws = np.random.default_rng(6)
    for turn in w.rounds:
        arm = single.recommend(turn.user, turn.arms)
        assert listed.recommend_list(turn.user, turn.arms, 1).tolist() == [arm]
        clicked = first_click(attractions(w, turn)[[arm]], draws.random(1))
        single.update(turn.user, turn.arms[arm], float(clicked is not None))
        listed.update_list(turn.user, turn.arms[[arm]], clicked)
        assert clusters(single) == clusters(listed)
        np.testing.assert_array_equal(
            single.scores(turn.user, turn.arms), listed.scores(turn.user, turn.arms)
        )
