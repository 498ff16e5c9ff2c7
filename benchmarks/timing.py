"""Timing and tables of results. Every round is played by `coterie.simulate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

import coterie
from coterie.environments.blocks import Environment
from coterie.types import Floats


class Table(NamedTuple):
    """A topic: its title, the heads of its columns, a row for each thing measured, and an optional note."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def show(self) -> None:
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        print(f"\n{self.title}")
        for row in (self.heads, *self.rows):
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            print("  " + "  ".join(cells))
        if self.note:
            print(f"  {self.note}")


def at_least(value: float, wanted: float) -> tuple[str, str, str]:
    """The value, what was wanted and whether it holds, as cells."""
    return f"{value:.2f}", f"≥ {wanted:g}", "yes" if value >= wanted else "NO"


def at_most(value: float, wanted: float) -> tuple[str, str, str]:
    """The value, what was wanted and whether it holds, as cells."""
    return f"{value:.2f}", f"≤ {wanted:g}", "yes" if value <= wanted else "NO"


class TimedPolicy:
    """A policy whose `recommend` and `update` are timed, so that it plays through them step by step."""

    def __init__(self, policy: coterie.Policy) -> None:
        self.policy = policy
        self.recommending: list[float] = []
        self.updating: list[float] = []

    def recommend(self, user: int, arms: Floats) -> int:
        began = perf_counter()
        arm = self.policy.recommend(user, arms)
        self.recommending.append(perf_counter() - began)
        return arm

    def update(self, user: int, x: Floats, reward: float) -> None:
        began = perf_counter()
        self.policy.update(user, x, reward)
        self.updating.append(perf_counter() - began)

    def microseconds(self) -> Floats:
        """What each round took."""
        return np.array([1e6 * (a + b) for a, b in zip(self.recommending, self.updating, strict=True)])


def simulated(policy: coterie.Policy, world: Environment, horizon: int) -> float:
    """Microseconds a round, drawing the rounds not included."""
    return 1e6 * coterie.simulate(policy, world, horizon, record=1).seconds / horizon


def stepped(policy: coterie.Policy, world: Environment, horizon: int) -> Floats:
    """Microseconds of recommend and update in each round."""
    timed = TimedPolicy(policy)
    coterie.simulate(timed, world, horizon, record=1)
    return timed.microseconds()


def best_rounds(
    make: Callable[[], coterie.Policy], world: Environment, horizon: int, repeats: int = 3
) -> float:
    """Microseconds a round, the best of several policies that start anew."""
    return best_in_turn([make], world, horizon, repeats)[0]


def best_in_turn(
    makers: Sequence[Callable[[], coterie.Policy]], world: Environment, horizon: int, repeats: int = 3
) -> list[float]:
    """The same for several kinds of policies, measured in turn, so that a busy moment slows all of them."""
    spent = [[simulated(make(), world, horizon) for make in makers] for _ in range(repeats)]
    return [min(column) for column in zip(*spent, strict=True)]


def best_call(work: Callable[[], object], repeats: int = 300, calls: int = 10) -> float:
    """Microseconds of one call, the best of many short series."""
    least = float("inf")
    for _ in range(repeats):
        began = perf_counter()
        for _ in range(calls):
            work()
        least = min(least, perf_counter() - began)
    return 1e6 * least / calls
