"""Arbitrary histories of a policy, and the sums that they come to when taken afresh."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from contracts.examples import grow
from coterie import LinearBandit
from coterie.types import Bools, Floats, Ints, Words
from inspection import state_arrays

DIM = 3
VECTORS = np.array(
    [
        [0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [0.0, 0.0, -1.0],
        [0.6, 0.8, 0.0],
        [0.5, -0.5, 0.7],
        [1e-6, 0.0, 2e-6],
        [3.0, -4.0, 12.0],
    ]
)


class Event(NamedTuple):
    """A reward for a vector; `newcomers` more users first; `asked` before."""

    user: int
    vector: int
    reward: float
    newcomers: int
    asked: bool


def events(most: int = 50) -> st.SearchStrategy[list[Event]]:
    return st.lists(
        st.builds(
            Event,
            user=st.integers(0, 10**6),
            vector=st.integers(0, len(VECTORS) - 1),
            reward=st.sampled_from([-1.0, 0.0, 0.25, 1.0, 1.0, 3.0]),
            newcomers=st.sampled_from([0] * 15 + [1, 2]),
            asked=st.booleans(),
        ),
        max_size=most,
    )


class Sums:
    """S, b and T of each user, summed from the history."""

    def __init__(self, n_users: int, dim: int = DIM) -> None:
        self.grams = np.zeros((n_users, dim, dim))
        self.moments = np.zeros((n_users, dim))
        self.pulls = np.zeros(n_users, np.int64)

    def add(self, user: int, x: Floats, reward: float) -> None:
        self.grams[user] += np.outer(x, x)
        self.moments[user] += reward * x
        self.pulls[user] += 1

    def grow(self, n: int) -> None:
        self.grams = np.concatenate([self.grams, np.zeros((n, *self.grams.shape[1:]))])
        self.moments = np.concatenate([self.moments, np.zeros((n, self.moments.shape[1]))])
        self.pulls = np.concatenate([self.pulls, np.zeros(n, np.int64)])


def live(policy: LinearBandit, history: list[Event]) -> Sums:
    """Let the policy live through a history."""
    sums = Sums(policy.n_users)
    for event in history:
        if event.newcomers:
            grow(policy, event.newcomers)
            sums.grow(event.newcomers)
        user, x = event.user % policy.n_users, VECTORS[event.vector]
        if event.asked:
            policy.recommend((event.user // 7) % policy.n_users, VECTORS)
        policy.update(user, x, event.reward)
        sums.add(user, x, event.reward)
    return sums


def rows(policy: LinearBandit) -> dict[int, Ints]:
    """The rows of pooled statistics in use, with their members."""
    held = state_arrays(policy)
    if "sharers" in held:
        members = unpacked(held["members"], policy.n_users)
        return {int(r): np.flatnonzero(members[r]) for r in np.flatnonzero(held["sharers"])}
    if "seeds" in held:
        members = unpacked(held["members"], policy.n_users)
        return {int(r): np.flatnonzero(members[r]) for r in np.flatnonzero(held["seeds"] >= 0)}
    labels = held["labels"]
    return {int(r): np.flatnonzero(labels == r) for r in np.unique(labels[labels >= 0])}


def unpacked(words: Words, n: int) -> Bools:
    """Rows of bits as booleans; no bit beyond the n users is set."""
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little").astype(bool)
    assert not bits[:, n:].any()
    return bits[:, :n]
