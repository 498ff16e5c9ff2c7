"""The fast policies against the naive transcriptions: the same arm and the same clusters in every round."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie
from policies.agreeing import ROUNDS, SEEDS, TIE, alpha, clusters, small
from policies.agreeing import radius as tuned_radius
from reference import club, graphs, linucb, numbers, phase, sclub
from worlds import Round, World, friends, world

pytestmark = pytest.mark.slow

FEW, SOME = range(12), range(16)
"""Worlds need not be many where nothing splits, or much does."""


class Reference(Protocol):
    splits: int
    merges: int

    @property
    def exploring(self) -> bool: ...
    def scores(self, user: int, arms: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def update(self, user: int, x: NDArray[np.float64], reward: float) -> None: ...
    def clusters(self) -> list[frozenset[int]]: ...
    def estimates(self) -> NDArray[np.float64]: ...


class Pair(NamedTuple):
    fast: coterie.LinearBandit
    slow: Reference


def one(w: World, seed: int) -> Pair:
    fast = coterie.LinUCBOne(w.n_users, w.dim, beta=0.4, ridge=w.ridge)
    return Pair(fast, linucb.LinUCB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, labels=[0] * w.n_users))


def ind(w: World, seed: int) -> Pair:
    fast = coterie.LinUCBInd(w.n_users, w.dim, beta=0.4, ridge=w.ridge)
    return Pair(fast, linucb.LinUCB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, labels=list(range(w.n_users))))


def oracle(w: World, seed: int) -> Pair:
    labels = w.labels.tolist()
    fast = coterie.LinUCBOracle(w.n_users, w.dim, labels=labels, beta=0.4, ridge=w.ridge)
    return Pair(fast, linucb.LinUCB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, labels=labels))


def club_pair(w: World, seed: int) -> Pair:
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4)
    make = coterie.SACLUB if seed % 2 else coterie.CLUB
    slow = club.CLUB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=tuned_radius(seed))
    return Pair(make(w.n_users, w.dim, confidence=confidence, ridge=w.ridge), slow)


def uniclub(w: World, seed: int) -> Pair:
    explore = 11 * (seed % 6)
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4, explore=explore)
    slow = club.CLUB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=tuned_radius(seed), explore=explore)
    return Pair(coterie.UniCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge), slow)


def sclub_pair(w: World, seed: int) -> Pair:
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4)
    make = coterie.SASCLUB if seed % 2 else coterie.SCLUB
    slow = sclub.SCLUB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=tuned_radius(seed))
    return Pair(make(w.n_users, w.dim, confidence=confidence, ridge=w.ridge), slow)


def sclub_arrivals(w: World, seed: int) -> Pair:
    arrivals = (0.02, 0.1, 0.3)[seed % 3]
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4)
    slow = sclub.SCLUB(
        w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=tuned_radius(seed), arrivals=arrivals
    )
    return Pair(
        coterie.SCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge, arrivals=arrivals), slow
    )


def unisclub(w: World, seed: int) -> Pair:
    explore = 7 * (seed % 6)
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4, explore=explore)
    slow = sclub.SCLUB(
        w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=tuned_radius(seed), explore=2 * explore
    )
    return Pair(coterie.UniSCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge), slow)


def phase_pair(w: World, seed: int) -> Pair:
    first, length, growth = 9 * (seed % 4), (0, 3, 6)[seed % 3], (1.0, 2.0, 1.5)[(seed // 3) % 3]
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4, explore=first, phase=length, growth=growth)
    slow = phase.PhaseUniCLUB(
        w.n_users,
        w.dim,
        ridge=w.ridge,
        beta=0.4,
        radius=tuned_radius(seed),
        first=first,
        phase=float(length),
        growth=growth,
    )
    return Pair(coterie.PhaseUniCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge), slow)


def smoothed(w: World) -> coterie.SmoothedTheory:
    """A radius so small that users part within a test: σ is absurdly large."""
    return coterie.SmoothedTheory(horizon=60, sigma=40.0, n_arms=max(2, w.n_arms), truncation=0.1, delta=0.5)


def smoothed_numbers(w: World) -> tuple[float, Callable[[int], float]]:
    """β and f of Theorem 4 for `smoothed`   (Sec. 4.2)."""
    bound = numbers.smoothed_bound(dim=w.dim, truncation=0.1)
    eigenvalue = numbers.lambda_tilde(sigma=40.0, n_arms=max(2, w.n_arms), constant=1.0)

    def radius(pulls: int) -> float:
        return numbers.theory_radius(
            pulls, n_users=w.n_users, dim=w.dim, delta=0.5, ridge=w.ridge, bound=bound, lambda_x=eigenvalue
        )

    return numbers.confidence(horizon=60, dim=w.dim, delta=0.5, ridge=w.ridge, bound=bound), radius


def saclub(w: World, seed: int) -> Pair:
    beta, radius = smoothed_numbers(w)
    slow = club.CLUB(w.n_users, w.dim, ridge=w.ridge, beta=beta, radius=radius)
    return Pair(coterie.SACLUB(w.n_users, w.dim, confidence=smoothed(w), ridge=w.ridge), slow)


def sasclub(w: World, seed: int) -> Pair:
    beta, radius = smoothed_numbers(w)
    slow = sclub.SCLUB(w.n_users, w.dim, ridge=w.ridge, beta=beta, radius=radius)
    return Pair(coterie.SASCLUB(w.n_users, w.dim, confidence=smoothed(w), ridge=w.ridge), slow)


def goblin(w: World, seed: int) -> Pair:
    graph, growing = friends(seed, w.n_users), bool(seed % 2)
    fast = coterie.GOBLin(w.n_users, w.dim, graph=graph, alpha=0.4, growing=growing, ridge=w.ridge)
    return Pair(fast, graphs.GOBLin(w.n_users, w.dim, graph=graph, ridge=w.ridge, alpha=0.4, source=growing))


def graphucb(w: World, seed: int) -> Pair:
    graph, growing = friends(seed, w.n_users), bool(seed % 2)
    fast = coterie.GraphUCB(
        w.n_users, w.dim, graph=graph, alpha=0.4, growing=growing, delta=0.05, ridge=w.ridge
    )
    slow = graphs.GraphUCB(
        w.n_users, w.dim, graph=graph, ridge=w.ridge, alpha=0.4, source=growing, delta=0.05
    )
    return Pair(fast, slow)


def play(pair: Pair, w: World, turn: Round) -> bool:
    """Play a round on both; returns whether it was decided by scores."""
    assert pair.fast.exploring == pair.slow.exploring
    decided = not pair.slow.exploring
    arm = pair.fast.recommend(turn.user, turn.arms)
    if decided:
        scores = pair.slow.scores(turn.user, turn.arms)
        assert scores[arm] >= scores.max() - TIE
        np.testing.assert_allclose(pair.fast.scores(turn.user, turn.arms).ucb, scores, atol=1e-8)
    reward = w.reward(turn, arm)
    pair.fast.update(turn.user, turn.arms[arm], reward)
    pair.slow.update(turn.user, turn.arms[arm], reward)
    return decided


def walk_together(pair: Pair, w: World) -> int:
    """Play every round on both; returns how many rounds were decided by scores."""
    decided = 0
    for turn in w.rounds:
        decided += play(pair, w, turn)
        assert clusters(pair.fast) == pair.slow.clusters()
    return decided


def play_all(make: Callable[[World, int], Pair], seeds: range = SEEDS) -> tuple[int, int, int]:
    """(rounds decided by scores, splits, merges) over all setups."""
    decided = splits = merges = 0
    for seed in seeds:
        w = world(seed, ROUNDS)
        pair = make(w, seed)
        decided += walk_together(pair, w)
        splits += pair.slow.splits
        merges += pair.slow.merges
    return decided, splits, merges


@pytest.mark.parametrize("make", [one, ind, oracle])
def test_linucb_agrees_with_its_reference(make: Callable[[World, int], Pair]) -> None:
    decided, _, _ = play_all(make, FEW)
    assert decided == len(FEW) * ROUNDS


@pytest.mark.parametrize("make", [club_pair, uniclub, phase_pair])
def test_graph_policies_agree_with_their_reference_while_clusters_split(
    make: Callable[[World, int], Pair],
) -> None:
    decided, splits, _ = play_all(make)
    assert decided > 1500
    assert splits > 75


@pytest.mark.parametrize("make", [sclub_pair, unisclub, sclub_arrivals])
def test_set_policies_agree_with_their_reference_while_clusters_split_and_merge(
    make: Callable[[World, int], Pair],
) -> None:
    decided, splits, merges = play_all(make)
    assert decided > 2500
    assert splits > 200
    assert merges > 50


def test_saclub_agrees_with_its_reference_by_the_smoothed_theory_while_clusters_split() -> None:
    decided, splits, _ = play_all(saclub, SOME)
    assert decided == len(SOME) * ROUNDS
    assert splits > 50


def test_sasclub_agrees_with_its_reference_by_the_smoothed_theory_while_clusters_split_and_merge() -> None:
    decided, splits, merges = play_all(sasclub, SOME)
    assert decided == len(SOME) * ROUNDS
    assert splits > 200
    assert merges > 50


@pytest.mark.parametrize("make", [goblin, graphucb])
def test_graph_regularised_policies_agree_with_their_reference(
    make: Callable[[World, int], Pair],
) -> None:
    decided = 0
    for seed in FEW:
        w = small(world(seed, ROUNDS), most=96)
        decided += walk_together(make(w, seed), w)
    assert decided == len(FEW) * ROUNDS


@pytest.mark.parametrize("seed", range(4))
def test_theory_constants_lead_to_the_same_decisions(seed: int) -> None:
    w = world(seed + 30, 500)._replace(n_users=2)
    w = w._replace(rounds=[r._replace(user=r.user % 2) for r in w.rounds])
    confidence = coterie.Theory(horizon=60, lambda_x=40.0, gamma=9.0)
    explore = ceil(
        numbers.exploration_length(n_users=2, dim=w.dim, delta=1 / 60, bound=1.0, lambda_x=40.0, gamma=9.0)
    )
    assert explore < 450
    beta = numbers.confidence(horizon=60, dim=w.dim, delta=1 / 60, ridge=w.ridge, bound=1.0)
    slow = club.CLUB(
        2,
        w.dim,
        ridge=w.ridge,
        beta=beta,
        radius=lambda pulls: numbers.theory_radius(
            pulls, n_users=2, dim=w.dim, delta=1 / 60, ridge=w.ridge, bound=1.0, lambda_x=40.0
        ),
        explore=explore,
    )
    fast = coterie.UniCLUB(2, w.dim, confidence=confidence, ridge=w.ridge)
    assert walk_together(Pair(fast, slow), w) == 500 - explore
