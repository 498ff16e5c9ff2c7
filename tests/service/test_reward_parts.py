"""Rewards that add up: a click, then a purchase, each counted once, in time, late or in shadow mode."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import ArgumentError, Conflict, Recommender
from coterie.service.storage import event_store as events
from coterie.service.storage.export import export_rows
from inspection import (
    abandon,
    engine_of,
    live_of,
    never_keep_house,
    pass_time,
    snapshot_seqs,
    store_of,
    take_snapshot,
)
from service.crash_child import CrashPoint, arm
from service.shops import ITEMS, same_state, shop


@pytest.fixture(autouse=True)
def _time_passes_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    never_keep_house(monkeypatch)


def taught(*rewards: float) -> Recommender:
    """A shop that has learnt these rewards for tea, one by one."""
    one = shop()
    for value in rewards:
        one.reward(one.decide("alice", ["tea"]).id, value)
    return one


def test_parts_are_learnt_as_one_sum_when_their_time_is_over() -> None:
    one = shop(reward_wait=60)
    visit = one.decide("alice", ["tea"]).id
    assert one.reward(visit, 0.1, part="click").status == "added"
    pass_time(one, 50)
    assert one.reward(visit, 1.0, part="purchase").status == "added"
    assert one.policy.rounds == 0
    pass_time(one, 11)
    assert one.expire() == 1
    assert same_state(one, taught(1.1))


def test_each_part_counts_once_by_its_own_name_before_and_after_its_time() -> None:
    one = shop(reward_wait=60)
    visit = one.decide("alice", ["tea"]).id
    one.reward(visit, 0.1, part="click")
    for _ in range(2):
        assert one.reward(visit, 0.1, part="click").status == "duplicate"
        with pytest.raises(Conflict, match=r"part 'click' of .* was 0\.1, got 0\.2"):
            one.reward(visit, 0.2, part="click")
        with pytest.raises(Conflict, match="has got parts of its reward: name this part"):
            one.reward(visit, 0.1)
        pass_time(one, 61)
    assert one.policy.rounds == 1
    whole = one.decide("alice", ["tea"]).id
    one.reward(whole, 1.0)
    with pytest.raises(Conflict, match="was settled with reward 1, which had no parts"):
        one.reward(whole, 1.0, part="click")


def test_a_part_at_once_is_learnt_and_a_later_one_corrects_it_exactly(tmp_path: Path) -> None:
    one = shop(reward_wait=60, learn_parts="at_once", store=tmp_path / "a.db")
    first, second = (one.decide(user, ["tea"]).id for user in ("alice", "bob"))
    assert one.reward(first, 0.1, part="click").status == "counted"
    assert one.policy.rounds == 1
    one.reward(second, 0.5, part="click")
    assert one.reward(first, 1.0, part="purchase").status == "counted"
    assert one.reward(first, 1.0, part="purchase").status == "duplicate"
    assert one.reward(first, 0.1, part="click").status == "duplicate"
    assert one.policy.rounds == 2
    assert one.policy.estimates.tolist() == [[0.55, 0.0], [0.25, 0.0]]
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert again.policy.estimates.tolist() == [[0.55, 0.0], [0.25, 0.0]]


def test_a_correction_keeps_the_snapshots_from_before_it(tmp_path: Path) -> None:
    one = shop(reward_wait=60, learn_parts="at_once", store=tmp_path / "a.db")
    one.feedback("alice", 1.0, item="coffee")
    take_snapshot(one)
    kept = live_of(one).state.seq
    visit = one.decide("alice", ["tea"]).id
    one.reward(visit, 0.1, part="click")
    take_snapshot(one)
    one.reward(visit, 1.0, part="purchase")
    assert snapshot_seqs(store_of(one)) == [kept]
    assert one.policy.estimates[0].tolist() == [0.55, 0.5]
    one.close()
    with Recommender(store=tmp_path / "a.db") as again:
        assert again.policy.estimates[0].tolist() == [0.55, 0.5]


@pytest.mark.parametrize(
    ("late", "status", "learnt"),
    [("accept", "late", (0.1, 1.0)), ("correct", "late", (1.1,)), ("ignore", "recorded", (0.1,))],
)
def test_a_late_part_is_what_the_setting_says(
    late: str, status: str, learnt: tuple[float, ...], tmp_path: Path
) -> None:
    one = shop(reward_wait=60, late=late, store=tmp_path / "a.db")
    visit = one.decide("alice", ["tea"]).id
    one.reward(visit, 0.1, part="click")
    pass_time(one, 61)
    assert one.reward(visit, 1.0, part="purchase").status == status
    assert one.reward(visit, 1.0, part="purchase").status == "duplicate"
    expected = taught(*learnt).policy.estimates.tolist()
    assert one.policy.estimates.tolist() == expected
    (row,) = export_rows(store_of(one), "default", 2)
    assert row.reward == 1.1
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert again.policy.estimates.tolist() == expected
        assert again.reward(visit, 1.0, part="purchase").status == "duplicate"


def test_the_first_part_after_the_default_is_late_and_the_next_adds_to_it() -> None:
    one = shop(reward_wait=60, default_reward=-1.0, late="correct")
    visit = one.decide("alice", ["tea"]).id
    pass_time(one, 61)
    one.expire()
    assert one.policy.estimates[0].tolist() == [-0.5, 0.0]
    one.reward(visit, 0.1, part="click")
    one.reward(visit, 1.0, part="purchase")
    assert one.policy.estimates.tolist() == taught(1.1).policy.estimates.tolist()


def test_parts_in_shadow_mode_name_what_was_shown(tmp_path: Path) -> None:
    one = shop(reward_wait=60, mode="shadow", store=tmp_path / "a.db")
    visit = one.decide("alice", decision_id="d").id
    one.reward(visit, 0.1, part="click", item="coffee")
    with pytest.raises(Conflict, match="names something else as shown"):
        one.reward(visit, 1.0, part="purchase", item="tea")
    take_snapshot(one)
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        again.reward(visit, 1.0, part="purchase", item="coffee")
        pass_time(again, 61)
        again.expire()
        assert again.policy.estimates[0].tolist() == [0.0, 0.55]


def test_parts_that_cannot_add_up_are_refused_and_change_nothing() -> None:
    one = shop(reward_wait=None)
    visit, ranked = one.decide("alice", ["tea"]).id, one.decide("alice", k=2).id
    with pytest.raises(ArgumentError, match="this policy waits for ever: set reward_wait, or learn_parts"):
        one.reward(visit, 0.1, part="click")
    with pytest.raises(ArgumentError, match="a list takes one reward, the click: leave part out"):
        one.reward(ranked, 1.0, part="click")
    one.configure(reward_wait=60)
    many = one.decide("alice", ["tea"]).id
    for number in range(20):
        one.reward(many, 0.1, part=f"p{number}")
    with pytest.raises(ArgumentError, match="a reward may have 20 parts"):
        one.reward(many, 0.1, part="p20")
    assert one.policy.rounds == 0


def play(one: Recommender, seed: int, rounds: int = 40) -> None:
    """Visits with parts in time, late and never, by the numbers of a generator."""
    rng = np.random.default_rng(seed)
    visits: list[str] = []
    for number in range(rounds):
        visits.append(one.decide(f"u{rng.integers(4)}", decision_id=f"{seed}-{number}").id)
        visit, part = visits[rng.integers(len(visits))], f"p{rng.integers(3)}"
        one.reward(visit, float(part[1:]) / 4, part=part)
        pass_time(one, float(rng.integers(30)))
        if rng.random() < 0.3:
            one.expire()


@pytest.mark.parametrize("learn_parts", ["at_close", "at_once"])
@pytest.mark.parametrize("late", ["accept", "correct", "ignore"])
def test_a_crash_changes_nothing_of_sums_that_wait(late: Any, learn_parts: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"policy": "LinTSInd", "uniform_share": 0.2, "reward_wait": 100.5}
    options |= {"late": late, "learn_parts": learn_parts, "items": ITEMS}
    whole, cut = Recommender(**options), Recommender(**options, store=tmp_path / "a.db")
    for seed in range(3):
        play(cut, seed)
        play(whole, seed)
        if seed == 1:
            take_snapshot(cut)
        now = engine_of(cut).journal.now()
        abandon(cut)
        cut = Recommender(store=tmp_path / "a.db")
        pass_time(cut, now - engine_of(cut).journal.now())
        assert same_state(cut, whole)
        assert [one.parts for one in live_of(cut).state.waiting.values()] == [
            one.parts for one in live_of(whole).state.waiting.values()
        ]
    cut.close()


def _purchase(where: str, point: CrashPoint) -> None:
    recommender = Recommender(store=where)
    arm(store_of(recommender), point)
    recommender.reward("d", 1.0, part="purchase")


@pytest.mark.parametrize(
    ("learn_parts", "statement", "done"),
    [
        ("at_close", "INSERT INTO log", False),
        ("at_close", "COMMIT", True),
        ("at_once", "UPDATE log", False),
        ("at_once", "DELETE FROM snapshot", False),
        ("at_once", "COMMIT", True),
    ],
)
def test_a_part_is_whole_or_absent_after_a_kill(
    learn_parts: Any, statement: str, done: bool, where: str
) -> None:
    with shop(store=where, reward_wait=1000, learn_parts=learn_parts) as one:
        one.decide("alice", ["tea"], decision_id="d")
        one.reward("d", 0.1, part="click")
    point = CrashPoint("after", statement, 1)
    process = multiprocessing.get_context("forkserver").Process(target=_purchase, args=(where, point))
    process.start()
    process.join()
    assert process.exitcode == -9
    with Recommender(store=where) as again:
        expected = "duplicate" if done else "added" if learn_parts == "at_close" else "counted"
        assert again.reward("d", 1.0, part="purchase").status == expected
        pass_time(again, 1001)
        again.expire()
        assert same_state(again, taught(1.1))


def test_nothing_is_left_of_the_parts_of_a_removed_user() -> None:
    one = shop(reward_wait=60)
    one.reward(one.decide("alice").id, 0.1, part="click")
    one.decide("bob")
    one.remove_user("alice")
    assert not [event for event in store_of(one).read("default") if event.kind == events.PART]
