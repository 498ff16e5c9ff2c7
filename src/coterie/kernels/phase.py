"""PhaseUniCLUB: a user learns from its direct neighbours, not from the whole component (Alg. 2).

Users with the same neighbourhood share one row, a room. A room is built when one of its users has
been served, and kept up to date from then on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.kernels.bits import components, drop, has, listed, put, same
from coterie.kernels.club import absorb_user, strangers
from coterie.kernels.compiling import compiled
from coterie.kernels.generic import View, labels, learns, views
from coterie.kernels.radius import Radius
from coterie.kernels.ridge import Ridge, absorb, pool
from coterie.types import Floats, Ints, Words


class Rooms(NamedTuple):
    """Statistics of users and of neighbourhoods.

    room = the room each user lives in, or -1; tenants = how many live in each; members = its users as bits
    clock = (rounds, rooms ever used)
    """

    users: Ridge
    grams: Floats
    pools: Ridge
    edges: Words
    room: Ints
    tenants: Ints
    members: Words
    radii: Floats
    epochs: Ints
    clock: Ints
    shape: Radius
    ridge: float
    beta: float
    first: int


@compiled
def leave(state: Rooms, user: int) -> None:
    """The user's neighbourhood has changed: its old room serves it no longer."""
    if state.room[user] >= 0:
        state.tenants[state.room[user]] -= 1
        state.room[user] = -1


@compiled
def vacant(state: Rooms) -> int:
    """A room without tenants."""
    for room in range(state.clock[1]):
        if state.tenants[room] == 0:
            return room
    state.clock[1] += 1
    return int(state.clock[1]) - 1


@compiled
def around(state: Rooms, user: int) -> Words:
    """The user and its neighbours as bits (Alg. 2, line 13)."""
    row: Words = state.edges[user].copy()
    put(row, user)
    return row


@compiled
def settle(state: Rooms, user: int) -> None:
    """Give the user a room: its own, one with the same neighbourhood, or a new one (Alg. 2, lines 13-15)."""
    if state.room[user] >= 0:
        return
    members = around(state, user)
    found = -1
    for room in range(state.clock[1]):
        if state.tenants[room] and same(state.members[room], members):
            found = room
            break
    if found < 0:
        found = vacant(state)
        state.members[found] = members
        pool(state.pools, found, state.users, state.grams, listed(members, state.room.shape[0]), state.ridge)
        state.epochs[found] += 1
    state.room[user] = found
    state.tenants[found] += 1


@views(Rooms)
def view(state: Rooms, user: int) -> View:
    """The user and its neighbours (Alg. 2, lines 13-15); looking changes nothing."""
    row = state.room[user]
    if row >= 0:
        return View(state.pools.estimate[row], state.pools.inverse[row], state.beta, row, state.ridge, np.inf)
    d = state.pools.moment.shape[1]
    once = Ridge(np.empty((1, d, d)), np.empty((1, d)), np.empty((1, d)), np.empty(1, np.int64))
    members = listed(around(state, user), state.room.shape[0])
    pool(once, 0, state.users, state.grams, members, state.ridge)
    return View(once.estimate[0], once.inverse[0], state.beta, -1, state.ridge, np.inf)


@learns(Rooms)
def learn(state: Rooms, user: int, x: Floats, reward: float) -> None:
    """Update the user and every room it is a member of; after the first stretch, cut edges."""
    absorb_user(state.users, state.grams, state.radii, state.shape, user, x, reward)  # lines 5 and 18
    gain = np.empty(x.shape[0])
    for room in range(state.clock[1]):
        if state.tenants[room] and has(state.members[room], user):
            absorb(state.pools, room, x, reward, gain)
    if state.clock[0] >= state.first:  # line 19
        for other in strangers(state.users, state.radii, state.edges, user):
            drop(state.edges[user], other)
            drop(state.edges[other], user)
            leave(state, user)
            leave(state, other)
    settle(state, user)
    state.clock[0] += 1


@labels(Rooms)
def label(state: Rooms, out: Ints) -> None:
    """Connected components: the coarsest reading of neighbourhoods that is a partition."""
    components(state.edges, out)
