"""Every field of every request over HTTP has a wrong value here, and the sentence that answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import msgspec
import pytest

from coterie.service.core.experiments import Experiment
from coterie.service.http import personalizer_messages
from coterie.service.http.routes import ROUTES
from coterie.service.settings import PolicySettings
from service.serving import Served, served
from service.shops import ITEMS

ONE = "/v1/policies/default"
NEW: dict[str, Any] = {"name": "shop", "dim": 2}
ARM: dict[str, Any] = {"id": "a", "x": [1.0, 0.0]}
LONG = "a" * 257

ACTION: dict[str, Any] = {"id": "a", "features": [{"type": "hot"}]}
SLOTS: dict[str, Any] = {"actions": [ACTION, {"id": "b"}], "slots": [{"id": "main"}, {"id": "side"}]}
DEEP: Any = {"a": [[[[[[[["too deep"]]]]]]]]}
EXPERIMENT = {"name": "autumn", "policies": [{"policy": "default"}, {"policy": "other"}]}
WRONG: list[tuple[str, str, Any, str]] = [
    ("NewPolicy", "name", "../shop", "name: expected str matching regex"),
    ("NewPolicy", "name", 7, "name: expected str, got int"),
    ("NewPolicy", "dim", 0, "dim: expected int >= 1"),
    ("NewPolicy", "dim", 4097, "dim: expected int <= 4096"),
    ("NewPolicy", "policy", "CLUP", "no policy 'CLUP'; did you mean 'CLUB'?"),
    ("NewPolicy", "params", [1], "params: expected object, got array"),
    ("NewPolicy", "params", {"alpa": 1}, "no parameter of AutoCLUB: 'alpa'"),
    ("NewPolicy", "params", {"ridge": "much"}, "ridge must be"),
    ("NewPolicy", "users", ["a", "a"], "users must be a list of ids, no two alike"),
    ("NewPolicy", "users", [""], "users[0]: expected str of length >= 1"),
    ("NewPolicy", "seed", -1, "seed: expected int >= 0"),
    ("NewPolicy", "reward_wait", -1, "reward_wait: expected float >= 0.0"),
    ("NewPolicy", "default_reward", "none", "default_reward: expected float | null, got str"),
    ("NewPolicy", "late", "maybe", "late: invalid enum value 'maybe'"),
    ("NewPolicy", "uniform_share", 1.5, "uniform_share: expected float <= 1.0"),
    ("NewPolicy", "mode", "off", "mode: invalid enum value 'off'"),
    ("PolicyChanges", "reward_wait", "soon", "reward_wait: expected float | null, got str"),
    ("PolicyChanges", "default_reward", [], "default_reward: expected float | null, got array"),
    ("PolicyChanges", "late", 1, "late: expected str, got int"),
    ("PolicyChanges", "uniform_share", -0.1, "uniform_share: expected float >= 0.0"),
    ("NewPolicy", "learn_parts", "never", "learn_parts: invalid enum value 'never'"),
    ("NewPolicy", "log_offers", "none", "log_offers: invalid enum value 'none'"),
    ("PolicyChanges", "learn_parts", 1, "learn_parts: expected str, got int"),
    ("PolicyChanges", "log_offers", 1, "log_offers: expected str, got int"),
    ("PolicyChanges", "mode", None, "mode: expected str, got null"),
    ("Items", "items", {}, "items: expected array, got object"),
    ("Items", "items", [ARM, ARM], "items must name each id once"),
    ("Items", "items", [ARM, {"id": "b", "x": [1.0]}], "items must have vectors of one length"),
    ("Items", "items", [{"id": "", "x": [1, 0]}], "items[0].id: expected str of length >= 1"),
    ("Items", "items", [{"id": "a\u0000", "x": [1, 0]}], "an item's id must be without control characters"),
    ("Items", "items", [{"id": "a", "x": [1, 0, 0]}], "items must have shape (K, 2), got (1, 3)"),
    ("DecisionRequest", "user", LONG, "user: expected str of length <= 256"),
    ("DecisionRequest", "user", "a\n", "user must be without control characters"),
    ("DecisionRequest", "items", [], "items: expected array of length >= 1"),
    ("DecisionRequest", "items", ["milk"], "no item 'milk' in the catalogue"),
    ("DecisionRequest", "items", ["tea", "tea"], "items must name each item once"),
    ("DecisionRequest", "arms", [], "arms: expected array of length >= 1"),
    ("DecisionRequest", "arms", [{"id": "a"}], "arms[0]: object missing required field x"),
    ("DecisionRequest", "arms", [{"id": "a", "x": [1e7, 0]}], "arms must be shorter than 1e+06"),
    (
        "DecisionRequest",
        "arms",
        [{"id": "tea", "x": [0.9, 0.1]}],
        "arm 'tea' has another vector than the item of that id in the catalogue",
    ),
    ("DecisionRequest", "exclude", ["milk"], "no item 'milk': it was never in the catalogue"),
    ("DecisionRequest", "exclude", "tea", "exclude: expected array | null, got str"),
    ("DecisionRequest", "exclude", ["tea", "coffee", "cocoa"], "no item of the catalogue is left"),
    ("DecisionRequest", "exclude", ["tea"] * 50_001, "exclude: expected array of length <= 50000"),
    ("DecisionRequest", "only", ["hot"] * 1_001, "only: expected array of length <= 1000"),
    ("DecisionRequest", "only", [], "only: expected array of length >= 1"),
    ("DecisionRequest", "only", ["cold"], "no item of the catalogue is left"),
    ("DecisionRequest", "only", ["a" * 101], "only[0]: expected str of length <= 100"),
    ("DecisionRequest", "k", 4, "k must be at most 3, got 4"),
    ("DecisionRequest", "k", "1", "k: expected int, got str"),
    ("DecisionRequest", "decision_id", LONG, "decision_id: expected str of length <= 256"),
    ("Rewards", "rewards", {}, "rewards: expected array, got object"),
    ("Reward", "reward", "1", "rewards[0].reward: expected float, got str"),
    ("Reward", "decision_id", "", "rewards[0].decision_id: expected str of length >= 1"),
    ("Reward", "decision_id", "never", "no decision 'never'"),
    ("Reward", "part", "click", "a part is of the reward of a decision: give its decision_id"),
    ("Reward", "user", "a\u007f", "user must be without control characters"),
    ("Reward", "user", 7, "rewards[0].user: expected str | null, got int"),
    ("Reward", "item", "milk", "no item 'milk' in the catalogue"),
    ("Reward", "x", [1.0], "x must have shape (2,), got (1,)"),
    ("Reward", "x", [], "rewards[0].x: expected array of length >= 1"),
    ("Reward", "id", LONG, "rewards[0].id: expected str of length <= 256"),
    ("NewExperiment", "name", "a b", "name: expected str matching regex"),
    ("NewExperiment", "policies", [], "policies: expected array of length >= 2"),
    ("NewExperiment", "learn", "some", "learn: invalid enum value 'some'"),
    ("NewExperiment", "alpha", 0, "alpha: expected float > 0.0"),
    ("NewExperiment", "least_effect", "small", "least_effect: expected float | null, got str"),
    ("ExperimentPolicy", "policy", "never", "no policy 'never'"),
    ("ExperimentPolicy", "share", 0, "policies[1].share: expected float > 0.0"),
    (
        "ExperimentEnd",
        "keep",
        "never",
        "keep must be a policy of the experiment (default, other), got 'never'",
    ),
    ("Item", "id", 1, "items[0].id: expected str, got int"),
    ("Item", "x", "1, 0", "items[0].x: expected array, got str"),
    ("Item", "x", [None], "items[0].x[0]: expected float, got null"),
    ("Item", "tags", "hot", "items[0].tags: expected array, got str"),
    ("Item", "tags", [""], "items[0].tags[0]: expected str of length >= 1"),
    ("Item", "tags", ["a"] * 51, "items[0].tags: expected array of length <= 50"),
    ("Arm", "id", 1, "arms[0].id: expected str, got int"),
    ("Arm", "x", "1, 0", "arms[0].x: expected array, got str"),
    ("PersonalizerRank", "actions", [], "actions: expected array of length >= 1"),
    ("PersonalizerRank", "actions", [ACTION, ACTION], "actions must name each id once"),
    ("PersonalizerRank", "contextFeatures", {"a": 1}, "contextFeatures: expected array | null, got object"),
    ("PersonalizerRank", "contextFeatures", [{"user": "a\n"}], "user must be without control characters"),
    ("PersonalizerRank", "contextFeatures", [DEEP], "features must be nested at most 8 levels deep"),
    ("PersonalizerRank", "contextFeatures", [{"n": 10**400}], "feature 'n' must be a number of ordinary"),
    ("PersonalizerRank", "excludedActions", ["a"], "actions must have one that is not excluded"),
    ("PersonalizerRank", "eventId", "", "eventId: expected str of length >= 1"),
    ("PersonalizerRank", "deferActivation", 1, "deferActivation: expected bool | null, got int"),
    ("PersonalizerAction", "id", "cocoa", "arm 'cocoa' has another vector than the item of that id"),
    ("PersonalizerAction", "features", "hot", "actions[0].features: expected array | null, got str"),
    ("PersonalizerReward", "value", "much", "value: expected float, got str"),
    ("PersonalizerSlots", "actions", [ACTION], "slot 'side' needs actions that are not excluded: 2, got 1"),
    ("PersonalizerSlots", "slots", [{"id": "a"}, {"id": "a"}], "slots must name each id once"),
    ("PersonalizerSlots", "contextFeatures", 1, "contextFeatures: expected array | null, got int"),
    ("PersonalizerSlots", "eventId", LONG[1:], "the slot's id together must have 1 to 256 characters"),
    ("PersonalizerSlots", "deferActivation", "no", "deferActivation: expected bool | null, got str"),
    ("PersonalizerSlot", "id", "", "slots[0].id: expected str of length >= 1"),
    ("PersonalizerSlot", "features", [1], "slots[0].features[0]: expected object, got int"),
    ("PersonalizerSlot", "excludedActions", ["a", "b"], "slot 'main' needs actions that are not excluded: 1"),
    ("PersonalizerSlot", "baselineAction", 1, "slots[0].baselineAction: expected str | null, got int"),
    ("PersonalizerSlotRewards", "reward", [], "reward: expected array of length >= 1"),
    ("PersonalizerSlotReward", "slotId", "", "reward[0].slotId: expected str of length >= 1"),
    ("PersonalizerSlotReward", "value", None, "reward[0].value: expected float, got null"),
]
GOOD: dict[str, tuple[str, str, dict[str, Any]]] = {
    "NewPolicy": ("POST", "/v1/policies", NEW),
    "PolicyChanges": ("PATCH", ONE, {}),
    "Items": ("PUT", f"{ONE}/items", {"items": []}),
    "DecisionRequest": ("POST", f"{ONE}/decisions", {"user": "alice"}),
    "Rewards": ("POST", f"{ONE}/rewards", {"rewards": []}),
    "Reward": ("POST", f"{ONE}/rewards", {"user": "alice", "item": "tea", "reward": 1.0}),
    "NewExperiment": ("POST", "/v1/experiments", EXPERIMENT),
    "ExperimentPolicy": ("POST", "/v1/experiments", {"policy": "other"}),
    "ExperimentEnd": ("POST", "/v1/experiments/spring/stop", {"keep": "default"}),
    "Item": ("PATCH", f"{ONE}/items", ARM),
    "Arm": ("POST", f"{ONE}/decisions", ARM),
    "PersonalizerRank": ("POST", f"{ONE}/personalizer/rank", {"actions": [ACTION]}),
    "PersonalizerAction": ("POST", f"{ONE}/personalizer/rank", ACTION),
    "PersonalizerReward": ("POST", f"{ONE}/personalizer/events/e/reward", {"value": 1.0}),
    "PersonalizerSlots": ("POST", f"{ONE}/personalizer/multislot/rank", SLOTS),
    "PersonalizerSlot": ("POST", f"{ONE}/personalizer/multislot/rank", {"id": "main"}),
    "PersonalizerSlotRewards": ("POST", f"{ONE}/personalizer/multislot/events/e/reward", {}),
    "PersonalizerSlotReward": (
        "POST",
        f"{ONE}/personalizer/multislot/events/e/reward",
        {"slotId": "main", "value": 1.0},
    ),
}
WITHIN: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "ExperimentPolicy": lambda body: {"name": "autumn", "policies": [{"policy": "default"}, body]},
    "Item": lambda body: {"items": [body]},
    "Arm": lambda body: {"user": "alice", "arms": [body]},
    "PersonalizerAction": lambda body: {"actions": [body]},
    "PersonalizerSlot": lambda body: {**SLOTS, "slots": [body]},
    "PersonalizerSlotReward": lambda body: {"reward": [body]},
}
"""The bodies that messages are a part of."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(str(tmp_path_factory.mktemp("fields") / "a.db"), dim=2) as one:
        one.engine.find("default").change_items(ITEMS)
        one.engine.settle(one.engine.create("other", PolicySettings(dim=2)))
        one.engine.experiments.create(Experiment(name="spring", shares={"default": 1.0, "other": 1.0}))
        yield one


