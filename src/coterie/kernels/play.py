"""The only loop over rounds: a policy meets a block of rounds that an environment has drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.choice import choose
from coterie.kernels.compiling import compiled
from coterie.kernels.generic import View, label, learn, view
from coterie.kernels.schedule import Schedule, explores
from coterie.kernels.steps import bound_widths
from coterie.types import Floats, Ints


class Block(NamedTuple):
    """Rounds drawn beforehand: users (n,), picks (n, K) among items, means (n, K), noise (n,), delays (n,).

    A reward is mean + noise, or with `binary` whether noise lies below the mean. `lasting` items are the
    same in every block.
    """

    users: Ints
    items: Floats
    picks: Ints
    means: Floats
    noise: Floats
    delays: Ints
    binary: bool
    lasting: bool


class Memory(NamedTuple):
    """The last known xᵀM̄⁻¹x of every lasting item for every row, the epoch it stems from, and ‖x‖²."""

    bounds: Floats
    epochs: Ints
    squares: Floats


class Pending(NamedTuple):
    """Feedback that has not arrived yet: one slot a round, by round number modulo the size."""

    due: Ints
    users: Ints
    xs: Floats
    rewards: Floats


class Ledger(NamedTuple):
    """What is written down at each mark, and the running totals.

    totals = (regret, reward); counts = (rounds, marks passed, uniform rounds, users known)
    """

    marks: Ints
    regret: Floats
    reward: Floats
    explored: Ints
    labels: Ints
    totals: Floats
    counts: Ints


@compiled
def best(values: Floats) -> float:
    """The largest value."""
    top = float(values[0])
    for k in range(1, values.shape[0]):
        top = max(top, values[k])
    return top


@compiled
def decide_lasting(
    seen: View,
    items: Floats,
    picks: Ints,
    memory: Memory,
    bounds: Floats,
    upper: Floats,
    exact: Ints,
    work: Floats,
) -> int:
    """`choose`, with ‖x‖²/λ and earlier rounds as bounds: while data only accumulates, no width grows."""
    remembered, most = memory.bounds[seen.row], 1.0 / seen.ridge
    for k in range(picks.shape[0]):
        bounds[k] = min(remembered[picks[k]], most * memory.squares[picks[k]])
    arm = choose(seen, items, picks, bounds, upper, exact, work)
    for k in range(picks.shape[0]):
        remembered[picks[k]] = bounds[k]
    return arm


@compiled
def refresh(memory: Memory, row: int, epoch: int) -> None:
    """Of a row whose data was taken away nothing is remembered."""
    if memory.epochs[row] != epoch:
        memory.bounds[row] = np.inf
        memory.epochs[row] = epoch


@compiled
def deliver(state: Any, pending: Pending, t: int) -> None:
    """Absorb what is due by now, oldest round first."""
    size = pending.due.shape[0]
    for back in range(size - 1, -1, -1):
        slot = (t - back) % size
        if t >= back and 0 <= pending.due[slot] <= t:
            pending.due[slot] = -1
            learn(state, pending.users[slot], pending.xs[slot], pending.rewards[slot])


@compiled
def note(state: Any, ledger: Ledger) -> None:
    """Write down where things stand."""
    mark = ledger.counts[1]
    ledger.regret[mark] = ledger.totals[0]
    ledger.reward[mark] = ledger.totals[1]
    ledger.explored[mark] = ledger.counts[2]
    label(state, ledger.labels[mark, : ledger.counts[3]])
    ledger.counts[1] += 1


@compiled
def play(
    state: Any,
    schedule: Schedule,
    block: Block,
    draws: Floats,
    memory: Memory,
    pending: Pending,
    ledger: Ledger,
) -> int:
    """Play the rounds of a block; returns how many uniform draws were used."""
    n, width = block.picks.shape
    bounds, upper, exact = np.empty(width), np.empty(width), np.empty(width, np.int64)
    work = np.empty(block.items.shape[1])
    used = 0
    for t in range(n):
        user, picks, means = block.users[t], block.picks[t], block.means[t]
        if explores(schedule, state.clock[0]):
            arm = int(draws[used] * width)
            used += 1
            ledger.counts[2] += 1
        else:
            seen = view(state, user)
            if block.lasting and seen.row >= 0:
                refresh(memory, seen.row, state.epochs[seen.row])
                arm = decide_lasting(seen, block.items, picks, memory, bounds, upper, exact, work)
            else:
                bound_widths(seen, block.items, picks, bounds, work)
                arm = choose(seen, block.items, picks, bounds, upper, exact, work)
        x, reward = block.items[picks[arm]], means[arm] + block.noise[t]
        if block.binary:
            reward = 1.0 if block.noise[t] < means[arm] else 0.0
        ledger.totals[0] += best(means) - means[arm]
        ledger.totals[1] += reward
        if pending.due.shape[0] == 0:
            learn(state, user, x, reward)
        else:
            slot = ledger.counts[0] % pending.due.shape[0]
            pending.due[slot] = ledger.counts[0] + block.delays[t]
            pending.users[slot], pending.rewards[slot] = user, reward
            pending.xs[slot] = x
            deliver(state, pending, ledger.counts[0])
        ledger.counts[0] += 1
        if ledger.counts[0] == ledger.marks[ledger.counts[1]]:
            note(state, ledger)
    return used
