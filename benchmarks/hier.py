"""HierUCB and HierTS beside LinUCBInd among many users, learning the prior included, and their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import coterie
from benchmarks.timing import Table, at_most, best_in_turn
from coterie.environments import Stochastic

USERS, DIM, HORIZON = 1_876, 25, 30_000


def beside_linucb() -> Table:
    """A round of each, the fits of the prior spread over all rounds."""
    data, rows = coterie.datasets.load("synthetic", n_users=USERS, dim=DIM), []
    for n_arms in (25, 100):
        world = Stochastic(data, n_users=USERS, n_arms=n_arms, seed=1)
        makers: list[Callable[[], coterie.Policy]] = [
            partial(coterie.HierUCB, USERS, DIM),
            partial(coterie.HierTS, USERS, DIM),
            partial(coterie.LinUCBInd, USERS, DIM, beta=0.1),
        ]
        bound, sampled, alone = best_in_turn(makers, world, HORIZON, repeats=2)
        rows.append(
            (
                f"K = {n_arms}",
                f"{alone:.2f}",
                f"{bound:.2f}",
                *at_most(bound / alone, 3),
                f"{sampled:.2f}",
                f"{sampled / alone:.2f}",
            )
        )
    policy = coterie.HierUCB(USERS, DIM)
    held = sum(array.nbytes for array in policy.learner.arrays().values())
    return Table(
        f"HierUCB among {USERS:,} users, d = {DIM}, {HORIZON:,} rounds, fits included",
        ("arms", "LinUCBInd µs", "HierUCB µs", "ratio", "wanted", "", "HierTS µs", "ratio"),
        rows,
        f"state: {held / 1e6:.1f} MB, {held / USERS / 1e3:.1f} kB a user",
    )


def tables() -> Iterator[Table]:
    yield beside_linucb()


if __name__ == "__main__":
    beside_linucb().show()