def test_every_field_of_every_request_is_here() -> None:
    requested = {route.request for route in ROUTES if route.request is not None}
    kinds = {kind.__name__: kind for kind in requested}
    from coterie.service import messages

    kinds |= {"Reward": messages.Reward, "Arm": messages.Arm, "Item": messages.Item}
    parts = (
        messages.ExperimentPolicy,
        personalizer_messages.PersonalizerAction,
        personalizer_messages.PersonalizerSlot,
        personalizer_messages.PersonalizerSlotReward,
    )
    kinds |= {one.__name__: one for one in parts}
    fields = {(name, one.encode_name) for name, kind in kinds.items() for one in msgspec.structs.fields(kind)}
    assert fields == {(name, field) for name, field, _, _ in WRONG}


@pytest.mark.parametrize(
    ("kind", "field", "value", "sentence"), WRONG, ids=[f"{one[0]}.{one[1]}={one[2]!r:.20}" for one in WRONG]
)
def test_a_wrong_field_is_told_in_a_sentence_and_changes_nothing(
    service: Served, kind: str, field: str, value: Any, sentence: str
) -> None:
    method, path, good = GOOD[kind]
    body: dict[str, Any] = {**good, field: value}
    if kind == "Reward":
        body = {"rewards": [body if field != "decision_id" else {"reward": 1.0, "decision_id": value}]}
    elif kind in WITHIN:
        body = WITHIN[kind](body)
    state, journal = service.engine.find("default").state, service.engine.journal
    before = journal.last, state.users.ids, state.items.ids, list(service.engine.policies)
    answer = httpx.request(method, service.url + path, json=body, trust_env=False)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.status_code in (404, 422)
    assert sentence in answer.json()["detail"]
    state = service.engine.find("default").state
    assert (journal.last, state.users.ids, state.items.ids, list(service.engine.policies)) == before


