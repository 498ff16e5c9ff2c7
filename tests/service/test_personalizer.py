"""Clients of Azure Personalizer find the same calls here, with the same JSON and the same meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from coterie import Recommender
from coterie.feature_hashing import action_vectors, hash_features
from coterie.service.core.live_policy import LivePolicy
from coterie.service.http.api_keys import create_key
from coterie.service.settings import PolicySettings
from inspection import pass_engine_time
from service.serving import Served, served

ACTIONS: list[dict[str, Any]] = [
    {"id": "pasta", "features": [{"taste": "salty", "grams": [400, 800]}, {"cuisine": "italian"}]},
    {"id": "ice cream", "features": [{"taste": "sweet"}, {"nutritionLevel": 2}]},
    {"id": "juice", "features": [{"taste": "sweet"}, {"drink": True}]},
]
CONTEXT: list[dict[str, Any]] = [{"user": {"id": "ann", "age": "20-30"}}, {"timeOfDay": "Morning"}]
WAIT = 600.0


class Personalizer:
    """A client that knows Personalizer's documentation and nothing else."""

    def __init__(self, one: Served, version: str = "v1.0") -> None:
        self.live: LivePolicy = one.engine.find("default")
        self.served = one
        self._url = f"{one.url}/v1/policies/default/personalizer/{version}".rstrip("/")

    def rank(self, **fields: Any) -> dict[str, Any]:
        answer = self.post("rank", {"actions": ACTIONS, "contextFeatures": CONTEXT, **fields})
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def post(self, path: str, body: Any = None) -> httpx.Response:
        content: dict[str, Any] = {} if body is None else {"json": body}
        return httpx.post(f"{self._url}/{path}", trust_env=False, **content)

    def reward(self, event: str, value: float) -> int:
        return self.post(f"events/{event}/reward", {"value": value}).status_code

    def rounds(self) -> int:
        """How many rewards the policy has learnt from."""
        return int(self.live.state.policy.rounds)

    def wait(self, seconds: float) -> None:
        pass_engine_time(self.served.engine, seconds)
        self.served.engine.settle(self.live.expire())


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Personalizer]:
    with served(str(tmp_path / "a.db"), dim=16) as one:
        live = one.engine.find("default")
        one.engine.settle(live.configure(reward_wait=WAIT, default_reward=0.25))
        yield Personalizer(one)


def test_a_rank_names_one_action_and_lists_all_with_their_probabilities(client: Personalizer) -> None:
    found = client.rank(eventId="75269AD0", excludedActions=["pasta"])
    assert set(found) == {"eventId", "rewardActionId", "ranking"}
    assert found["eventId"] == "75269AD0"
    assert found["ranking"][0] == {"id": found["rewardActionId"], "probability": 1.0}
    assert found["ranking"][-1] == {"id": "pasta", "probability": 0.0}
    assert {one["id"] for one in found["ranking"]} == {"pasta", "ice cream", "juice"}
    assert client.rank(eventId="75269AD0", excludedActions=["pasta"]) == found
    other = client.post("rank", {"actions": ACTIONS, "eventId": "75269AD0"})
    assert (other.status_code, "another request" in other.json()["detail"]) == (409, True)
    assert client.rank()["eventId"] not in ("", "75269AD0")
    assert client.live.state.users.ids == ("ann",)


def test_probabilities_are_those_of_the_choice_or_unknown(client: Personalizer) -> None:
    client.served.engine.settle(client.live.configure(uniform_share=0.3))
    shown = set()
    for _ in range(60):
        found = client.rank()["ranking"]
        own = found[0]["probability"]
        shown.add(round(own, 6))
        others = [one["probability"] for one in found[1:]]
        if own > 0.5:
            assert others == pytest.approx([0.1, 0.1])
            assert own + sum(others) == pytest.approx(1.0)
        else:  # drawn: one of the others is the policy's own choice, and nobody says which
            assert others == [None, None]
    assert shown == {0.8, 0.1}


