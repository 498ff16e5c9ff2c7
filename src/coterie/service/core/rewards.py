"""Rewards: checked against what they are for, counted once, early or late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import ArrayLike

from coterie.errors import ArgumentError, Conflict, UnknownName
from coterie.service.core import log_events as events
from coterie.service.core.decisions import RewardResult, clicked_position, new_id
from coterie.service.core.ids import checked_id
from coterie.service.core.log_events import Event, chosen_vectors, detail
from coterie.service.core.state import Waiting
from coterie.validation import arm_vector, finite, number, shown

if TYPE_CHECKING:
    from coterie.service.core.live_policy import LivePolicy


class FeedbackRequest(NamedTuple):
    """A reward for something that the policy did not choose; the same `id` is counted once."""

    user: str
    reward: float
    item: str | None
    x: ArrayLike | None
    id: str | None


def give_reward(
    live: LivePolicy, decision_id: str, reward: float, item: str | None, x: ArrayLike | None
) -> RewardResult:
    """Count the reward of a decision once; whoever calls has the engine's turn."""
    checked_id("decision_id", decision_id)
    value = number("reward", reward)
    known = live.events_of(decision_id)
    decision = events.first(known, events.DECISION)
    if decision is None:
        raise UnknownName(f"no decision {shown(decision_id)}: it was not made here, or was removed")
    if item is not None and item == decision.item and "ranking" not in decision.fields():
        item = None if live.state.settings.mode != "shadow" else item
    if (settled := events.first(known, *events.REWARDED)) is not None:
        result = _settled(live, settled, value, item, x)
        live.duplicates += 1
        return result
    live.expire_one(decision_id)
    waiting = live.state.waiting.get(decision_id)
    fields = _reward_fields(live, decision, waiting, value, item, x)
    if waiting is not None:
        return _emit_reward(live, decision, value, item, fields, drawn=waiting.drawn)
    return _late(live, decision, value, item, fields)


def _reward_fields(
    live: LivePolicy,
    decision: Event,
    waiting: Waiting | None,
    value: float,
    item: str | None,
    x: ArrayLike | None,
) -> dict[str, Any]:
    """What else the event of a reward says: the vector shown instead, or the click in a list."""
    if live.state.settings.mode == "shadow":
        if item is None and x is None:
            raise ArgumentError("in shadow mode a reward names what was shown: give item or x")
        return {"x": _vector(live, item, x), "shadow": True}
    shown_items = waiting.items if waiting else decision.fields().get("ranking", ())
    ranking = shown_items if len(shown_items) > 1 else None
    if x is not None or (item is not None and ranking is None and item != decision.item):
        raise ArgumentError(
            f"the decision chose {shown(decision.item)}; give what was shown instead as feedback"
        )
    if ranking is None:
        return {}
    return {"clicked": clicked_position(ranking, item, value)}


def _emit_reward(
    live: LivePolicy,
    decision: Event,
    value: float,
    item: str | None,
    fields: Mapping[str, Any],
    *,
    drawn: bool,
) -> RewardResult:
    told = {name: one for name, one in fields.items() if name != "x"}
    event = live.event(
        events.REWARD,
        decision=decision.decision,
        user=decision.user,
        item=item,
        reward=value,
        x=fields.get("x"),
        detail=detail(**told) if told else None,
    )
    with live.engine.change:
        live.happen(event)
    live.totals.add(value, drawn)
    learnt = live.state.settings.mode != "frozen" and not told.get("ignored")
    return RewardResult(decision.decision or "", "counted" if learnt else "recorded")


def _late(
    live: LivePolicy, decision: Event, value: float, item: str | None, fields: dict[str, Any]
) -> RewardResult:
    """A reward after the default was counted: counted too, or instead, or only recorded."""
    late = live.state.settings.late
    if "x" not in fields:
        fields["x"] = chosen_vectors(decision, live.state.settings.dim).tobytes()
    if late != "correct":
        fields["ignored"] = late == "ignore" or None
        drawn = "drawn" in decision.fields()
        result = _emit_reward(live, decision, value, item, fields, drawn=drawn)
        return result._replace(status="late") if result.status == "counted" else result
    event = live.event(
        events.REWARD,
        decision=decision.decision,
        user=decision.user,
        item=item,
        reward=value,
        x=fields["x"],
        detail=detail(**{name: one for name, one in fields.items() if name != "x"}),
    )
    key = decision.decision or ""
    live.engine.rewrite(live, lambda store: store.replace_default(key, event), added=event.seq)
    return RewardResult(key, "late")


def _settled(
    live: LivePolicy, settled: Event, value: float, item: str | None, x: ArrayLike | None
) -> RewardResult:
    """The same reward once more, or another one."""
    who = shown(settled.decision)
    if settled.reward != value:
        raise Conflict(f"{who} was settled with reward {settled.reward:g}, got {value:g}")
    if settled.item != item:
        raise Conflict(f"{who} was settled for {shown(settled.item)}, got {shown(item)}")
    if x is not None and _given(live, x) != settled.x:
        raise Conflict(f"{who} was settled for another vector x")
    return RewardResult(settled.decision or "", "duplicate")


def check_feedback(live: LivePolicy, told: FeedbackRequest) -> Event | RewardResult:
    """The event of a feedback that can be counted, or what is known of it already; nothing changes."""
    checked_id("user", told.user)
    value = number("reward", told.reward)
    if (told.item is None) == (told.x is None):
        raise ArgumentError("give an item of the catalogue or its vector x, one of the two")
    if told.id is not None:
        known = live.events_of(checked_id("feedback_id", told.id))
        if known and known[0].kind != events.FEEDBACK:
            raise Conflict(f"feedback_id {shown(told.id)} is the id of a decision")
        if known and known[0].user != told.user:
            raise Conflict(f"feedback_id {shown(told.id)} was used for another user")
        if known:
            return _settled(live, known[0], value, told.item, told.x)
    vector = _vector(live, told.item, told.x)
    live.state.check_newcomer(told.user)
    return live.event(
        events.FEEDBACK,
        decision=told.id or new_id(),
        user=told.user,
        item=told.item,
        reward=value,
        x=vector,
    )


def give_feedback(live: LivePolicy, told: FeedbackRequest) -> RewardResult:
    """Count a reward for an item that something else chose; whoever calls has the engine's turn."""
    event = check_feedback(live, told)
    if isinstance(event, RewardResult):
        live.duplicates += 1
        return event
    with live.engine.change:
        live.happen(event)
    frozen = live.state.settings.mode == "frozen"
    return RewardResult(event.decision or "", "recorded" if frozen else "counted")


def _vector(live: LivePolicy, item: str | None, x: ArrayLike | None) -> bytes:
    """The vector of an item of the catalogue, or the one given."""
    if x is not None:
        if item is not None:
            raise ArgumentError("give an item of the catalogue or its vector x, one of the two")
        return _given(live, x)
    vector = live.state.catalogue.vectors([checked_id("item", item)])
    live.check_length("x", vector)
    return vector.tobytes()


def _given(live: LivePolicy, x: ArrayLike) -> bytes:
    """A vector that came with a request."""
    dim = live.state.settings.dim
    vector = finite("x", arm_vector(x, dim)).reshape(1, dim)
    live.check_length("x", vector)
    return vector.tobytes()