QUERIES = [
    ("/users?start=x", "start must be a whole number from 0 to 2147483648, got 'x'"),
    ("/users?limit=10001", "limit must be a whole number from 0 to 10000, got '10001'"),
    ("/history/alice?limit=-1", "limit must be a whole number from 0 to 10000, got '-1'"),
    ("/users/nobody?item=tea", "no user 'nobody': it has not been seen, or was removed"),
    ("/export?format=xml", "format must be jsonl or parquet, got 'xml'"),
    ("/export?table=users", "table must be one of decisions, items, got 'users'"),
    ("/items?limit=10001", "limit must be a whole number from 0 to 10000, got '10001'"),
]


@pytest.mark.parametrize(("query", "sentence"), QUERIES)
def test_a_wrong_query_is_told_in_a_sentence(service: Served, query: str, sentence: str) -> None:
    answer = httpx.get(f"{service.url}{ONE}{query}", trust_env=False)
    assert answer.status_code in (404, 422)
    assert answer.json()["detail"] == sentence


def test_an_unknown_item_in_the_query_of_a_user(service: Served) -> None:
    service.engine.find("default").feedback("zoe", 1.0, item="tea")
    answer = httpx.get(f"{service.url}{ONE}/users/zoe?item=milk", trust_env=False)
    assert (answer.status_code, answer.json()["detail"]) == (
        404,
        "no item 'milk' in the catalogue of this policy",
    )
