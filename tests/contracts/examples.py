"""A small policy of every kind in the registry, and what the contract's tests do with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import (
    CAB,
    CLUB,
    COFIBA,
    COLDB,
    FCLUBDC,
    LOCB,
    RCLUBWCU,
    RCLUMB,
    RSCLUMB,
    SACLUB,
    SASCLUB,
    SCLUB,
    SCLUB2019,
    AutoCLUB,
    CascadeLinUCB,
    CLUBCascade,
    CoDBand,
    DyClu,
    DynUCB,
    GOBLin,
    GraphUCB,
    HierTS,
    HierUCB,
    LinearBandit,
    LinTSInd,
    LinTSOne,
    LinTSOracle,
    LinUCBInd,
    LinUCBOne,
    LinUCBOracle,
    OffC2LUB,
    OffCLUB,
    PhaseUniCLUB,
    SmoothedTheory,
    Theory,
    Tuned,
    UniCLUB,
    UniSCLUB,
)
from coterie.policies import REGISTRY
from coterie.types import Floats, Ints
from inspection import state_arrays, state_numbers

TUNED = Tuned(alpha=0.4, beta=0.3, explore=12, phase=4, growth=1)
THEORY = Theory(horizon=1000, lambda_x=1e4, gamma=50.0, delta=0.5)
"""Eigenvalue and gap are absurdly large, so that exploration ends within a test."""
SMOOTHED = SmoothedTheory(horizon=1000, sigma=40.0, n_arms=5, truncation=0.1, delta=0.5)


class Make(NamedTuple):
    """Everything a test may want to choose about an example."""

    n_users: int = 6
    dim: int = 3
    ridge: float = 1.0
    seed: int = 7


def ring(n_users: int) -> Floats:
    """Users in a circle, the last one a stranger to all; one user has no friends."""
    graph = np.zeros((n_users, n_users))
    for i in range(n_users - 2):
        graph[i, i + 1] = graph[i + 1, i] = 1.0 + 0.5 * i
    return graph


def shelf(dim: int) -> Floats:
    """A catalogue of ten items."""
    return np.asarray(np.random.default_rng(3).normal(size=(10, dim)) / dim**0.5)


def halves(n_users: int) -> Ints:
    """True clusters: even and odd."""
    return np.arange(n_users) % 2


Maker = Callable[[Make], LinearBandit]

EXAMPLES: dict[str, Maker] = {
    "AutoCLUB": lambda m: AutoCLUB(m.n_users, m.dim, ridge=m.ridge, seed=m.seed),
    "LinUCBOne": lambda m: LinUCBOne(m.n_users, m.dim, beta=0.3, ridge=m.ridge, seed=m.seed),
    "LinUCBInd": lambda m: LinUCBInd(m.n_users, m.dim, beta=0.3, ridge=m.ridge, seed=m.seed),
    "LinUCBInd growing": lambda m: LinUCBInd(
        m.n_users, m.dim, beta=0.3, growing=True, ridge=m.ridge, seed=m.seed
    ),
    "LinUCBOracle": lambda m: LinUCBOracle(
        m.n_users, m.dim, labels=halves(m.n_users), beta=0.3, ridge=m.ridge, seed=m.seed
    ),
    "LinTSOne": lambda m: LinTSOne(m.n_users, m.dim, beta=0.3, ridge=m.ridge, seed=m.seed),
    "LinTSInd": lambda m: LinTSInd(m.n_users, m.dim, beta=0.3, ridge=m.ridge, seed=m.seed),
    "LinTSOracle": lambda m: LinTSOracle(
        m.n_users, m.dim, labels=halves(m.n_users), beta=0.3, ridge=m.ridge, seed=m.seed
    ),
    "DynUCB": lambda m: DynUCB(m.n_users, m.dim, n_clusters=3, alpha=0.3, ridge=m.ridge, seed=m.seed),
    "CoDBand": lambda m: CoDBand(
        m.n_users, m.dim, noise=0.1, shape=2.0, window=0, ridge=m.ridge, seed=m.seed
    ),
    "CoDBand changing": lambda m: CoDBand(
        m.n_users, m.dim, noise=0.02, concentration=1.0, window=3, ridge=m.ridge, seed=m.seed
    ),
    "DyClu": lambda m: DyClu(m.n_users, m.dim, window=0, ridge=m.ridge, seed=m.seed),
    "DyClu changing": lambda m: DyClu(
        m.n_users, m.dim, beta=0.3, noise=0.02, window=4, ridge=m.ridge, seed=m.seed
    ),
    "LOCB": lambda m: LOCB(m.n_users, m.dim, confidence=TUNED, n_seeds=3, ridge=m.ridge, seed=m.seed),
    "CAB": lambda m: CAB(m.n_users, m.dim, alpha=0.1, ridge=m.ridge, seed=m.seed),
    "COFIBA": lambda m: COFIBA(
        m.n_users, m.dim, catalogue=shelf(m.dim), alpha=0.1, beta=0.3, ridge=m.ridge, seed=m.seed
    ),
    "FCLUBDC": lambda m: FCLUBDC(
        m.n_users, m.dim, n_servers=2, alpha=0.4, beta=0.3, ridge=m.ridge, seed=m.seed
    ),
    "HierUCB": lambda m: HierUCB(m.n_users, m.dim, ridge=m.ridge, seed=m.seed),
    "HierUCB plain": lambda m: HierUCB(m.n_users, m.dim, intercept=False, ridge=m.ridge, seed=m.seed),
    "HierUCB growing": lambda m: HierUCB(m.n_users, m.dim, growing=True, ridge=m.ridge, seed=m.seed),
    "HierUCB given": lambda m: HierUCB(
        m.n_users,
        m.dim,
        noise=0.1,
        mean=np.zeros(m.dim + 1),
        covariance=np.eye(m.dim + 1),
        ridge=m.ridge,
        seed=m.seed,
    ),
    "HierTS": lambda m: HierTS(m.n_users, m.dim, ridge=m.ridge, seed=m.seed),
    "LinUCBOne items": lambda m: LinUCBOne(
        m.n_users, m.dim, beta=0.3, ridge=m.ridge, seed=m.seed, items=True
    ),
    "LinTSOne items": lambda m: LinTSOne(m.n_users, m.dim, beta=0.3, ridge=m.ridge, seed=m.seed, items=True),
    "DynUCB items": lambda m: DynUCB(
        m.n_users, m.dim, n_clusters=3, alpha=0.3, ridge=m.ridge, seed=m.seed, items=True
    ),
    "CLUB items": lambda m: CLUB(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed, items=True),
    "SCLUB items": lambda m: SCLUB(
        m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed, items=True
    ),
    "SCLUB2019 items": lambda m: SCLUB2019(
        m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed, items=True
    ),
    "CLUB": lambda m: CLUB(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "CLUB growing": lambda m: CLUB(
        m.n_users, m.dim, confidence=TUNED, growing=True, ridge=m.ridge, seed=m.seed
    ),
    "CLUB theory": lambda m: CLUB(m.n_users, m.dim, confidence=THEORY, ridge=m.ridge, seed=m.seed),
    "CascadeLinUCB": lambda m: CascadeLinUCB(m.n_users, m.dim, beta=0.3, ridge=m.ridge, seed=m.seed),
    "CLUBCascade": lambda m: CLUBCascade(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "OffC2LUB": lambda m: OffC2LUB(m.n_users, m.dim, gap=1.5, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "OffCLUB": lambda m: OffCLUB(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "SCLUB": lambda m: SCLUB(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "SCLUB arrivals": lambda m: SCLUB(
        m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed, arrivals=0.3
    ),
    "SCLUB2019": lambda m: SCLUB2019(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "SCLUB2019 arrivals": lambda m: SCLUB2019(
        m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed, arrivals=0.3
    ),
    "COLDB": lambda m: COLDB(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "RCLUBWCU": lambda m: RCLUBWCU(
        m.n_users, m.dim, confidence=TUNED, threshold=0.3, corruption=0.2, ridge=m.ridge, seed=m.seed
    ),
    "RCLUMB": lambda m: RCLUMB(
        m.n_users, m.dim, confidence=TUNED, misspecification=0.05, ridge=m.ridge, seed=m.seed
    ),
    "RSCLUMB": lambda m: RSCLUMB(
        m.n_users, m.dim, confidence=TUNED, misspecification=0.05, ridge=m.ridge, seed=m.seed
    ),
    "UniCLUB": lambda m: UniCLUB(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "UniCLUB theory": lambda m: UniCLUB(m.n_users, m.dim, confidence=THEORY, ridge=m.ridge, seed=m.seed),
    "PhaseUniCLUB": lambda m: PhaseUniCLUB(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "PhaseUniCLUB theory": lambda m: PhaseUniCLUB(
        m.n_users, m.dim, confidence=THEORY, ridge=m.ridge, seed=m.seed
    ),
    "UniSCLUB": lambda m: UniSCLUB(m.n_users, m.dim, confidence=TUNED, ridge=m.ridge, seed=m.seed),
    "UniSCLUB theory": lambda m: UniSCLUB(m.n_users, m.dim, confidence=THEORY, ridge=m.ridge, seed=m.seed),
    "SACLUB": lambda m: SACLUB(m.n_users, m.dim, confidence=SMOOTHED, ridge=m.ridge, seed=m.seed),
    "SASCLUB": lambda m: SASCLUB(m.n_users, m.dim, confidence=SMOOTHED, ridge=m.ridge, seed=m.seed),
    "GOBLin": lambda m: GOBLin(
        m.n_users, m.dim, graph=ring(m.n_users), alpha=0.3, ridge=m.ridge, seed=m.seed
    ),
    "GOBLin growing": lambda m: GOBLin(
        m.n_users, m.dim, graph=ring(m.n_users), alpha=0.3, growing=True, ridge=m.ridge, seed=m.seed
    ),
    "GraphUCB": lambda m: GraphUCB(
        m.n_users, m.dim, graph=ring(m.n_users), alpha=0.3, ridge=m.ridge, seed=m.seed
    ),
    "GraphUCB growing": lambda m: GraphUCB(
        m.n_users, m.dim, graph=ring(m.n_users), alpha=0.3, growing=True, ridge=m.ridge, seed=m.seed
    ),
}
"""By the policy's name, followed by the option that makes it a variant."""


