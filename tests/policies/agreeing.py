"""What fast policies and their naive transcriptions have in common while they are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log, sqrt
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

import coterie
from coterie.environments import Stochastic
from worlds import Array, Round, World

TIE = 1e-9
SEEDS = range(24)
ROUNDS = 160
ALPHAS = (0.15, 0.3, 0.5, 0.9)


class Fast(Protocol):
    @property
    def n_users(self) -> int: ...
    @property
    def exploring(self) -> bool: ...
    @property
    def rounds(self) -> int: ...
    def recommend(self, user: int, arms: Array, /) -> int: ...
    def update(self, user: int, x: Array, reward: float, /) -> None: ...
    def recommend_list(self, user: int, arms: Array, k: int, /) -> NDArray[np.int64]: ...
    def update_list(self, user: int, xs: Array, clicked: int | None, /) -> None: ...
    def scores(self, user: int, arms: Array, /) -> coterie.Scores: ...
    def cluster_of(self, user: int, /) -> NDArray[np.int64]: ...
    def add_users(self, n: int, /) -> object: ...


class Slow(Protocol):
    splits: int
    merges: int
    rounds: int

    @property
    def exploring(self) -> bool: ...
    def scores(self, user: int, arms: Array) -> Array: ...
    def update_list(self, user: int, xs: Array, clicked: int | None) -> None: ...
    def clusters(self) -> list[frozenset[int]]: ...


class Pair(NamedTuple):
    fast: Fast
    slow: Slow


Maker = Callable[[World, int], Pair]


def clusters(policy: Fast) -> list[frozenset[int]]:
    return [frozenset(policy.cluster_of(user).tolist()) for user in range(policy.n_users)]


def alpha(seed: int) -> float:
    return ALPHAS[seed % len(ALPHAS)]


def radius(seed: int) -> Callable[[int], float]:
    return lambda pulls: alpha(seed) * sqrt((1 + log(1 + pulls)) / (1 + pulls))


def labelled(kind: str, w: World) -> list[int]:
    labels: list[int] = w.labels.tolist()
    return {"one": [0] * w.n_users, "ind": list(range(w.n_users)), "oracle": labels}[kind]


def fast_lints(kind: str, w: World, seed: int) -> Fast:
    if kind == "one":
        return coterie.LinTSOne(w.n_users, w.dim, beta=0.4, ridge=w.ridge, seed=seed)
    if kind == "ind":
        return coterie.LinTSInd(w.n_users, w.dim, beta=0.4, ridge=w.ridge, seed=seed)
    return coterie.LinTSOracle(w.n_users, w.dim, labels=w.labels.tolist(), beta=0.4, ridge=w.ridge, seed=seed)


def small(w: World, most: int = 160) -> World:
    """The same world with few enough users for a dense regression of all of them."""
    if w.n_users * w.dim <= most:
        return w
    n_users = most // 20
    rounds = [turn._replace(user=turn.user % n_users) for turn in w.rounds]
    return w._replace(n_users=n_users, labels=w.labels[:n_users], rounds=rounds)


def low(w: World) -> World:
    """The same world in few dimensions, with few users."""
    dim, n_users = min(w.dim, 4), min(w.n_users, 8)
    rounds = [turn._replace(user=turn.user % n_users, arms=turn.arms[:, :dim].copy()) for turn in w.rounds]
    return w._replace(
        dim=dim,
        n_users=n_users,
        labels=w.labels[:n_users],
        preferences=w.preferences[:, :dim],
        rounds=rounds,
    )


JUMPING_USERS, JUMPING_DIM, JUMPING_NOISE = 6, 2, 0.05


def jumping(seed: int) -> Iterator[tuple[Round, Array]]:
    """Rounds of a world of jumps, with the reward of every arm; a taste lasts 20 visits on average."""
    data = coterie.datasets.load("synthetic", dim=JUMPING_DIM, n_users=40, n_items=200)
    place = Stochastic(
        data, n_users=JUMPING_USERS, n_clusters=3, n_arms=8, noise=JUMPING_NOISE, jumps=20.0, seed=seed
    )
    block = place.block(0)
    for t in range(240):
        turn = Round(int(block.users[t]), block.items[block.picks[t]], 0.0)
        yield turn, np.asarray(block.means[t] + block.noise[t])
