"""Policies for corrupted users, duels and means that are not linear, against the arithmetic they imply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import process_time
from typing import NamedTuple

import numpy as np

import coterie
from benchmarks.floors import (
    ARMS,
    DIM,
    Bare,
    Updates,
    bare_operations,
    positive_definite,
    without_call,
    world,
)
from benchmarks.rounds import CONFIDENCE, HORIZON
from benchmarks.timing import Table, at_most, best_in_turn
from coterie.environments import Stochastic
from coterie.environments.blocks import BLOCK

WANTED = 3.0
REPEATS = 5


class Case(NamedTuple):
    """A policy, the matrices that a reward changes, further products M⁻¹x, if all arms need one, and ε*."""

    name: str
    updates: Updates
    products: int = 0
    every_arm: bool = False
    misspecification: float | None = None

    def make(self, n_users: int, dim: int) -> coterie.LinearBandit:
        more = {} if self.misspecification is None else {"misspecification": self.misspecification}
        return coterie.policies.REGISTRY[self.name].make(n_users, dim, confidence=CONFIDENCE, **more)

    @property
    def title(self) -> str:
        return self.name if self.misspecification is None else f"{self.name}, ε* = {self.misspecification}"

    def floor(self, bare: Bare, all_products: float) -> float:
        spent = bare.total(self.updates) + self.products * bare.product
        return spent + all_products if self.every_arm else spent


CASES = (
    Case("SCLUB2019", Updates(2, 2)),
    Case("RCLUBWCU", Updates(3, 1), products=1),
    Case("COLDB", Updates(2, 1), products=1),
    Case("RSCLUMB", Updates(2, 2), every_arm=True, misspecification=0.02),
    Case("RSCLUMB", Updates(2, 2), every_arm=True, misspecification=0.2),
    Case("RCLUMB", Updates(2, 1), every_arm=True, misspecification=0.02),
    Case("RCLUMB", Updates(2, 1), every_arm=True, misspecification=0.2),
)
"""A user's statistics and its cluster's; RCLUBWCU's plain ones; M⁻¹x of one or all arms."""


def multiplying_all(n: int, dim: int) -> Callable[[], object]:
    arms, inverse, out = np.ones((n, dim)), positive_definite(dim), np.empty((n, dim))
    return lambda: np.dot(arms, inverse, out=out)


def cpu_rounds(policy: coterie.LinearBandit, place: Stochastic) -> float:
    """Microseconds of processor time a round, drawing the rounds not included."""
    began = process_time()
    coterie.simulate(policy, place, HORIZON, record=1)
    played = process_time()
    for number in range(-(-HORIZON // BLOCK)):
        place.block(number)
    return 1e6 * (2 * played - began - process_time()) / HORIZON


def arithmetic() -> Table:
    """Each policy's round as a multiple of its bare operations, timed anew for each repeat: the median."""
    place, found = world(), []
    for _ in range(REPEATS):
        bare, products = bare_operations(), without_call(multiplying_all)
        spent = [cpu_rounds(case.make(place.n_users, place.dim), place) for case in CASES]
        found.append([(one, case.floor(bare, products)) for case, one in zip(CASES, spent, strict=True)])
    rows = []
    for case, *times in zip(CASES, *found, strict=True):
        one, floor = sorted(times, key=lambda both: both[0] / both[1])[REPEATS // 2]
        rows.append((case.title, f"{one:.2f}", f"{floor:.2f}", *at_most(one / floor, WANTED)))
    return Table(
        "Policies of other papers against bare operations: gather, means, widths, rank-one updates, by BLAS",
        ("policy", "µs", "floor µs", "× floor", "wanted", ""),
        rows,
        f"the median of {REPEATS}; M⁻¹x of all K = {ARMS} arms, d = {DIM}, by one product: {products:.2f} µs",
    )


def growing() -> Table:
    """A bonus that grows beside one that does not."""
    place, rows = world(), []
    for make in (coterie.CLUB, coterie.SCLUB):
        makers = [
            partial(make, place.n_users, place.dim, confidence=CONFIDENCE, growing=grows)
            for grows in (True, False)
        ]
        grown, plain = best_in_turn(makers, place, HORIZON, 2)
        rows.append((make.__name__, f"{grown:.2f}", f"{plain:.2f}", f"{grown / plain:.2f}"))
    return Table("A growing bonus beside a constant one", ("policy", "growing µs", "µs", "ratio"), rows)


def tables() -> Iterator[Table]:
    yield arithmetic()
    yield growing()


if __name__ == "__main__":
    for table in tables():
        table.show()
