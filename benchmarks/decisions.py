"""`python -m benchmarks.decisions OUT.json [--against OLD.json]`: does a change alter any decision?

Plays every registered policy in worlds that differ in what policies react to, and writes one hash for each
pair: of the arms that were chosen, of the clusters and estimates at the end, and of the next decisions of a
pickled copy. Compare two commits by running it at the first, then at the second with `--against`. Only the
public interface is used, so that the command runs unchanged at both.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import coterie
from coterie.policies import REGISTRY
from coterie.types import Floats, Ints

ROUNDS = 2000
"""Enough for splits, merges, phases, alarms and restarts in worlds of this size."""


class World(NamedTuple):
    """Users in clusters, the arms that are offered, and what rewards are like."""

    name: str
    users: int = 12
    clusters: int = 3
    dim: int = 5
    arms: int = 8
    noise: float = 0.1
    rewards: str = "gaussian"
    """`gaussian`, `clicks`, `ratings` (rounded, the same again for the same arm) or `cauchy`."""
    pool: int = 0
    """Arms are drawn from so many fixed ones; 0 for fresh arms in every round."""
    feedback: str = "one"
    """`one`, `late` (in batches, out of order), `lists` or `pairs`."""
    offset: float = 0.0
    jumps: int = 0
    """Preferences change after so many rounds."""
    joining: bool = False
    """Half of the users join one by one."""
    units: bool = False
    """Columns are in very different units."""
    growing: bool = False
    wild: float = 0.0
    """One reward has this much added."""


WORLDS = (
    World("plain"),
    World("noisy", noise=0.5),
    World("quiet", noise=0.01),
    World("one cluster", clusters=1),
    World("no clusters", clusters=12),
    World("many users", users=60, clusters=6),
    World("one dimension", dim=1, clusters=2),
    World("odd dimension", dim=13, arms=5),
    World("many arms", arms=90),
    World("few fixed arms", pool=5, arms=5),
    World("pool", pool=40),
    World("clicks", rewards="clicks"),
    World("clicks from a pool", rewards="clicks", pool=25),
    World("ratings that repeat", rewards="ratings", pool=20),
    World("heavy tails", rewards="cauchy", noise=0.05),
    World("offset", offset=5.0),
    World("one wild reward", wild=100.0),
    World("jumps", jumps=150),
    World("units", units=True),
    World("joining", joining=True),
    World("joining with clicks", joining=True, rewards="clicks"),
    World("growing bonus", growing=True),
    World("late rewards", feedback="late"),
    World("lists", feedback="lists", rewards="clicks"),
    World("pairs", feedback="pairs"),
    World("two users", users=2, clusters=2, dim=3),
)


class Play:
    """One policy in one world; everything random comes from the world's own generator."""

    def __init__(self, policy_name: str, world: World) -> None:
        self.world, self.rng = world, np.random.default_rng(WORLDS.index(world) + 1)
        self.labels: Ints = self.rng.integers(world.clusters, size=world.users)
        self.labels[: world.clusters] = np.arange(world.clusters)
        self.centres = self._preferences()
        self.pool = self._arms(world.pool) if world.pool else None
        self.start = world.users // 2 if world.joining else world.users
        self.policy = self._make(policy_name)
        self.hash = hashlib.sha256()

    def _preferences(self) -> Floats:
        drawn = self.rng.normal(size=(self.world.clusters, self.world.dim))
        return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))

    def _arms(self, n: int) -> Floats:
        drawn = self.rng.normal(size=(n, self.world.dim))
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        if self.world.units:
            drawn *= 10.0 ** np.arange(self.world.dim)
        return np.asarray(drawn)

    def _make(self, name: str) -> Any:
        taken = signature(getattr(coterie, name)).parameters
        labels = self.labels[: self.start]
        explore = 5 * self.start
        confidence = coterie.Tuned(alpha=15 * self.world.noise, beta=0.2, explore=explore, phase=4)
        offered: dict[str, Any] = {
            "confidence": confidence,
            "labels": labels,
            "graph": (labels[:, None] == labels) * (1.0 - np.eye(self.start)),
            "seed": 7,
        }
        if self.world.growing:
            offered["growing"] = True
        given = {one: value for one, value in offered.items() if one in taken}
        return getattr(coterie, name)(self.start, self.world.dim, **given)

    def reward(self, user: int, x: Floats, t: int) -> float:
        scales = 10.0 ** np.arange(self.world.dim) if self.world.units else 1.0
        mean = float((x / scales) @ self.centres[self.labels[user]])
        if self.world.rewards == "clicks":
            return float(self.rng.random() < 0.5 + 0.5 * mean)
        if self.world.rewards == "ratings":
            return round(2.0 * mean) / 2.0
        drawn = self.rng.standard_cauchy() if self.world.rewards == "cauchy" else self.rng.normal()
        extra = self.world.wild if t == 50 else 0.0
        return mean + self.world.noise * float(drawn) + self.world.offset + extra

    def note(self, *values: Any) -> None:
        for value in values:
            self.hash.update(np.ascontiguousarray(value).tobytes())

    def rounds(self) -> Iterator[tuple[int, int, Floats]]:
        for t in range(ROUNDS):
            if self.world.jumps and t and t % self.world.jumps == 0:
                self.centres = self._preferences()
            if self.policy.n_users < self.world.users and t % 20 == 19:
                new = self.policy.n_users
                known = "labels" in signature(getattr(coterie, self.policy.name)).parameters
                self.note(self.policy.add_users(1, labels=self.labels[new : new + 1] if known else None))
            arms = self._arms(self.world.arms) if self.pool is None else self._offered()
            yield t, int(self.rng.integers(self.policy.n_users)), arms

    def _offered(self) -> Floats:
        assert self.pool is not None
        return np.asarray(self.pool[self.rng.permutation(len(self.pool))[: self.world.arms]])

    def play(self) -> str:
        late: list[tuple[int, Floats, float]] = []
        for t, user, arms in self.rounds():
            if self.world.feedback == "pairs":
                first, second = self.policy.recommend_pair(user, arms)
                self.note(first, second)
                won = self.reward(user, arms[first], t) >= self.reward(user, arms[second], t)
                pair = (first, second) if won else (second, first)
                self.policy.update_pair(user, arms[pair[0]], arms[pair[1]])
                continue
            if self.world.feedback == "lists":
                shown = self.policy.recommend_list(user, arms, 3)
                self.note(shown)
                clicks = [k for k, arm in enumerate(shown) if self.reward(user, arms[arm], t) > 0.5]
                self.policy.update_list(user, arms[shown], clicks[0] if clicks else None)
                continue
            arm = self.policy.recommend(user, arms)
            self.note(arm)
            late.append((user, arms[arm], self.reward(user, arms[arm], t)))
            if self.world.feedback == "one":
                self.policy.update(*late.pop())
            elif t % 7 == 6:
                users, xs, rewards = zip(*(late.pop(k) for k in range(len(late) - 1, 0, -2)), strict=True)
                self.policy.update_many(users, xs, rewards)
        self.conclude()
        return self.hash.hexdigest()[:16]

    def conclude(self) -> None:
        """What the policy holds at the end, and the next decisions of a copy."""
        self.note(self.policy.labels(), self.policy.estimates, self.policy.pulls, self.policy.rounds)
        copy, arms = pickle.loads(pickle.dumps(self.policy)), self._arms(20)
        for user in range(self.policy.n_users):
            self.note(*self.policy.scores(user, arms), copy.recommend(user, arms))


def played(case: tuple[str, World]) -> tuple[str, str]:
    """The key and the hash of one run."""
    name, world = case
    return f"{name} · {world.name}", Play(name, world).play()


def main() -> int:
    """Play everything, write the hashes, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="file to write the hashes to")
    parser.add_argument("--against", type=Path, help="file of an earlier run to compare with")
    options = parser.parse_args()
    cases = [(name, world) for name in REGISTRY for world in WORLDS]
    with ProcessPoolExecutor() as pool:
        found = dict(pool.map(played, cases, chunksize=4))
    options.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    whole = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]
    print(f"{len(REGISTRY)} policies in {len(WORLDS)} worlds, {ROUNDS} rounds each: {whole}")
    if options.against is None:
        return 0
    before = json.loads(options.against.read_text(encoding="utf-8"))
    other = sorted(key for key in before if before[key] != found.get(key))
    print(*(f"differs: {key}" for key in other), sep="\n" if other else "")
    print(f"{len(before) - len(other)} of {len(before)} the same")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
