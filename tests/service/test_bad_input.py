"""Every field of the interface: an error is one sentence, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coterie import ArgumentError, CoterieError, Recommender, UnknownName
from inspection import engine_of
from service.shops import ITEMS, shop

SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"policy": "AutoClub"}, "no policy 'AutoClub'; did you mean 'AutoCLUB'"),
    ({"policy": "os:system"}, "no policy 'os:system'"),
    ({"policy": "CLUB"}, "CLUB needs alpha and beta, such as CLUB"),
    ({"policy": "CLUB", "params": {"alpha": 1.0}}, "CLUB needs beta, such as CLUB"),
    ({"params": {"alpa": 1.0}}, "no parameter of AutoCLUB: 'alpa'"),
    ({"params": [1]}, r"params must be a table of names and values, got \[1\]"),
    ({"policy": "LinUCBOracle"}, "LinUCBOracle must know its users: give users, and labels in params"),
    ({"dim": 0, "items": None}, "dim must be a whole number of at least 1, got 0"),
    ({"dim": None, "items": None}, "dim must be given"),
    ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ({"users": ["a", "a"]}, "users must be a list of ids, no two alike"),
    ({"users": [""]}, "a user's id must have 1 to 256 characters, got 0"),
    ({"reward_wait": -1}, "reward_wait must be at least 0, got -1"),
    ({"default_reward": float("nan")}, "default_reward must be a finite number, got nan"),
    ({"uniform_share": 1.5}, r"uniform_share must be from 0 to 1, got 1\.5"),
    ({"late": "maybe"}, "late must be one of accept, correct, ignore, got 'maybe'"),
    ({"mode": "off"}, "mode must be one of online, shadow, frozen, got 'off'"),
    ({"learn_parts": "never"}, "learn_parts must be one of at_close, at_once, got 'never'"),
    ({"log_offers": "none"}, "log_offers must be one of chosen, all, got 'none'"),
    ({"name": "../x"}, "a policy's name must be 1 to 64 letters, digits, '-', '_' or '.', got '../x'"),
]
CALLS: list[tuple[Callable[[Any], object], str]] = [
    (lambda r: r.decide(""), "user must have 1 to 256 characters, got 0"),
    (lambda r: r.decide("a" * 257), "user must have 1 to 256 characters, got 257"),
    (lambda r: r.decide("a\x00b"), "user must be without control characters"),
    (lambda r: r.decide("\ud800"), "user must be without control characters"),
    (lambda r: r.decide(7), "user must be text, got 7"),
    (lambda r: r.decide("u", ["milk"]), "no item 'milk' in the catalogue"),
    (lambda r: r.decide("u", []), "items must name at least one item, got none"),
    (lambda r: r.decide("u", "tea"), "items must be a list of ids, got 'tea'"),
    (lambda r: r.decide("u", ["tea", "tea"]), "items must name each item once"),
    (lambda r: r.decide("u", ["tea"], arms={"a": [1, 2]}), "give items of the catalogue or arms"),
    (lambda r: r.decide("u", arms={"a": [1.0]}), r"arms must have shape \(K, 2\), got \(1, 1\)"),
    (lambda r: r.decide("u", arms={"a": [1.0, np.inf]}), "arms must hold finite numbers only, got inf"),
    (lambda r: r.decide("u", arms={"a": [1e9, 0.0]}), "arms must be shorter than"),
    (lambda r: r.decide("u", arms=np.zeros((0, 2))), "arms must hold at least one arm"),
    (lambda r: r.decide("u", arms=np.zeros((1001, 2))), "limit of 1000 arms of a request is reached"),
    (lambda r: r.decide("u", list(map(str, range(1001)))), "no item '0' in the catalogue"),
    (
        lambda r: r.decide("u", arms={"a": [1, 2], "tea": [1, 2]}),
        "arm 'tea' has another vector than the item of that id in the catalogue; put_items changes an item",
    ),
    (lambda r: r.decide("u", exclude=["milk"]), "no item 'milk': it was never in the catalogue"),
    (lambda r: r.decide("u", exclude="tea"), "exclude must be a list of ids, got 'tea'"),
    (lambda r: r.decide("u", exclude=list(ITEMS)), "no item of the catalogue is left to choose from"),
    (lambda r: r.decide("u", exclude=["tea"], k=3), "k must be at most 2, got 3"),
    (lambda r: r.decide("u", only="cold"), "no item of the catalogue is left to choose from"),
    (lambda r: r.decide("u", only=[]), "only must name at least one tag, got none"),
    (lambda r: r.decide("u", ["tea"], exclude=["tea"]), "exclude and only choose from the whole catalogue"),
    (lambda r: r.decide("u", arms={"a": [1, 2]}, only="hot"), "exclude and only choose from the whole"),
    (lambda r: r.decide("u", k=0), "k must be a whole number of at least 1, got 0"),
    (lambda r: r.decide("u", k=4), "k must be at most 3, got 4"),
    (lambda r: r.decide("u", decision_id=""), "decision_id must have 1 to 256 characters"),
    (lambda r: r.reward("d", 1.0, item="coffee"), "the decision chose 'tea'; give what was shown instead"),
    (lambda r: r.reward("d", 1.0, x=[1, 2]), "the decision chose 'tea'; give what was shown instead"),
    (lambda r: r.reward("d", np.nan), "reward must be a finite number, got nan"),
    (lambda r: r.reward("d", "1"), "reward must be a finite number, got '1'"),
    (lambda r: r.reward("list", 1.0), "a list takes reward 1 with the item clicked, or 0 without"),
    (lambda r: r.reward("list", 1.0, item="cocoa"), "item must be one of the list that was shown"),
    (lambda r: r.feedback("u", 1.0), "give an item of the catalogue, or the vector x that was shown"),
    (lambda r: r.feedback("u", 1.0, x=[1.0]), r"x must have shape \(2,\), got \(1,\)"),
    (lambda r: r.feedback("u", 1.0, item="milk"), "no item 'milk'"),
    (lambda r: r.feedback("u", 1.0, item="tea", feedback_id="d"), "'d' is the id of a decision"),
    (lambda r: r.put_items({"": [1, 2]}), "an item's id must have 1 to 256 characters"),
    (lambda r: r.put_items({"a": [1, 2, 3]}), r"items must have shape \(K, 2\), got \(1, 3\)"),
    (lambda r: r.put_items({"a": ["x", "y"]}), "items must be"),
    (
        lambda r: r.put_items({"a": [1, 2]}, tags={"b": ["hot"]}),
        "tags must be of items that are put, got 'b'",
    ),
    (
        lambda r: r.put_items({"a": [1, 2]}, tags={"a": "hot"}),
        "tags of 'a' must be a list of tags, got 'hot'",
    ),
    (lambda r: r.put_items({"a": [1, 2]}, tags={"a": [""]}), "a tag must be a string of 1 to 100 characters"),
    (lambda r: r.remove_items(["milk"]), "no item 'milk'"),
    (lambda r: r.configure(dim=3), "no setting that may change: 'dim'"),
    (lambda r: r.configure(mode="off"), "mode must be one of"),
    (lambda r: r.explain("nobody"), "no user 'nobody'"),
    (lambda r: r.history("alice", 0), "limit must be a whole number of at least 1"),
]


@pytest.mark.parametrize(("options", "sentence"), SETTINGS, ids=lambda value: str(value)[:40])
def test_a_wrong_setting_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CoterieError, match=sentence):
        shop(**{"policy": "AutoCLUB", **options})


@pytest.mark.parametrize(("call", "sentence"), CALLS, ids=[sentence[:40] for _, sentence in CALLS])
def test_a_wrong_request_is_refused_and_changes_nothing(
    call: Callable[[Recommender], object], sentence: str
) -> None:
    one = shop()
    one.decide("alice", ["tea"], decision_id="d")
    one.decide("alice", ["tea", "coffee"], k=2, decision_id="list")
    before = engine_of(one).journal.last, one.users, one.policy.rounds
    with pytest.raises(CoterieError, match=sentence):
        call(one)
    assert (engine_of(one).journal.last, one.users, one.policy.rounds) == before


def test_shadow_rewards_name_what_was_shown() -> None:
    one = shop(mode="shadow")
    with pytest.raises(ArgumentError, match="in shadow mode a reward names what was shown: give item or x"):
        one.reward(one.decide("alice").id, 1.0)


def test_a_policy_that_is_told_of_its_users_serves_no_others() -> None:
    params = {"labels": [0, 0, 1]}
    one = Recommender(policy="LinUCBOracle", params=params, users=["a", "b", "c"], items=ITEMS)
    assert one.decide("b").cluster == 0
    with pytest.raises(ArgumentError, match="user must be one that LinUCBOracle was made with, got 'd'"):
        one.decide("d")
    one.remove_user("a")
    assert one.users == ("b", "c")
    with pytest.raises(UnknownName):
        one.explain("a")


def test_a_store_that_holds_another_policy_is_not_opened_as_this_one(tmp_path: Any) -> None:
    shop(store=tmp_path / "a.db").close()
    with pytest.raises(ArgumentError, match="'default' in this store is LinUCBInd with dim 2"):
        Recommender(policy="CLUB", params={"alpha": 1, "beta": 1}, store=tmp_path / "a.db")
