"""Logs of `user, item, reward`: the offers that are drawn for them, and what can be estimated then."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.evaluation import evaluate, read_log
from coterie.policies.protocols import Policy
from coterie.types import Floats

VECTORS = np.random.default_rng(1).normal(size=(40, 3))
CHANCES = 1.0 / (1.0 + np.exp(-VECTORS[:, 0]))
"""The probability of a click on each item."""


def table(n: int = 4000, *, weights: Floats | None = None, **changes: Any) -> pl.DataFrame:
    """Clicks of 10 users on items that were drawn with these weights."""
    rng = np.random.default_rng(2)
    items = rng.choice(40, n, p=weights)
    rows = {
        "user": rng.integers(0, 10, n),
        "item": items,
        "reward": (rng.random(n) < CHANCES[items]).astype(int),
    }
    return pl.DataFrame({**rows, **changes})


class Ranked:
    """A policy that learns nothing and prefers the largest first feature."""

    def recommend(self, user: int, arms: Floats) -> int:
        return int(np.argmax(arms[:, 0]))

    def update(self, user: int, x: Floats, reward: float) -> None: ...


def ranked(log: object, seed: int) -> Policy:
    return Ranked()


def test_each_decision_is_among_the_item_played_and_different_others() -> None:
    rows = table()
    log = read_log(rows, items=VECTORS, uniform=True, n_arms=7)
    offered = log.offers.reshape(-1, 7)
    assert all(len(set(offer)) == 7 for offer in offered.tolist())
    played = offered[np.arange(len(log)), log.chosen]
    assert np.array_equal(VECTORS[rows["item"].to_numpy()], log.items[played])
    assert log.catalogue_size == 40
    # The place of what was played, and what stands beside it, say nothing about it.
    assert np.bincount(log.chosen, minlength=7) == pytest.approx(4000 / 7, rel=0.15)
    assert np.bincount(log.item_of[offered].ravel(), minlength=40) == pytest.approx(700, rel=0.15)


def test_uniform_logs_without_offers_are_unbiased_for_random_offers() -> None:
    log = read_log(table(20_000), items=VECTORS, uniform=True, n_arms=5)
    found = evaluate(log, {"ranked": ranked}, resamples=200)
    offers = np.random.default_rng(3).permuted(np.tile(np.arange(40), (20_000, 1)), axis=1)[:, :5]
    best = offers[np.arange(20_000), np.argmax(VECTORS[offers, 0], axis=1)]
    truth = float(CHANCES[best].mean())
    for name in ("replay", "ips", "snips", "dr"):
        assert found["ranked", name].reward == pytest.approx(truth, abs=0.03)
    assert any("does not say what was offered" in line for line in found.warnings)


def test_without_propensities_only_a_model_answers_and_says_so() -> None:
    weights = CHANCES**3 / np.sum(CHANCES**3)
    log = read_log(table(weights=weights), items=VECTORS)
    assert not log.has_propensities
    assert "propensities unknown" in repr(log)
    found = evaluate(log, {"ranked": ranked, "other": ranked}, resamples=50)
    assert [one.estimator for one in found.estimates] == ["model"] * 2
    assert [one.policy for one in found.baselines] == ["(as logged)"]
    assert any("replay, ips, snips and dr cannot be estimated" in line for line in found.warnings)
    assert any("model is a prediction, no measurement" in line for line in found.warnings)
    assert found.verdict.startswith("Verdict (model, a prediction and no measurement): ranked earns")
    offers = log.offers.reshape(-1, 20)
    best = offers[np.arange(len(log)), np.argmax(log.items[offers, 0], axis=1)]
    clicks = 1.0 / (1.0 + np.exp(-log.items[best, 0]))
    assert found["ranked", "model"].reward == pytest.approx(float(clicks.mean()), abs=0.08)
    with pytest.raises(coterie.ArgumentError, match="the log has no propensities, so ips, dr cannot be"):
        evaluate(log, {"ranked": ranked}, estimators=("ips", "dr"))


def test_a_model_that_predicts_nothing_is_said_to_tell_nothing() -> None:
    rng = np.random.default_rng(4)
    log = read_log(table(300, reward=rng.normal(size=300)), items=VECTORS)
    found = evaluate(log, {"ranked": ranked}, resamples=20)
    assert any("explains 0% of the variance" in line and "tell nothing" in line for line in found.warnings)


def test_propensities_among_all_items_make_all_items_the_offer() -> None:
    log = read_log(table(100).with_columns(propensity=pl.lit(1 / 40)), items=VECTORS)
    assert log.sizes.tolist() == [40] * 100
    assert log.propensities.tolist() == [1 / 40] * 100


def test_few_items_need_no_vectors() -> None:
    log = read_log(table(), uniform=True, n_arms=4)
    assert (log.dim, log.catalogue_size) == (40, 40)
    many = table(item=np.arange(4000))
    with pytest.raises(coterie.ArgumentError, match=r"4,000 items and no vectors.*--items"):
        read_log(many)


def test_the_item_played_finds_its_place_among_the_arms() -> None:
    rows = {
        "user": [1, 1],
        "arms": [[3, 5], [5, 7]],
        "item": [5, 5],
        "reward": [0, 1],
        "propensity": [0.5, 0.5],
    }
    log = read_log(pl.DataFrame(rows), items=VECTORS)
    assert log.chosen.tolist() == [1, 0]
    with pytest.raises(coterie.DataError, match=r"event 1 \(from 0\): item 3 is not among the arms on offer"):
        read_log(pl.DataFrame({**rows, "item": [5, 3]}), items=VECTORS)


@pytest.mark.parametrize(
    ("changes", "options", "sentence"),
    [
        ({"item": [50] * 9}, {}, r"event 0 \(from 0\): item 50 has no vector in the table of items"),
        ({"item": [None] * 9}, {}, r"event 0 \(from 0\): item must be a whole number or text, got nothing"),
        ({}, {"n_arms": 41}, "n_arms must be at most 40, got 41"),
        ({"propensity": [0.1] * 9}, {"n_arms": 3}, "n_arms has no effect beside propensities"),
        ({"propensity": [0.1] * 9}, {"uniform": True}, "uniform is for logs without propensities"),
        (
            {"arms": [[0, 1]] * 9, "arm": [0] * 9},
            {"n_arms": 3},
            "n_arms is for a log without a column 'arms'",
        ),
        ({"arms": [[0, 1]] * 9, "arm": [0] * 9}, {"columns": {"item": "item"}}, "item has no effect beside"),
    ],
)
def test_what_has_no_effect_or_no_vector_is_refused(
    changes: dict[str, Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(coterie.CoterieError, match=sentence):
        read_log(table(9, **changes), items=VECTORS, **options)


def test_a_log_that_was_not_recorded_whole_is_not_saved(tmp_path: Any) -> None:
    with pytest.raises(coterie.ArgumentError, match="only a log with recorded offers and propensities"):
        read_log(table(9), items=VECTORS).save(tmp_path / "log.parquet")


def test_equal_rewards_are_refused() -> None:
    log = read_log(table(9, reward=[1] * 9), items=VECTORS)
    with pytest.raises(coterie.ArgumentError, match="every reward is 1, so there is nothing to compare"):
        evaluate(log, {"ranked": ranked})
