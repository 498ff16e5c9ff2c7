from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.evaluation import Log, evaluate, read_log
from coterie.evaluation.estimates import passes
from coterie.evaluation.estimators import MEASURED, effective_size
from coterie.evaluation.passes import RewardModel, progressive_pass
from coterie.seeding import stream
from coterie.types import Floats
from evaluation import naive
from evaluation.worlds import MAKERS, example, logged, world


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_all_estimators_agree_with_plain_loops(name: str, share: float) -> None:
    log, make = logged(world(), 300, share), MAKERS[name]
    found = evaluate(log, {name: make}, resamples=10, seed=3)
    kept = naive.replay(log, make(log, 3), stream(3, "replay").random(len(log)))
    ips, snips = naive.ips(log, make(log, 3))
    assert found[name, "replay"].reward == pytest.approx(np.mean(kept), abs=1e-12)
    assert found[name, "replay"].effective == len(kept)
    assert found[name, "ips"].reward == pytest.approx(ips, abs=1e-12)
    assert found[name, "snips"].reward == pytest.approx(snips, abs=1e-12)
    assert found[name, "dr"].reward == pytest.approx(naive.doubly_robust(log, make(log, 3)), abs=1e-8)


def test_an_example_small_enough_for_paper() -> None:
    """Always the first arm: it was logged twice in four events, with rewards 1 and 0."""

    class First:
        def recommend(self, user: int, arms: Floats) -> int:
            return 0

        def update(self, user: int, x: Floats, reward: float) -> None:
            pass

    events: dict[str, Any] = {
        "user_ids": [7],
        "users": [0, 0, 0, 0],
        "items": np.eye(2),
        "offers": [0, 1] * 4,
        "starts": [0, 2, 4, 6, 8],
        "chosen": [0, 1, 0, 1],
        "propensities": [0.5, 0.5, 0.25, 0.5],
        "rewards": [1, 9, 0, 9],
        "times": [0, 1, 2, 3],
    }
    log = Log(**events)
    found = evaluate(log, {"first": lambda log, seed: First()}, estimators=("ips", "snips"), resamples=10)
    assert found["first", "ips"].reward == pytest.approx((1 / 0.5 + 0 / 0.25) / 4)
    assert found["first", "snips"].reward == pytest.approx((1 / 0.5) / (1 / 0.5 + 1 / 0.25))
    assert found["first", "ips"].effective == pytest.approx(6**2 / (2**2 + 4**2))
    assert found["(as logged)", "mean"].reward == pytest.approx(19 / 4)
    uniform = np.array([1.0, 1.0, 2.0, 1.0])
    assert found["(uniform play)", "snips"].reward == pytest.approx(uniform @ [1, 9, 0, 9] / uniform.sum())


def test_replay_of_a_uniform_log_counts_every_match() -> None:
    log = logged(world(), 400, 1.0)

    class Noted:
        def __init__(self) -> None:
            self.learnt: list[float] = []

        def recommend(self, user: int, arms: Floats) -> int:
            return 2

        def update(self, user: int, x: Floats, reward: float) -> None:
            self.learnt.append(reward)

    made: list[Noted] = []

    def make(log: Log, seed: int) -> Noted:
        made.append(Noted())
        return made[-1]

    found = evaluate(log, {"third": make}, estimators=["replay"], resamples=10)
    assert made[0].learnt == log.rewards[log.chosen == 2].tolist()
    assert found["third", "replay"].effective == np.count_nonzero(log.chosen == 2)


def test_ips_and_dr_ask_before_they_tell() -> None:
    log = logged(world(), 50, 0.5)
    calls: list[str] = []

    class Noted:
        def recommend(self, user: int, arms: Floats) -> int:
            calls.append("recommend")
            return 0

        def update(self, user: int, x: Floats, reward: float) -> None:
            calls.append("update")

    progressive_pass(log, Noted(), RewardModel(log.n_users, log.dim))
    assert calls == ["recommend", "update"] * 50


class Second:
    """Always the second arm."""

    def recommend(self, user: int, arms: Floats) -> int:
        return 1

    def update(self, user: int, x: Floats, reward: float) -> None:
        pass


def second(log: Log, seed: int) -> Second:
    return Second()


def test_a_constant_added_to_rewards_moves_snips_by_it() -> None:
    log = logged(world(), 500, 0.5)
    shifted = replace(log, rewards=log.rewards + 5)
    before, after = (evaluate(one, {"second": second}, estimators=["snips"]) for one in (log, shifted))
    assert after["second", "snips"].reward == pytest.approx(before["second", "snips"].reward + 5)


