"""Regret against communication: users on five servers that talk often, seldom or never."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import coterie
from benchmarks.timing import Table
from coterie.environments import Stochastic

USERS, CLUSTERS, DIM, ARMS, SERVERS, SEEDS, ROUNDS = 50, 5, 10, 20, 5, range(3), 20_000
RATIOS = (1.01, 1.2, 2.0, 5.0)
"""By how much determinants grow until a message is sent."""

Maker = Callable[[int], Any]


def place(seed: int) -> Stochastic:
    data = coterie.datasets.load("synthetic", dim=DIM, n_users=200, n_items=1_000, seed=0)
    return Stochastic(data, n_users=USERS, n_clusters=CLUSTERS, n_arms=ARMS, noise=0.1, seed=seed)


def federated(ratio: float) -> Maker:
    def make(seed: int) -> coterie.FCLUBDC:
        return coterie.FCLUBDC(
            USERS, DIM, n_servers=SERVERS, alpha=0.25, beta=0.1, upload=ratio, download=ratio
        )

    return make


def apart(shard_policy: Callable[..., coterie.LinearBandit], **constants: float) -> Maker:
    """The same policy on every server, without a message."""

    def make(seed: int) -> coterie.Sharded:
        return coterie.Sharded(
            lambda n_users, shard: shard_policy(n_users, DIM, seed=shard, **constants), SERVERS, n_users=USERS
        )

    return make


POLICIES: dict[str, Maker] = {
    **{f"FCLUBDC, ratios of {ratio:g}": federated(ratio) for ratio in RATIOS},
    "CLUB on each server": apart(coterie.CLUB, alpha=0.25, beta=0.1),
    "SCLUB on each server": apart(coterie.SCLUB, alpha=0.5, beta=0.1),
    "AutoCLUB on each server": apart(coterie.AutoCLUB),
    "CLUB": lambda seed: coterie.CLUB(USERS, DIM, alpha=0.25, beta=0.1),
    "SCLUB": lambda seed: coterie.SCLUB(USERS, DIM, alpha=0.5, beta=0.1),
    "LinUCBInd": lambda seed: coterie.LinUCBInd(USERS, DIM, beta=0.1),
    "AutoCLUB": lambda seed: coterie.AutoCLUB(USERS, DIM, seed=seed),
}


def row(name: str) -> tuple[str, ...]:
    """Regret with its standard error, and what was sent, in the mean over all seeds."""
    regrets, sent = [], []
    for seed in SEEDS:
        policy = POLICIES[name](seed)
        regrets.append(coterie.simulate(policy, place(seed), ROUNDS, record=1).regret[-1])
        sent.append(policy.communication if isinstance(policy, coterie.FCLUBDC) else (0, 0))
    messages, numbers = np.mean(sent, axis=0)
    error = np.std(regrets, ddof=1) / len(regrets) ** 0.5
    centrally = name in ("CLUB", "SCLUB", "LinUCBInd", "AutoCLUB")
    cells = ("–", "–") if centrally else (f"{messages:,.0f}", f"{numbers:,.0f}")
    return name, f"{np.mean(regrets):.0f}", f"{error:.0f}", *cells


def tables() -> Iterator[Table]:
    size = (
        f"{USERS} users in {CLUSTERS} clusters on {SERVERS} servers, d = {DIM}, K = {ARMS}, {ROUNDS:,} rounds"
    )
    yield Table(
        f"Regret and what servers send: {size}, seeds 0 to {SEEDS[-1]}",
        ("policy", "regret", "± s.e.", "messages", "numbers"),
        [row(name) for name in POLICIES],
    )


if __name__ == "__main__":
    for table in tables():
        table.show()
