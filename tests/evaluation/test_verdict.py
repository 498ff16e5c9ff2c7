"""Estimated propensities, paired differences, and the sentence that they end in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coterie
from coterie.evaluation import Log, PairedDifference, evaluate
from coterie.evaluation.estimators import Terms
from coterie.evaluation.propensity_model import estimate_propensities
from coterie.evaluation.verdict import difference, verdict
from evaluation.worlds import MAKERS, logged, world


def softmax_log(n: int = 4000, *, personal: float = 0.0) -> Log:
    """Four of 30 arms a round, played by a softmax of a known score; rewards are noise."""
    rng = np.random.default_rng(7)
    items, tastes = rng.normal(size=(30, 3)), rng.normal(size=(8, 3))
    users = rng.integers(0, 8, n)
    offers = np.array([rng.choice(30, 4, replace=False) for _ in range(n)])
    scores = items[offers] @ np.array([1.0, -0.5, 0.0])
    scores += personal * np.einsum("tkd,td->tk", items[offers], tastes[users])
    scores[:, 0] += 0.7  # the first place is played more often
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    chosen = (rng.random((n, 1)) > np.cumsum(chances, axis=1)).sum(axis=1).clip(0, 3)
    return Log(
        user_ids=range(8),
        users=users,
        items=items,
        offers=offers.ravel(),
        starts=np.arange(n + 1) * 4,
        chosen=chosen,
        propensities=chances[np.arange(n), chosen],
        rewards=rng.normal(size=n),
        times=np.arange(float(n)),
    )


def test_estimated_propensities_are_those_of_a_logit() -> None:
    log = softmax_log()
    found = estimate_propensities(log)
    assert np.abs(found - log.propensities).mean() < 0.02
    assert (1 / (4 * found)).mean() == pytest.approx(1.0, abs=0.05)


def test_estimated_propensities_follow_what_users_were_played() -> None:
    log = softmax_log(personal=1.0)
    found = estimate_propensities(log)
    late = log.times > 2000
    assert np.corrcoef(found[late], log.propensities[late])[0, 1] > 0.85


def test_a_log_without_a_choice_has_no_propensities_to_estimate() -> None:
    log = replace(softmax_log(5), offers=np.arange(5), starts=np.arange(6), chosen=np.zeros(5, int))
    with pytest.raises(coterie.DataError, match="every event offers one arm"):
        estimate_propensities(log)


def test_differences_are_paired_by_event() -> None:
    rng = np.random.default_rng(1)
    shared = rng.normal(size=500)
    one, two = Terms(shared + 0.1, None, 500.0), Terms(shared + 0.02 * rng.normal(size=500), None, 500.0)
    gap, low, high = difference(one, two, level=0.95, resamples=300, rng=rng)
    assert gap == pytest.approx(0.1, abs=0.005)
    assert low > 0.09
    assert high < 0.11


def test_the_interval_of_a_ratio_is_that_of_many_logs() -> None:
    """SNIPS of two policies on 300 logs: the difference lies outside its 90 % interval about once in ten."""
    rng = np.random.default_rng(2)
    misses = 0
    for _ in range(300):
        pairs = [Terms(w * rng.normal(1.0, 1.0, 200), w, 1.0) for w in rng.exponential(size=(2, 200))]
        _, low, high = difference(pairs[0], pairs[1], level=0.9, resamples=200, rng=rng)
        misses += not low <= 0 <= high
    assert 15 <= misses <= 50


def test_every_policy_is_compared_with_the_log_and_the_first_with_each() -> None:
    found = evaluate(logged(world(), 600, 0.5), MAKERS, estimators=("ips", "dr"), resamples=50)
    pairs = [(one.policy, one.versus) for one in found.differences if one.estimator == "dr"]
    logged_ones = [(name, "(as logged)") for name in MAKERS]
    assert pairs == [*logged_ones, ("AutoCLUB", "LinUCBInd"), ("AutoCLUB", "LinTSOne")]
    for one in found.differences:
        versus = (
            found["(as logged)", "mean"] if one.versus == "(as logged)" else found[one.versus, one.estimator]
        )
        assert one.difference == pytest.approx(found[one.policy, one.estimator].reward - versus.reward)
    assert found.verdict.startswith("Verdict (dr): AutoCLUB ")


def test_a_policy_beside_itself_cannot_be_told_apart() -> None:
    both = dict.fromkeys(("one", "two"), MAKERS["LinUCBInd"])
    found = evaluate(logged(world(), 300, 0.5), both, estimators=("snips",), resamples=50)
    assert "cannot be told apart from two (0 more, 95% interval 0 to 0)" in found.verdict


@pytest.mark.parametrize(
    ("gap", "clause"),
    [
        (
            (0.5, 0.1, 0.9),
            "CLUB earns 0.5 more a decision than the logging policy (90% interval 0.1 to 0.9).",
        ),
        ((-0.5, -0.9, -0.1), "CLUB earns 0.5 less a decision than the logging policy"),
        ((-0.5, -0.9, 0.1), "CLUB cannot be told apart from the logging policy (0.5 less, 90%"),
        ((float("nan"),) * 3, "CLUB has too few events to be compared with the logging policy."),
    ],
)
def test_the_verdict_says_which_and_by_how_much(gap: tuple[float, float, float], clause: str) -> None:
    sentence = verdict([PairedDifference("CLUB", "(as logged)", "replay", *gap)], 0.9)
    assert sentence.startswith(f"Verdict (replay): {clause}")


def test_a_verdict_needs_a_difference() -> None:
    assert verdict([], 0.95) == ""
