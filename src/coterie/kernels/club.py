"""CLUB and UniCLUB: a graph loses edges, its connected components are the clusters (Alg. 1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.kernels.bits import component, drop, has, listed, lowest, meet
from coterie.kernels.compiling import compiled
from coterie.kernels.generic import View, labels, learns, views
from coterie.kernels.radius import Radius, radius
from coterie.kernels.ridge import Ridge, absorb, accumulate, distance2, pool, where
from coterie.types import Floats, Ints, Words


class Graph(NamedTuple):
    """Statistics of users and of components; edges as rows of bits; f(Tᵢ) of each user.

    clock = (rounds, components)
    """

    users: Ridge
    grams: Floats
    pools: Ridge
    labels: Ints
    edges: Words
    radii: Floats
    epochs: Ints
    clock: Ints
    shape: Radius
    ridge: float
    beta: float


@compiled
def absorb_user(
    users: Ridge, grams: Floats, radii: Floats, shape: Radius, user: int, x: Floats, reward: float
) -> None:
    """S, b, T, θ̂ and f(T) of the user served; others remain unchanged (Alg. 1, line 11)."""
    absorb(users, user, x, reward, np.empty(x.shape[0]))
    accumulate(grams[user], x)
    radii[user] = radius(shape, users.pulls[user])


@compiled
def strangers(users: Ridge, radii: Floats, edges: Words, user: int) -> Ints:
    """The neighbours ℓ with ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ)   (Alg. 1, line 12)."""
    found = np.empty(radii.shape[0], np.int64)
    count = 0
    for w in range(edges.shape[1]):
        word = edges[user, w]
        while word:
            other = (w << 6) + lowest(word)
            word &= word - np.uint64(1)
            apart = distance2(users.estimate[user], users.estimate[other])
            if apart > (radii[user] + radii[other]) ** 2:
                found[count] = other
                count += 1
    return found[:count]


@compiled
def cut(edges: Words, user: int, others: Ints) -> bool:
    """Delete the user's edges to others; may the graph have come apart?"""
    for other in others:
        drop(edges[user], other)
        drop(edges[other], user)
    for other in others:
        if not meet(edges[user], edges[other]):
            return True
    return False


@compiled
def rebuild(state: Graph, row: int, members: Ints) -> None:
    """Give these users this row, with their summed statistics."""
    for member in members:
        state.labels[member] = row
    pool(state.pools, row, state.users, state.grams, members, state.ridge)
    state.epochs[row] += 1


@compiled
def part(state: Graph, row: int) -> None:
    """Relabel a component that may have come apart: its lowest user's part keeps the row."""
    members = where(state.labels, row)
    unseen = np.ones(members.shape[0], np.bool_)
    target = row
    for k in range(members.shape[0]):
        if not unseen[k]:
            continue
        reached = component(state.edges, members[k])
        mine = listed(reached, state.labels.shape[0])
        if mine.shape[0] == members.shape[0]:
            return
        for m in range(k, members.shape[0]):
            if has(reached, members[m]):
                unseen[m] = False
        rebuild(state, target, mine)
        if target != row:
            state.clock[1] += 1
        target = state.clock[1]


@views(Graph)
def view(state: Graph, user: int) -> View:
    """The component of the user (Alg. 1, lines 6-8)."""
    row = state.labels[user]
    return View(state.pools.estimate[row], state.pools.inverse[row], state.beta, row, state.ridge, np.inf)


@learns(Graph)
def learn(state: Graph, user: int, x: Floats, reward: float) -> None:
    """Update the user and its component, then cut edges to users who are no longer alike."""
    absorb_user(state.users, state.grams, state.radii, state.shape, user, x, reward)  # Alg. 1, line 11
    row = state.labels[user]
    absorb(state.pools, row, x, reward, np.empty(x.shape[0]))  # Alg. 1, lines 7-8, kept up to date
    others = strangers(state.users, state.radii, state.edges, user)  # Alg. 1, line 12
    if others.shape[0] and cut(state.edges, user, others):
        part(state, row)
    state.clock[0] += 1


@labels(Graph)
def label(state: Graph, out: Ints) -> None:
    """The labels as they are kept."""
    out[:] = state.labels
