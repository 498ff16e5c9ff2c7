"""Ranked lists, as docs/how-to/ranked-lists.md states them: what is shown and seen, and one review a list.

Each class is a reference with `update_list`: all rewards of a list are absorbed, each as the algorithm
absorbs one; then the algorithm asks once who is alike, as it does after one reward.
"""

import numpy as np

from reference.club import CLUB
from reference.graphs import GOBLin, GraphUCB
from reference.lints import LinTS
from reference.linucb import LinUCB
from reference.phase import PhaseUniCLUB
from reference.sclub import SCLUB
from reference.users import Array


def ranked(scores: Array, k: int) -> list[int]:
    """The k rows of largest score, best first; ties to the lower index."""
    return sorted(range(len(scores)), key=lambda arm: (-float(scores[arm]), arm))[:k]


def shuffled(rng: np.random.Generator, n_arms: int, k: int) -> list[int]:
    """k distinct rows, uniformly: the first k steps of a Fisher–Yates shuffle, one random number each."""
    order = list(range(n_arms))
    for j in range(k):
        i = j + int(rng.random() * (n_arms - j))
        order[j], order[i] = order[i], order[j]
    return order[:k]


def observed(xs: Array, clicked: int | None) -> list[tuple[Array, float]]:
    """The vectors that were looked at and their rewards: 0, …, 0, 1 up to the click; all 0 without one."""
    n_seen = len(xs) if clicked is None else clicked + 1
    return [(xs[position], float(position == clicked)) for position in range(n_seen)]


class NoReview:
    """A policy that never asks who is alike: a list is its rewards, one by one."""

    def update(self, user: int, x: Array, reward: float) -> None:
        raise NotImplementedError

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        for x, reward in observed(xs, clicked):
            self.update(user, x, reward)


class ListLinUCB(LinUCB, NoReview):
    """CascadeLinUCB, without its upper limit of 1 for a score."""


class ListLinTS(LinTS, NoReview):
    """CascadeLinTS: the list is the k largest of one sample."""


class ListGOBLin(GOBLin, NoReview):
    """GOB.Lin, over lists."""


class ListGraphUCB(GraphUCB, NoReview):
    """GraphUCB, over lists."""


class ListCLUB(CLUB):
    """CLUB-cascade, without its upper limit of 1 for a score."""

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        for x, reward in observed(xs, clicked):
            self.absorb(user, x, reward)  # Alg. 1, line 11
            self.rounds += 1
        self.delete_edges(user)  # Alg. 1, line 12, once


class ListPhaseUniCLUB(PhaseUniCLUB):
    """The last reward of the list says whether the first stretch is over."""

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        for x, reward in observed(xs, clicked):
            self.absorb(user, x, reward)  # Alg. 2, lines 5 and 18
            self.rounds += 1
        if self.rounds > self.first:
            self.delete_edges(user)  # Alg. 2, line 19, once


class ListSCLUB(SCLUB):
    """A phase begins if it begins with any reward of the list; t of the review is the last one's."""

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        starts = [2 ** (s - 1) for s in range(1, 64)]  # Alg. 3, lines 1 and 3
        for x, reward in observed(xs, clicked):
            self.rounds += 1
            if self.rounds in starts:
                self.checked = set()  # Alg. 3, line 2
            self.absorb(user, x, reward)  # Alg. 3, lines 10 to 12
        self.split(user, self.rounds)  # Alg. 3, line 13, once
        self.checked.add(user)  # Alg. 3, line 14
        self.merge(self.rounds)  # Alg. 3, line 15, once
