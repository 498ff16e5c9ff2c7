"""Attackers with accounts of their own: what they cost honest users of a policy.

    python -m benchmarks.attacks [--policy NAME] [--seeds N] [ATTACK ...]

50 honest users and 20 arms, σ = 0.1, 5,000 rounds of honest users, in three worlds: d = 10 with 10 clusters,
d = 20 with 10 clusters, d = 10 with 2 clusters. Attackers send rewards for vectors of their choice beside the
rounds of others; they never ask for a decision. A cell is the regret of honest users divided by that without
attackers. `benchmarks.poison` has users who lie about the arms they are shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import coterie
from benchmarks.timing import Table
from coterie.types import Floats

USERS, ARMS, SIGMA, HORIZON = 50, 20, 0.1, 5_000
WORLDS = {"d = 10, 10 clusters": (10, 10), "d = 20, 10 clusters": (20, 10), "d = 10, 2 clusters": (10, 2)}
POLICIES = {"AutoCLUB": coterie.AutoCLUB, "HierUCB": coterie.HierUCB, "HierTS": coterie.HierTS}
"""Those without constants to tune."""
Sent = tuple[int, Floats, float]
"""Number of the attacker, vector and reward."""


class Scene(NamedTuple):
    """What attackers know: the round, the preferences of clusters, and random numbers of their own."""

    turn: int
    preferences: Floats
    rng: np.random.Generator

    def vector(self) -> Floats:
        return unit_rows(self.rng, 1, self.preferences.shape[1]).ravel()

    def sign(self) -> float:
        return float(self.rng.choice([-1.0, 1.0]))


class Attack(NamedTuple):
    """The number of attackers, and what they send after a round."""

    attackers: int
    send: Callable[[Scene], Iterator[Sent]]


def unit_rows(rng: np.random.Generator, n: int, d: int) -> Floats:
    rows = rng.normal(size=(n, d))
    unit: Floats = rows / np.linalg.norm(rows, axis=1)[:, None]
    return unit


def unlike_columns(scene: Scene) -> Iterator[Sent]:
    if scene.turn == 10:
        yield 0, 10.0 ** np.linspace(0.0, 5.0, scene.preferences.shape[1]), 1.0


def long_vector(scene: Scene) -> Iterator[Sent]:
    if scene.turn == 5:
        yield 0, 1e4 * np.eye(scene.preferences.shape[1])[0], 1.0


def sleepers(n: int) -> Attack:
    """Honest for 100 rewards, then false ones of great size for 12, then silent."""

    def send(scene: Scene) -> Iterator[Sent]:
        if scene.turn % 10 or scene.turn >= 1_120:
            return
        for attacker in range(n):
            x = scene.vector()
            honest = float(x @ scene.preferences[0])
            false = -1e3 * float(np.sign(honest))
            yield attacker, x, honest + SIGMA * scene.rng.normal() if scene.turn < 1_000 else false

    return Attack(n, send)


def three_and_silence(scene: Scene) -> Iterator[Sent]:
    if scene.turn in (50, 60, 70):
        yield 0, scene.vector(), 1e6 * scene.sign()


def bot(scene: Scene) -> Iterator[Sent]:
    """Without noise, as often as all others together: whoever pools residuals takes rewards for exact."""
    x = scene.vector()
    yield 0, x, float(x @ scene.preferences[0])


def three_each(scene: Scene) -> Iterator[Sent]:
    if scene.turn % 10 == 5 and scene.turn < 1_500:
        yield scene.turn // 10 % 50, scene.vector(), scene.sign()


def each_in_fifty(reward: Callable[[Scene, int, Floats], float]) -> Attack:
    """Five attackers who send as often as honest users give rewards."""

    def send(scene: Scene) -> Iterator[Sent]:
        if scene.turn % 50 == 25:
            for attacker in range(5):
                x = scene.vector()
                yield attacker, x, reward(scene, attacker, x)

    return Attack(5, send)


ATTACKS = {
    "a vector of unlike columns": Attack(1, unlike_columns),
    "a long vector": Attack(1, long_vector),
    "a sleeper": sleepers(1),
    "five sleepers": sleepers(5),
    "three rewards and silence": Attack(1, three_and_silence),
    "a bot without noise": Attack(1, bot),
    "50 with three rewards each": Attack(50, three_each),
    "five inverted": each_in_fifty(lambda scene, k, x: -float(x @ scene.preferences[k % 2])),
    "five at random, sd 1,000": each_in_fifty(lambda scene, k, x: 1e3 * scene.rng.normal()),
    "five at random, ± 1,000": each_in_fifty(lambda scene, k, x: 1e3 * scene.sign()),
}


def honest_regret(
    make: Callable[[int, int], coterie.Policy], world: str, seed: int, attack: Attack | None
) -> float:
    """Regret of honest users; the rounds are the same with and without attackers."""
    d, clusters = WORLDS[world]
    rng, own = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    preferences = unit_rows(rng, clusters, d)
    policy = make(USERS + (attack.attackers if attack else 0), d)
    regret = 0.0
    for turn in range(HORIZON):
        user, arms, noise = int(rng.integers(USERS)), unit_rows(rng, ARMS, d), SIGMA * rng.normal()
        means = arms @ preferences[user % clusters]
        arm = policy.recommend(user, arms)
        policy.update(user, arms[arm], float(means[arm] + noise))
        regret += float(means.max() - means[arm])
        for attacker, x, reward in attack.send(Scene(turn, preferences, own)) if attack else ():
            policy.update(USERS + attacker, x, reward)
    return regret


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.attacks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("attack", nargs="*", metavar="ATTACK", help="all by default")
    parser.add_argument("--policy", default="AutoCLUB", choices=POLICIES, help="default AutoCLUB")
    parser.add_argument("--seeds", type=int, default=5, help="seeds from 0 on, default 5")
    given = parser.parse_args()
    if unknown := [name for name in given.attack if name not in ATTACKS]:
        parser.error(f"no attack {unknown[0]!r}; there are: {', '.join(ATTACKS)}")
    seeds, make = range(given.seeds), POLICIES[given.policy]
    without = {world: np.mean([honest_regret(make, world, seed, None) for seed in seeds]) for world in WORLDS}
    rows = []
    for name in given.attack or ATTACKS:
        found = {
            world: np.mean([honest_regret(make, world, seed, ATTACKS[name]) for seed in seeds])
            for world in WORLDS
        }
        rows.append((name, *(f"{found[world] / without[world]:.2f}" for world in WORLDS)))
    Table(f"Regret of honest users of {given.policy}, as a multiple", ("attack", *WORLDS), rows).show()


if __name__ == "__main__":
    main()
