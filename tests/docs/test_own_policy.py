"""The page "Write your own policy" keeps its word: its policy is short, learns, and plays beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from coterie.types import Floats
from docs.pages import DOCS, PYTHON, read

PAGE = DOCS / "how-to" / "own-policy.md"
ROUNDS = 2_000


class UniformPlay:
    """Draws an arm, learns nothing."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def recommend(self, user: int, arms: Floats) -> int:
        return int(self.rng.integers(len(arms)))

    def update(self, user: int, x: Floats, reward: float) -> None:
        pass


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page has defined after its last block."""
    text = read(PAGE)
    found: dict[str, Any] = {}
    for block in PYTHON.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), found)
    return found


@pytest.fixture(scope="module")
def regrets(names: dict[str, Any]) -> dict[str, dict[int, float]]:
    """The regret of each policy of `simulate_many`, by seed."""
    found: dict[str, dict[int, float]] = {}
    for trace in names["traces"]:
        assert int(trace.rounds[-1]) == ROUNDS
        found.setdefault(trace.policy, {})[trace.seed] = float(trace.regret[-1])
    return found


def test_the_policy_takes_at_most_15_lines() -> None:
    block = next(b for b in PYTHON.findall(read(PAGE)) if "class EpsilonGreedy:" in b)
    body = block[block.index("class EpsilonGreedy:") :]
    assert sum(bool(line.strip()) for line in body.splitlines()) <= 15


def test_the_policy_of_the_page_is_a_policy(names: dict[str, Any]) -> None:
    assert isinstance(names["EpsilonGreedy"](2, 3), coterie.Policy)


def test_both_policies_play_the_same_seeds(regrets: dict[str, dict[int, float]]) -> None:
    assert list(regrets) == ["EpsilonGreedy", "AutoCLUB"]
    assert [sorted(by_seed) for by_seed in regrets.values()] == [[0, 1], [0, 1]]


def test_the_own_policy_learns(names: dict[str, Any], regrets: dict[str, dict[int, float]]) -> None:
    for seed, regret in regrets["EpsilonGreedy"].items():
        env = names["make_env"](seed)
        uniform = coterie.simulate(UniformPlay(seed), env, ROUNDS).regret[-1]
        assert regret < 0.9 * uniform


def test_autoclub_needs_less_regret_on_the_way(regrets: dict[str, dict[int, float]]) -> None:
    for seed, regret in regrets["AutoCLUB"].items():
        assert 0 < regret < regrets["EpsilonGreedy"][seed]


def test_one_run_is_the_run_among_many(names: dict[str, Any], regrets: dict[str, dict[int, float]]) -> None:
    env = names["make_env"](1)
    policy = names["EpsilonGreedy"](env.n_users, env.dim, epsilon=0.1, seed=1)
    assert coterie.simulate(policy, env, ROUNDS).regret[-1] == regrets["EpsilonGreedy"][1]
