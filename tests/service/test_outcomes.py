"""Counts of decisions and rewards: the same as counting the log, in any order of events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import Recommender
from coterie.service.core.confidence_sequence import ArmSums
from coterie.service.core.outcomes import ExperimentOutcomes, Outcomes, Settled
from inspection import abandon, live_of, never_keep_house, pass_time, take_snapshot
from service.shops import shop


@pytest.fixture(autouse=True)
def _time_passes_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    never_keep_house(monkeypatch)


def outcomes_of(one: Recommender) -> Outcomes:
    """What the decisions of a shop have brought."""
    return live_of(one).state.outcomes


def test_sums_over_users_are_those_of_their_decisions_and_rewards() -> None:
    rng = np.random.default_rng(3)
    found, users = ExperimentOutcomes(), [[0, 0.0] for _ in range(9)]
    for _ in range(400):
        who, kind = int(rng.integers(9)), int(rng.integers(-1, 2))
        count = kind if users[who][0] + kind >= 0 else 1
        reward = float(rng.normal())
        users[who][0] += count
        users[who][1] += reward
        found.settle(Settled(0.0, f"u{who}", False, "spring", count, reward))
    n, r = np.array(users).T
    expected = ArmSums((n > 0).sum(), n.sum(), r.sum(), 0.0, n @ n, n @ r, r @ r)
    assert found.sums._replace(squares=0.0) == pytest.approx(expected)


@pytest.mark.parametrize("default", [0.0, 0.25, None])
@pytest.mark.parametrize("late", ["accept", "ignore", "correct"])
def test_counts_are_those_of_the_log_whatever_comes_when(default: float | None, late: str) -> None:
    one = shop(reward_wait=60, default_reward=default, late=late)
    rewarded, parts, late_one, *_ = (one.decide("alice", ["tea"]).id for _ in range(5))
    one.reward(rewarded, 1.0)
    for part, value in (("click", 0.1), ("purchase", 0.5)):
        one.reward(parts, value, part=part)
    pass_time(one, 61)
    one.expire()
    one.reward(late_one, 0.75)
    one.decide("bob", ["coffee"])
    counts = outcomes_of(one).total.policy
    known = [1.0, 0.6, 0.75, *([] if default is None else [default] * 3)]
    assert counts.decisions == 6
    assert counts.counted == len(known)
    assert counts.answered == 3
    assert counts.reward == pytest.approx(sum(known))
    shown = outcomes_of(one).items[:, :3].sum(axis=0)
    assert shown.tolist() == pytest.approx([6, len(known), sum(known)])


def test_a_default_that_changes_while_a_decision_waits_is_counted_once() -> None:
    one = shop(reward_wait=60, default_reward=0.5)
    first, second = one.decide("alice").id, one.decide("alice").id
    one.configure(default_reward=None)
    pass_time(one, 61)
    one.expire()
    assert outcomes_of(one).total.policy.counted == 0
    one.reward(first, 1.0)
    counts = outcomes_of(one).total.policy
    assert (counts.decisions, counts.counted, counts.reward, second != first) == (2, 1, 1.0, True)


def test_in_shadow_mode_items_are_credited_that_were_shown() -> None:
    one = shop(mode="shadow")
    visits = [one.decide("alice", ["tea", "coffee"]).id for _ in range(4)]
    for visit in visits[:3]:
        one.reward(visit, 1.0, item="cocoa")
    number = live_of(one).state.items.known.number("cocoa")
    table = outcomes_of(one).items
    assert table[number, :3].tolist() == [3.0, 3.0, 3.0]
    assert table[:, 0].sum() == 3.0
    assert outcomes_of(one).total.policy.counted == 4


def test_pairs_that_show_the_same_item_are_counted_within_an_hour() -> None:
    one = shop()
    for _ in range(4):
        one.decide("alice", ["tea"])
    one.decide("alice", ["coffee"])
    assert (outcomes_of(one).total.named, outcomes_of(one).total.pairs) == (5, 6)
    pass_time(one, 3_700)
    one.decide("alice", ["tea"])
    assert (outcomes_of(one).total.named, outcomes_of(one).total.pairs) == (6, 6)


def test_counts_survive_a_crash_and_a_snapshot_bit_for_bit(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db", uniform_share=0.5, reward_wait=60)
    rng = np.random.default_rng(1)

    def visit(number: int) -> None:
        decision = one.decide(f"u{number % 3}").id
        if number % 3:
            one.reward(decision, float(rng.random()))
        pass_time(one, 400.0)
        one.expire()

    for number in range(20):
        visit(number)
    take_snapshot(one)
    for number in range(20, 30):
        visit(number)
    expected: Any = outcomes_of(one).as_json(), outcomes_of(one).items.tolist()
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert (outcomes_of(again).as_json(), outcomes_of(again).items.tolist()) == expected
        assert outcomes_of(again).total.uniform.decisions > 5
