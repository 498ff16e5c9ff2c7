"""SCLUB and UniSCLUB: clusters are sets that split and merge (Alg. 3, with Split and Merge)."""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from coterie.kernels.club import absorb_user
from coterie.kernels.compiling import compiled
from coterie.kernels.generic import View, labels, learns, views
from coterie.kernels.radius import Radius, radius
from coterie.kernels.ridge import Ridge, absorb, copy_row, distance2, pool, where
from coterie.types import Bools, Floats, Ints


class Sets(NamedTuple):
    """Statistics of users and of clusters; each cluster has a slot, its size and its unchecked members.

    order = the slots in use, from the oldest cluster to the youngest
    clock = (rounds, clusters, slots ever used, must all pairs be compared?)
    """

    users: Ridge
    grams: Floats
    pools: Ridge
    labels: Ints
    checked: Bools
    sizes: Ints
    unchecked: Ints
    order: Ints
    radii: Floats
    epochs: Ints
    clock: Ints
    shape: Radius
    ridge: float
    beta: float
    arrivals: float


@compiled
def arrival_radius(t: int) -> float:
    """F(t) = √((1 + ln(1 + t)) / (1 + t))   (Li et al. 2019)."""
    return sqrt((1.0 + log(1.0 + t)) / (1.0 + t))


@compiled
def begin_phase(state: Sets) -> None:
    """Mark every user unchecked (Alg. 3, line 2)."""
    state.checked[:] = False
    for k in range(state.clock[1]):
        slot = state.order[k]
        state.unchecked[slot] = state.sizes[slot]


@compiled
def parts(state: Sets, user: int, slot: int, t: int) -> bool:
    """Is some user of the cluster no longer like this one? (Split, line 1)."""
    far = 2.0 * state.arrivals * arrival_radius(t) * t
    for other in range(state.labels.shape[0]):
        if state.labels[other] != slot or other == user:
            continue
        if (
            distance2(state.users.estimate[user], state.users.estimate[other])
            > (state.radii[user] + state.radii[other]) ** 2
        ):
            return True
        if state.arrivals > 0.0 and abs(state.users.pulls[user] - state.users.pulls[other]) > far:
            return True
    return False


@compiled
def free_slot(state: Sets) -> int:
    """A slot that no cluster uses."""
    for slot in range(state.clock[2]):
        if state.sizes[slot] == 0:
            return slot
    state.clock[2] += 1
    return int(state.clock[2]) - 1


@compiled
def split(state: Sets, user: int, slot: int) -> int:
    """Take the user out of its cluster into a new one of its own; returns the new slot (Split, lines 2-4)."""
    fresh = free_slot(state)
    state.labels[user] = fresh
    state.sizes[slot] -= 1
    state.sizes[fresh] = 1
    state.unchecked[fresh] = 0 if state.checked[user] else 1
    state.unchecked[slot] -= state.unchecked[fresh]
    pool(state.pools, slot, state.users, state.grams, where(state.labels, slot), state.ridge)
    copy_row(state.users, user, state.pools, fresh)
    state.epochs[slot] += 1
    state.epochs[fresh] += 1
    state.order[state.clock[1]] = fresh
    state.clock[1] += 1
    return fresh


@compiled
def close(state: Sets, a: int, b: int, t: int) -> bool:
    """Are two checked clusters alike? (Merge, line 2)."""
    if state.unchecked[a] or state.unchecked[b]:
        return False
    reach = radius(state.shape, state.pools.pulls[a]) + radius(state.shape, state.pools.pulls[b])
    if distance2(state.pools.estimate[a], state.pools.estimate[b]) >= reach * reach:
        return False
    if state.arrivals <= 0.0:
        return True
    often = state.pools.pulls[a] / state.sizes[a] - state.pools.pulls[b] / state.sizes[b]
    return bool(abs(often) < state.arrivals * arrival_radius(t) * t)


@compiled
def join(state: Sets, older: int, younger: int) -> None:
    """The older cluster takes in the younger (Merge, lines 3-4)."""
    for other in range(state.labels.shape[0]):
        if state.labels[other] == younger:
            state.labels[other] = older
    state.sizes[older] += state.sizes[younger]
    state.sizes[younger] = 0
    pool(state.pools, older, state.users, state.grams, where(state.labels, older), state.ridge)
    kept = 0
    for k in range(state.clock[1]):
        if state.order[k] != younger:
            state.order[kept] = state.order[k]
            kept += 1
    state.clock[1] = kept


@compiled
def merge(state: Sets, touched: Bools, t: int) -> None:
    """Merge until no two checked clusters are close, oldest pair first (Merge, line 1).

    When a round begins no pair is close, so only pairs with a cluster touched since can be.
    """
    again = True
    while again:
        again = False
        for i in range(state.clock[1]):
            a = state.order[i]
            if state.unchecked[a]:
                continue
            for j in range(i + 1, state.clock[1]):
                b = state.order[j]
                if (touched[a] or touched[b]) and close(state, a, b, t):
                    join(state, a, b)
                    touched[a] = True
                    again = True
                    break
            if again:
                break


@views(Sets)
def view(state: Sets, user: int) -> View:
    """The cluster that holds the user (Alg. 3, lines 6-7)."""
    row = state.labels[user]
    return View(state.pools.estimate[row], state.pools.inverse[row], state.beta, row, state.ridge, np.inf)


@learns(Sets)
def learn(state: Sets, user: int, x: Floats, reward: float) -> None:
    """Update the user and its cluster, then split, mark and merge (Alg. 3, lines 11-15)."""
    t = state.clock[0] + 1
    if t & (t - 1) == 0:  # a phase begins at t = 2^(s-1): Alg. 3, lines 1-3
        begin_phase(state)
    absorb_user(state.users, state.grams, state.radii, state.shape, user, x, reward)  # line 11
    slot = state.labels[user]
    absorb(state.pools, slot, x, reward, np.empty(x.shape[0]))  # line 12
    touched = np.zeros(state.sizes.shape[0], np.bool_)
    touched[slot] = True
    if parts(state, user, slot, t):  # line 13
        touched[split(state, user, slot)] = True
    if not state.checked[user]:  # line 14
        state.checked[user] = True
        state.unchecked[state.labels[user]] -= 1
    if state.arrivals > 0.0 or state.clock[3]:
        touched[:] = True
        state.clock[3] = 0
    merge(state, touched, t)  # line 15
    state.clock[0] = t


@labels(Sets)
def label(state: Sets, out: Ints) -> None:
    """The labels as they are kept."""
    out[:] = state.labels
