"""The calls of Azure Personalizer: rank, reward and activate, for one slot or several, with the same JSON.

A client of Personalizer needs another endpoint (`http://HOST/v1/policies/NAME`) and a key of this service. An
event is a decision whose id is the eventId, and actions are arms whose vectors are hashed from their features
and those of the context. Each slot of several is a decision of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from coterie.errors import Conflict
from coterie.feature_hashing import (
    HashedFeatures,
    action_vectors,
    check_pairs,
    hash_features,
    user_and_context,
)
from coterie.service.core.decisions import Decision
from coterie.service.core.ids import checked_id, new_id
from coterie.service.core.live_policy import LivePolicy
from coterie.service.http import personalizer_messages as messages
from coterie.service.http.problems import Refusal
from coterie.service.http.service import policy_of, raw_body, service_of
from coterie.service.storage.journal import PendingResult
from coterie.validation import shown

M = TypeVar("M")
VERSION = re.compile(r"^(/v1/policies/[^/]+/personalizer)/v1\.[^/]+/")
"""What older clients write (`personalizer/v1.0/rank`); newer ones have the version in the query."""
NOBODY = "everyone"
"""The user of requests that name none: they share what is learnt."""
encode = msgspec.json.Encoder().encode
rank_decoder = msgspec.json.Decoder(messages.PersonalizerRank)
slots_decoder = msgspec.json.Decoder(messages.PersonalizerSlots)
reward_decoder = msgspec.json.Decoder(messages.PersonalizerReward)
slot_rewards_decoder = msgspec.json.Decoder(messages.PersonalizerSlotRewards)


def without_version(path: str) -> str:
    """Return a path without the version that older clients of Personalizer have in it.

    >>> without_version("/v1/policies/shop/personalizer/v1.0/events/e1/reward")
    '/v1/policies/shop/personalizer/events/e1/reward'
    """
    return VERSION.sub(r"\1/", path, count=1)


async def rank(request: Request) -> Response:
    """Choose one action."""
    return await _answer(request, lambda live, body: _rank(live, rank_decoder.decode(body)), 201)


async def reward_event(request: Request) -> Response:
    """Give the reward of an event; the first one counts."""
    event = request.path_params["event"]
    return await _answer(request, lambda live, body: _reward(live, event, reward_decoder.decode(body).value))


async def activate_event(request: Request) -> Response:
    """Say that an event was shown that was deferred."""
    event = request.path_params["event"]
    return await _answer(request, lambda live, body: _activate(live, [event]))


async def rank_slots(request: Request) -> Response:
    """Choose an action for each slot."""
    return await _answer(request, lambda live, body: _rank_slots(live, slots_decoder.decode(body)), 201)


async def reward_slots(request: Request) -> Response:
    """Give rewards of slots of an event; the first one of each counts."""
    event = request.path_params["event"]
    return await _answer(
        request, lambda live, body: _reward_slots(live, event, slot_rewards_decoder.decode(body).reward)
    )


async def activate_slots(request: Request) -> Response:
    """Say that all slots of an event were shown that was deferred."""
    event = request.path_params["event"]
    return await _answer(request, lambda live, body: _activate(live, _slots_of(live, event)))


async def _answer(
    request: Request, perform: Callable[[LivePolicy, bytes], PendingResult[Any]], status: int = 204
) -> Response:
    """Perform a call in a thread, and answer when it is durable."""
    live, body = policy_of(request), await raw_body(request)
    found = await service_of(request).durable(await run_in_threadpool(perform, live, body))
    if status == 204:
        return Response(status_code=204)
    return Response(encode(found), status, media_type="application/json")


def _rank(live: LivePolicy, asked: messages.PersonalizerRank) -> PendingResult[messages.PersonalizerRanking]:
    user, context = _user_and_context(asked.context_features)
    excluded = set(asked.excluded_actions or [])
    actions = _hashed(asked.actions)
    offered = {name: one for name, one in actions.items() if name not in excluded}
    if not offered:
        raise Refusal(422, "actions must have one that is not excluded")
    deferred = bool(asked.defer_activation)
    decision, seq = _decide(live, user, hash_features(*context), offered, asked.event_id, deferred)
    other = _other_probability(decision, len(offered))
    rest = [one for one in offered if one != decision.chosen]
    ranking = [
        messages.PersonalizerRanked(id=decision.chosen, probability=decision.propensity),
        *[messages.PersonalizerRanked(id=one, probability=other) for one in rest],
        *[messages.PersonalizerRanked(id=one, probability=0.0) for one in actions if one in excluded],
    ]
    answer = messages.PersonalizerRanking(
        event_id=decision.id, reward_action_id=decision.chosen, ranking=ranking
    )
    return PendingResult(answer, seq)


def _other_probability(decision: Decision, count: int) -> float | None:
    """Return the probability of each action that was not chosen; None if they differ, or are not known.

    A choice of the policy's own has at least 1/K, and the others share what is left equally. A choice that
    was drawn beside it has less, and one of the others, the policy's own choice, has more.
    """
    own = decision.propensity
    if own is None or count < 2 or own < (1 - 1e-9) / count:
        return None
    return (1.0 - own) / (count - 1)


def _rank_slots(
    live: LivePolicy, asked: messages.PersonalizerSlots
) -> PendingResult[messages.PersonalizerSlotRanking]:
    """Decide slot after slot, each among the actions that are left."""
    user, context = _user_and_context(asked.context_features)
    event, deferred = asked.event_id or new_id(), bool(asked.defer_activation)
    actions = _hashed(asked.actions)
    placed = _checked_slots(asked.slots, event, context, actions)
    chosen: dict[str, str] = {}
    last = 0
    with live.reading():  # no recovery comes between two slots, so the last one's number stands for all
        for slot, described in zip(asked.slots, placed, strict=True):
            gone = {*(slot.excluded_actions or []), *chosen.values()}
            left = {name: one for name, one in actions.items() if name not in gone}
            decision, seq = _decide(live, user, described, left, _slot_id(event, slot.id), deferred)
            chosen[slot.id], last = decision.chosen, max(last, seq)
    slots = [messages.PersonalizerSlotChoice(id=one, reward_action_id=chosen[one]) for one in chosen]
    return PendingResult(messages.PersonalizerSlotRanking(slots=slots, event_id=event), last)


def _checked_slots(
    slots: Sequence[messages.PersonalizerSlot],
    event: str,
    context: list[dict[str, Any]],
    actions: dict[str, HashedFeatures],
) -> list[HashedFeatures]:
    """Return the context in each slot; what cannot be decided is refused before the first slot is."""
    if len({slot.id for slot in slots}) != len(slots):
        raise Refusal(422, "slots must name each id once")
    placed = []
    for before, slot in enumerate(slots):
        _slot_id(event, slot.id)
        allowed = len(actions.keys() - set(slot.excluded_actions or []))
        if allowed <= before:  # the slots before may have taken all of them
            raise Refusal(
                422, f"slot {shown(slot.id)} needs actions that are not excluded: {before + 1}, got {allowed}"
            )
        placed.append(hash_features(*context, {"slot": slot.features or []}))
        check_pairs(placed[-1], list(actions.values()))
    return placed


def _hashed(actions: Sequence[messages.PersonalizerAction]) -> dict[str, HashedFeatures]:
    """Return the features of each action, its id among them."""
    found = {one.id: hash_features({"id": one.id}, *(one.features or [])) for one in actions}
    if len(found) != len(actions):
        raise Refusal(422, "actions must name each id once")
    return found


def _decide(
    live: LivePolicy,
    user: str,
    context: HashedFeatures,
    actions: dict[str, HashedFeatures],
    decision_id: str | None,
    deferred: bool,
) -> PendingResult[Decision]:
    """Decide among actions, as vectors of the policy's dimension."""
    vectors = action_vectors(context, list(actions.values()), live.state.settings.dim)
    arms = dict(zip(actions, vectors, strict=True))
    return live.decide(user, arms=arms, decision_id=decision_id, deferred=deferred)