def test_vectors_have_the_features_of_the_action_and_of_the_context(client: Personalizer) -> None:
    event = client.rank(eventId="e")["eventId"]
    waiting = client.live.state.waiting[event]
    context = hash_features({"user": {"age": "20-30"}}, {"timeOfDay": "Morning"})
    actions = [hash_features({"id": one["id"]}, *one["features"]) for one in ACTIONS]
    expected = action_vectors(context, actions, 16)
    chosen = [one["id"] for one in ACTIONS].index(waiting.items[0])
    assert np.array_equal(waiting.vectors()[0], expected[chosen])


@pytest.mark.parametrize(
    ("context", "user"),
    [
        ([{"user": "bob"}], "bob"),
        ([{"time": "now"}, {"user": {"id": 7}}], "7"),
        ([{"user": {"age": "20"}}], "everyone"),
        ([{"user": True}], "everyone"),
        (None, "everyone"),
    ],
)
def test_the_context_names_the_user(client: Personalizer, context: Any, user: str) -> None:
    client.rank(contextFeatures=context)
    assert client.live.state.users.ids == (user,)


def test_the_first_reward_counts_and_later_ones_are_discarded(client: Personalizer) -> None:
    event = client.rank()["eventId"]
    assert [client.reward(event, value) for value in (1.0, 1.0, 0.5)] == [204, 204, 204]
    assert client.rounds() == 1
    assert client.live.state.outcomes.total.policy.reward == pytest.approx(1.0)
    assert client.reward("never ranked", 1.0) == 404


def test_the_default_reward_counts_when_the_wait_is_over(client: Personalizer) -> None:
    client.rank()
    client.wait(WAIT - 10)
    assert client.rounds() == 0
    client.wait(20)
    assert client.rounds() == 1
    assert client.live.state.outcomes.total.policy.reward == pytest.approx(0.25)


# The four cases of Personalizer's page on deferred activation.


def test_a_deferred_event_that_is_not_activated_teaches_nothing(client: Personalizer) -> None:
    for event, rewarded in (("silent", False), ("rewarded", True)):
        client.rank(eventId=event, deferActivation=True)
        if rewarded:
            assert client.reward(event, 1.0) == 204
    client.wait(WAIT + 10)
    assert client.rounds() == 0
    assert client.live.state.waiting == {}
    assert client.live.state.outcomes.total.policy.decisions == 0
    assert client.reward("rewarded", 1.0) == 204
    assert client.post("events/silent/activate").status_code == 204
    client.wait(WAIT + 10)
    assert client.rounds() == 0


@pytest.mark.parametrize("order", [("activate", "reward"), ("reward", "activate")])
def test_an_activated_event_teaches_its_reward_whichever_came_first(
    client: Personalizer, order: tuple[str, str]
) -> None:
    client.rank(eventId="e", deferActivation=True)
    for call in order:
        assert client.rounds() == 0
        for _ in range(2):  # repeated calls change nothing
            assert client.post(f"events/e/{call}", {"value": 0.7}).status_code == 204
    assert client.rounds() == 1
    assert client.live.state.outcomes.total.policy.reward == pytest.approx(0.7)
    assert client.live.state.outcomes.total.policy.decisions == 1
    client.wait(WAIT + 10)
    assert client.rounds() == 1


def test_an_activated_event_without_a_reward_gets_the_default(client: Personalizer) -> None:
    client.rank(eventId="e", deferActivation=True)
    assert client.post("events/e/activate").status_code == 204
    client.wait(WAIT + 10)
    assert (client.rounds(), client.live.state.outcomes.total.policy.reward) == pytest.approx((1, 0.25))


def test_activating_an_active_event_changes_nothing_and_an_unknown_one_is_told(client: Personalizer) -> None:
    client.rank(eventId="e")
    before = client.live.state.seq
    assert client.post("events/e/activate").status_code == 204
    assert client.live.state.seq == before
    assert client.post("events/unknown/activate").status_code == 404