def plain(name: str, m: Make) -> LinearBandit:
    """A policy with nothing but what it must be given."""
    offered: dict[str, Any] = {
        "confidence": TUNED,
        "labels": halves(m.n_users),
        "graph": ring(m.n_users),
        "catalogue": shelf(m.dim),
    }
    given = {key: value for key, value in offered.items() if key in REGISTRY[name].parameters}
    return REGISTRY[name].make(m.n_users, m.dim, **given, ridge=m.ridge, seed=m.seed)


EXAMPLES |= {name: partial(plain, name) for name in REGISTRY if name not in EXAMPLES}
ALL = sorted(EXAMPLES)
SAMPLING = [example for example in ALL if example.startswith(("LinTS", "HierTS", "CoDBand", "ItemTS"))]
"""Decisions of these are drawn, and no argmax of scores."""
FORGETTING = [example for example in ALL if example.endswith("changing")]
"""These forget what a user told before it changed."""
ORDERLY = [*FORGETTING, "CAB", "RCLUBWCU", "COLDB", "AutoCLUB"]
"""Users' own estimates depend on the order of rewards: CAB shares them, RCLUBWCU and COLDB weigh them,
AutoCLUB limits rewards by those that others have sent before."""
POPULARITY = ("ItemTS", "ItemUCB")
"""These know items alone: their estimates are 0 whatever they learn."""
EFFECTS = [
    example
    for example in ALL
    if example.startswith(("AutoCLUB", "Hier", *POPULARITY)) or example.endswith("items")
]
"""These learn effects of items."""
SCORING = [example for example in ALL if example not in SAMPLING]


