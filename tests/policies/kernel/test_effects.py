"""Effects alone: what is learnt, what is not, and what a table holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coterie.policies.kernel.effects import MOST_KEYS, Effects
from coterie.types import Floats


def taught(
    n: int, items: int, tau: float, *, sigma: float = 1.0, mean: float = 0.0, seed: int = 0
) -> tuple[Effects, Floats]:
    """Effects learnt from n residuals of items drawn uniformly."""
    rng = np.random.default_rng(seed)
    true, effects = tau * rng.normal(size=items), Effects(explored=0.25)
    for item in rng.integers(items, size=n).tolist():
        effects.learn(item, mean + true[item] + sigma * rng.normal())
    return effects, true


@pytest.mark.parametrize("mean", [0.0, 50.0])
def test_the_variance_and_the_effects_are_found(mean: float) -> None:
    effects, true = taught(8000, 200, 0.5, mean=mean)
    assert effects.variance == pytest.approx(0.25, rel=0.3)
    assert effects.shrinkage == pytest.approx(4.0, rel=0.3)
    assert effects.mean == pytest.approx(mean, abs=0.1)
    found = np.array([effects.effect(item)[0] for item in range(200)])
    assert np.sqrt(np.mean((found - true) ** 2)) < 0.25  # 1/√(40 + 4) is 0.15


def test_an_unknown_item_has_no_effect_and_the_greatest_doubt() -> None:
    effects, _ = taught(4000, 100, 1.0)
    mean, variance, share = effects.effect(10**15)
    assert mean == share == 0.0
    assert variance == pytest.approx(0.25**2 / effects.shrinkage)
    assert all(effects.effect(item)[1] < variance for item in range(100))


def test_noise_alone_is_no_effect() -> None:
    on = 0
    for seed in range(20):
        effects, _ = taught(3000, 50, 0.0, seed=seed)
        on += effects.variance > 0
    assert on <= 1


def test_one_wild_reward_makes_no_effect() -> None:
    effects, _ = taught(2000, 50, 0.0, seed=1)
    effects.learn(3, 1e9)
    assert effects.variance == 0.0
    assert abs(effects.array("sums")).max() < 200
    effects, _true = taught(4000, 50, 1.0, seed=2)
    before = effects.effect(3)[0]
    effects.learn(3, 1e99)
    assert effects.variance > 0.5
    assert abs(effects.effect(3)[0] - before) < 0.5


def test_the_first_click_after_nothing_but_zeros_counts() -> None:
    effects = Effects()
    for item in range(100):
        effects.learn(item, 0.0)
    effects.learn(7, 1.0)
    assert effects.numbers()["squares"] > 0.5


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_that_overflow_leave_finite_sums(wrong: float) -> None:
    effects = Effects()
    for item in (1, 1, 2, 1):
        effects.learn(item, wrong, 0.0, 0.0)
    effects.learn(1, 0.5, 0.0, np.inf if wrong == 1e300 else 1.0)
    assert all(np.isfinite(value) for value in effects.numbers().values()) or wrong == 1e300
    assert np.isfinite(effects.array("weights")).all() or wrong == 1e300


def test_a_table_grows_and_loses_no_item() -> None:
    effects, ids = Effects(), (np.arange(3000) * 7919 + 2**61).tolist()
    for k, item in enumerate(ids):
        effects.learn(item, float(k))
    assert effects.used == 3000
    assert effects.forgettable == 0
    kept = effects.array("keys")
    assert sorted(kept[kept != 0].tolist()) == [item + 1 for item in ids]
    assert 2 * effects.used <= len(kept) <= 4 * effects.used


def test_vectors_are_bounded_and_ids_are_not() -> None:
    effects, rng = Effects(most_keys=64), np.random.default_rng(0)
    often = rng.normal(size=(10, 3))
    for k in range(500):
        effects.learn(often[k % 10], 1.0)
        effects.learn(rng.normal(size=3), 0.0)
        effects.learn(k, 0.0)
        assert effects.forgettable <= 64
    assert effects.used - effects.forgettable == 500
    weights = effects.array("weights")[effects.array("keys") < 0]
    assert (weights > 5).sum() == 10  # those that come often stay
    for k in range(300):  # if more than half come often, all go
        effects.learn(np.array([k % 60, 0.0, 1.0]), 0.0)
        assert effects.forgettable <= 64
    assert MOST_KEYS == 2**18


def test_minus_zero_is_zero_and_ids_are_no_vectors() -> None:
    effects = Effects()
    effects.learn(np.array([0.0, 1.0]), 1.0)
    effects.learn(np.array([-0.0, 1.0]), 1.0)
    assert effects.used == 1
    effects.learn(0, 1.0)
    assert effects.used == 2


def restored(effects: Effects, numbers: dict[str, Any] | None = None, **arrays: Any) -> Effects:
    """A table that takes over the state of another, with some of it replaced."""
    held = {**effects.arrays(), **arrays}
    twin = Effects(explored=0.25)

    def fill(name: str, out: Any) -> None:
        out[...] = held[name]

    twin.restore(fill, {**effects.numbers(), **(numbers or {})})
    return twin


def test_a_state_is_taken_over_whole() -> None:
    effects, _ = taught(3000, 100, 1.0)
    twin = restored(effects)
    assert twin.numbers() == effects.numbers()
    assert [twin.effect(item) for item in range(101)] == [effects.effect(item) for item in range(101)]
    small, _ = taught(3, 3, 1.0)
    assert restored(small).used == small.used


def test_states_that_contradict_themselves_are_refused() -> None:
    effects, _ = taught(300, 20, 1.0)
    held = effects.arrays()
    keys, weights = held["keys"], held["weights"]
    place = int(np.flatnonzero(keys)[0])
    twice, moved, weightless = keys.copy(), np.roll(keys, 1), weights.copy()
    twice[np.flatnonzero(keys)[1]] = keys[place]
    weightless[place] = 0.0
    stray = weights.copy()
    stray[keys == 0] = 1.0
    wrong: list[dict[str, Any]] = [
        {"keys": twice},
        {"keys": moved, "weights": np.roll(weights, 1), "sums": np.roll(held["sums"], 1)},
        {"keys": np.full(len(keys), 5)},
        {"keys": np.zeros_like(keys)},
        {"weights": weightless},
        {"weights": stray},
        {"weights": -weights},
        {"sums": np.ones(len(keys))},
        *(
            {"numbers": {name: -1}}
            for name in ("used", "forgettable", "compared", "squares", "agreement2", "weight")
        ),
        {"numbers": {"used": 3}},
        {"numbers": {"forgettable": 1}},
    ]
    for one in wrong:
        with pytest.raises(ValueError, match="has "):
            restored(effects, **one)