def test_the_same_seed_gives_the_same_numbers() -> None:
    log = logged(world(), 300, 0.5)
    one, two, other = (evaluate(log, MAKERS, resamples=50, seed=seed).estimates for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_a_single_arm_leaves_nothing_to_weigh() -> None:
    """K = 1: every propensity is 1, and every estimator gives the mean reward."""
    log = logged(world(arms=1), 200, 0.5)
    assert np.all(log.propensities == 1)
    found = evaluate(log, {"one": MAKERS["LinUCBInd"]}, resamples=50)
    for name in ("replay", "ips", "snips"):
        assert found["one", name].reward == pytest.approx(float(log.rewards.mean()))
    assert found.warnings == ()


def test_offers_may_differ_in_size() -> None:
    log = read_log(pl.DataFrame(example()))
    found = evaluate(log, {"second": second}, resamples=20)
    assert found["second", "ips"].reward == pytest.approx((0.5 / 0.25 + 1 / 0.5) / 4)


def test_a_log_of_certain_choices_is_refused_with_the_way_out() -> None:
    certain = replace(logged(world(), 100, 0.5), propensities=np.ones(100))
    for name in MEASURED:
        with pytest.raises(coterie.ArgumentError, match=r"propensity 1.* choose uniformly at random"):
            evaluate(certain, {"second": second}, estimators=[name])


def test_some_certain_choices_are_warned_of() -> None:
    log = logged(world(), 400, 0.5)
    partly = replace(log, propensities=np.where(np.arange(400) < 40, 1.0, log.propensities))
    (line, *_) = evaluate(partly, {"second": second}, resamples=10).warnings
    assert line.startswith("10.0% of the events have propensity 1 although several arms were on offer")


def test_propensities_that_do_not_fit_are_warned_of() -> None:
    log = logged(world(), 1000, 0.5)
    assert not evaluate(log, {"second": second}, resamples=10).warnings
    wrong = replace(log, propensities=np.full(1000, 0.9))
    (line,) = evaluate(wrong, {"second": second}, resamples=10).warnings
    assert "the mean of 1/(K·propensity) is 0.278" in line


def test_a_small_effective_sample_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    log = logged(world(), 100, 0.5)
    with caplog.at_level(logging.WARNING, "coterie.evaluation"):
        found = evaluate(log, {"second": second}, estimators=["snips"], resamples=10)
    size = found["second", "snips"].effective
    assert f"effective samples below 100 events: second snips ({size:.0f}); their intervals" in caplog.text
    assert caplog.messages == list(found.warnings)


def test_a_policy_that_never_matches_has_no_estimate() -> None:
    log = replace(logged(world(), 100, 1.0), chosen=np.zeros(100, np.int64))
    found = evaluate(log, {"second": second}, resamples=10)
    for name in ("replay", "ips", "snips"):
        assert np.isnan([found["second", name].reward, found["second", name].low]).all()
        assert found["second", name].effective == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"policies": {}}, "policies must map names"),
        ({"policies": {"second": 3}}, "policies must map names"),
        ({"estimators": []}, "at least one of replay, ips, snips, dr"),
        ({"estimators": ["IPW"]}, "no estimator 'IPW'; did you mean 'ips'"),
        ({"level": 95}, "level must lie strictly between 0 and 1, got 95"),
        ({"resamples": 0}, "resamples must be a whole number of at least 1"),
        ({"log": "log.csv"}, "log must come from read_log"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"log": read_log(pl.DataFrame(example())), "policies": {"second": second}}
    with pytest.raises((coterie.ArgumentError, coterie.UnknownName), match=sentence):
        evaluate(**{**given, **arguments})


@pytest.mark.parametrize("answer", [4, -1, 0.5, None])
def test_an_arm_that_was_not_offered_is_refused(answer: object) -> None:
    class Wrong(Second):
        def recommend(self, user: int, arms: Floats) -> Any:
            return answer

    with pytest.raises(coterie.ArgumentError, match="recommend must return a row number from 0 to"):
        evaluate(read_log(pl.DataFrame(example())), {"wrong": lambda log, seed: Wrong()})


def test_progress_counts_every_event_of_every_pass() -> None:
    log, counts = logged(world(), 600, 0.5), list[int]()
    evaluate(log, {"second": second}, resamples=10, advance=counts.append)
    assert sum(counts) == 600 * passes() == 1200
    assert passes(["ips", "dr"]) == passes(["replay"]) == 1


def test_the_effective_size_of_equal_weights_is_their_number() -> None:
    assert effective_size(np.array([3.0, 3.0, 0.0])) == 2
    assert effective_size(np.zeros(3)) == 0


def test_the_table_has_a_row_for_each_estimate_and_baseline() -> None:
    found = evaluate(logged(world(), 100, 1.0), {"second": second}, resamples=10)
    table = found.to_frame()
    assert table["estimator"].to_list() == [*MEASURED, "mean", "snips"]
    assert table.columns == ["policy", "estimator", "reward", "low", "high", "effective"]
    with pytest.raises(KeyError):
        found["second", "mean"]