def _user_and_context(features: list[dict[str, Any]] | None) -> tuple[str, list[dict[str, Any]]]:
    user, context = user_and_context(features or [])
    return NOBODY if user is None else checked_id("user", user), context


def _reward(live: LivePolicy, event: str, value: float) -> PendingResult[None]:
    """Count a reward, unless an earlier one counts, or the event was never activated."""
    try:
        return PendingResult(None, live.reward(event, value).seq)
    except Conflict:
        return PendingResult(None, 0)


def _reward_slots(
    live: LivePolicy, event: str, rewards: Sequence[messages.PersonalizerSlotReward]
) -> PendingResult[None]:
    with live.reading():
        given = [_reward(live, _slot_id(event, one.slot_id), one.value) for one in rewards]
    return PendingResult(None, max((one.seq for one in given), default=0))


def _activate(live: LivePolicy, decisions: Sequence[str]) -> PendingResult[None]:
    """Activate decisions, unless their time is over."""
    last = 0
    with live.reading():
        for one in decisions:
            with suppress(Conflict):
                last = max(last, live.activate(one).seq)
    return PendingResult(None, last)


def _slot_id(event: str, slot: str) -> str:
    """Return the id of the decision for a slot."""
    return checked_id("eventId and the slot's id together", f"{event}/{slot}")


def _slots_of(live: LivePolicy, event: str) -> list[str]:
    """Return the decisions of an event that wait, one for each slot."""
    with live.reading() as state:
        waiting = list(state.waiting)
    found = [one for one in waiting if one.startswith(f"{event}/")]  # others have their turn meanwhile
    if not found:
        raise Refusal(404, f"no slot of event {shown(event)} waits for a reward")
    return found