def make(example: str, **wishes: Any) -> LinearBandit:
    """The example's policy, without data."""
    return EXAMPLES[example](Make()._replace(**wishes))


class World:
    """Arms and rewards: even and odd users want different things."""

    def __init__(self, dim: int, *, n_arms: int = 5, seed: int = 11) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_arms = n_arms
        self.tastes = self.rng.normal(size=(2, dim))

    def arms(self) -> Floats:
        arms = self.rng.normal(size=(self.n_arms, self.tastes.shape[1]))
        return np.asarray(arms / np.maximum(np.linalg.norm(arms, axis=1, keepdims=True), 1.0))

    def reward(self, user: int, x: Floats) -> float:
        return float(x @ self.tastes[user % 2] + 0.1 * self.rng.normal())


def play(policy: LinearBandit, rounds: int, *, seed: int = 11, n_arms: int = 5) -> list[int]:
    """Serve random users for so many rounds; the arms that were chosen."""
    world = World(policy.dim, n_arms=n_arms, seed=seed)
    chosen = []
    for _ in range(rounds):
        user, arms = int(world.rng.integers(policy.n_users)), world.arms()
        arm = policy.recommend(user, arms)
        policy.update(user, arms[arm], world.reward(user, arms[arm]))
        chosen.append(arm)
    return chosen


def feedback(policy: LinearBandit, rounds: int, *, seed: int = 5) -> tuple[Ints, Floats, Floats]:
    """Users, vectors and rewards that came from no decision of the policy."""
    world = World(policy.dim, n_arms=1, seed=seed)
    users = world.rng.integers(policy.n_users, size=rounds)
    xs = np.concatenate([world.arms() for _ in range(rounds)])
    return users, xs, np.array([world.reward(int(u), x) for u, x in zip(users, xs, strict=True)])


def grow(policy: LinearBandit, n: int) -> Ints:
    """Let n users join, with labels if the policy wants them; their numbers."""
    return policy.add_users(n, labels=np.arange(n) % 2 if "Oracle" in policy.name else None)


def past_exploration(policy: LinearBandit) -> LinearBandit:
    """The same policy after it has explored at first, and some further rounds."""
    play(policy, 60)
    while policy.exploring:
        play(policy, 7, seed=policy.rounds)
    return policy


Memory = dict[str, tuple[tuple[int, ...], str, bytes]]


def memory(policy: LinearBandit) -> Memory:
    """All that a policy remembers, bit for bit: its arrays, its numbers and its generator."""
    held = {n: (a.shape, a.dtype.str, a.tobytes()) for n, a in state_arrays(policy).items()}
    said = {name: repr(number) for name, number in state_numbers(policy).items()}
    said["generator"] = json.dumps(policy.generator.bit_generator.state)
    said["n_users"] = str(policy.n_users)
    return held | {name: ((), "", text.encode()) for name, text in said.items()}


def changed(before: LinearBandit | Memory, after: LinearBandit) -> list[str]:
    """The names of what differs between two memories."""
    old = memory(before) if isinstance(before, LinearBandit) else before
    new = memory(after)
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def is_one_sentence(error: BaseException) -> bool:
    """Is what an error says one line, not too long, and one sentence?"""
    said = str(error).replace("e.g. ", "")
    return 10 < len(said) <= 200 and "\n" not in said and ". " not in said and not said.endswith(".")