def test_deferred_events_are_the_same_after_a_restart(where: str) -> None:
    with served(where, dim=16) as one:
        client = Personalizer(one)
        for event in ("held", "silent", "active"):
            client.rank(eventId=event, deferActivation=True)
        client.reward("held", 0.5)
        client.post("events/active/activate")
        one.engine.settle(client.live.decide("bob", arms=np.eye(16)[:2]))
        client.live.snapshots.take()
        client.rank(eventId="later", deferActivation=True)
    with served(where) as one:
        client = Personalizer(one)
        deferred = {name for name, one in client.live.state.waiting.items() if one.deferred}
        assert deferred == {"held", "silent", "later"}
        for event in ("held", "silent", "later"):
            assert client.post(f"events/{event}/activate").status_code == 204
        assert client.rounds() == 1
        assert client.reward("silent", 1.0) == 204
        before = client.live.state.policy.estimates.copy()
    with Recommender(store=where) as again:
        assert again.policy.rounds == 2
        assert np.array_equal(again.policy.estimates, before)


SLOTS: list[dict[str, Any]] = [
    {"id": "Main Article", "features": [{"size": "Large"}], "baselineAction": "pasta"},
    {"id": "Side Bar", "excludedActions": ["juice"], "baselineAction": "juice"},
]


def test_each_slot_gets_an_action_of_its_own(client: Personalizer) -> None:
    body = {"actions": ACTIONS, "contextFeatures": CONTEXT, "slots": SLOTS, "eventId": "m"}
    found = client.post("multislot/rank", body)
    assert found.status_code == 201
    chosen = {one["id"]: one["rewardActionId"] for one in found.json()["slots"]}
    assert list(chosen) == ["Main Article", "Side Bar"]
    assert chosen["Side Bar"] not in ("juice", chosen["Main Article"])
    assert client.post("multislot/rank", body).json() == found.json()
    given = [{"slotId": "Side Bar", "value": 0.5}]
    for _ in range(2):
        assert client.post("multislot/events/m/reward", {"reward": given}).status_code == 204
    assert client.rounds() == 1
    client.wait(WAIT + 10)
    assert client.rounds() == 2
    assert client.live.state.outcomes.total.policy.reward == pytest.approx(0.75)  # with the default


def test_all_slots_of_a_deferred_event_are_activated_together(client: Personalizer) -> None:
    body = {"actions": ACTIONS, "slots": SLOTS, "deferActivation": True, "eventId": "m"}
    client.post("multislot/rank", body)
    client.post("multislot/rank", {**body, "eventId": "m2"})
    assert client.post("multislot/events/m/activate").status_code == 204
    client.wait(WAIT + 10)
    assert client.rounds() == 2
    unknown = client.post("multislot/events/m/activate")
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "no slot of event 'm' waits for a reward")


@pytest.mark.parametrize("version", ["v1.0", "v1.1-preview.3", ""])
def test_every_version_of_the_path_leads_here(client: Personalizer, version: str) -> None:
    found = Personalizer(client.served, version)
    event = found.rank()["eventId"]
    assert found.reward(event, 1.0) == 204
    wrong = Personalizer(client.served, "v2.0").post("rank", {"actions": ACTIONS})
    assert wrong.status_code == 404


def test_the_subscription_key_is_a_key_of_this_service(client: Personalizer) -> None:
    one = client.served
    one.engine.settle(one.engine.create("other", PolicySettings(dim=4)))
    key = one.engine.journal.run(lambda: create_key(one.engine.store, "writer", policy="default"))
    one.keys.refresh()
    assert client.post("rank", {"actions": ACTIONS}).status_code == 401
    sent = {"Ocp-Apim-Subscription-Key": str(key)}
    for policy, status in (("default", 201), ("other", 403)):
        url = f"{one.url}/v1/policies/{policy}/personalizer/v1.0/rank"
        answer = httpx.post(url, json={"actions": ACTIONS}, headers=sent, trust_env=False)
        assert answer.status_code == status
    twice = httpx.post(
        f"{one.url}/v1/policies/default/personalizer/rank",
        json={"actions": ACTIONS},
        headers=[*sent.items(), *sent.items()],
        trust_env=False,
    )
    assert twice.status_code == 400


def test_a_deferred_decision_is_of_one_item(client: Personalizer) -> None:
    with pytest.raises(Exception, match="a deferred decision is of one item"):
        client.live.decide("ann", arms=np.eye(16)[:3], k=2, deferred=True)
    client.rank(eventId="e", deferActivation=True)
    with pytest.raises(Exception, match="takes one reward, without part"):
        client.live.reward("e", 1.0, part="click")
