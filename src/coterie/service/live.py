"""One policy while it serves: requests are checked, become events, and the events change the state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError, Conflict, UnknownName
from coterie.policies.base import too_long
from coterie.service import events
from coterie.service.choice import choose
from coterie.service.decisions import (
    Decision,
    Offer,
    RewardResult,
    answer,
    clicked_position,
    decision_event,
    inline_offer,
    new_id,
)
from coterie.service.events import Event, chosen_vectors, detail
from coterie.service.identities import checked_id
from coterie.service.settings import PolicySettings
from coterie.service.state import PolicyState, Waiting
from coterie.types import Floats
from coterie.validation import arm_vector, arms_matrix, finite, number, shown, whole

if TYPE_CHECKING:
    from coterie.service.engine import PolicyEngine

REMEMBERED = 50_000
"""Decisions whose events are kept in memory; others are looked up in the store."""
EXPIRED_AT_ONCE = 1_000
"""Decisions that expire in one go, so that requests come between."""


@dataclass(slots=True)
class RewardTotals:
    """Rewards since the start of the process: of the policy's own choices, and of those drawn uniformly."""

    own: float = 0.0
    own_count: int = 0
    drawn: float = 0.0
    drawn_count: int = 0

    def add(self, reward: float, drawn: bool) -> None:
        """One more reward."""
        if drawn:
            self.drawn, self.drawn_count = self.drawn + reward, self.drawn_count + 1
        else:
            self.own, self.own_count = self.own + reward, self.own_count + 1


class LivePolicy:
    """What can be asked of a policy. Results are promises until the engine says that they are durable."""

    def __init__(self, engine: PolicyEngine, name: str, state: PolicyState) -> None:
        """A policy of an engine, in the state that its log tells."""
        self._engine = engine
        self.name = name
        self.state = state
        self._recent: OrderedDict[str, list[Event]] = OrderedDict()
        self.duplicates = 0
        self.totals = RewardTotals()
        self.epoch = 0
        self.snapshot_seq = state.seq
        self.snapshot_at = 0.0

    def decide(
        self,
        user: str,
        *,
        items: Sequence[str] | None = None,
        arms: Mapping[str, ArrayLike] | ArrayLike | None = None,
        k: int = 1,
        decision_id: str | None = None,
    ) -> Decision:
        """Choose among items of the catalogue (all by default), or among arms that bring their vectors."""
        with self._engine.turn:
            checked_id("user", user)
            offer = self._offer(items, arms)
            if type(k) is not int or not 1 <= k <= len(offer.ids):
                k = whole("k", k, 1, len(offer.ids))
            if decision_id is not None:
                known = self._events_of(checked_id("decision_id", decision_id))
                if known:
                    return self._repeated(known, offer, user, k)
            self.state.check_newcomer(user)
            self._engine.check_room(len(self.state.waiting))
            with self._engine.change:
                outcome = choose(self.state, user, offer.arms, k)
                event = decision_event(
                    self._engine.next_seq,
                    self.name,
                    self._engine.now(),
                    decision=decision_id or new_id(),
                    user=user,
                    offer=offer,
                    outcome=outcome,
                    version=self.state.seq,
                )
                self._happen(event)
            return answer(event)

    def _offer(self, items: Sequence[str] | None, arms: Any) -> Offer:
        """What is on offer, with vectors that the policy can take."""
        if items is not None and arms is not None:
            raise ArgumentError("give items of the catalogue or arms with vectors, not both")
        dim = self.state.settings.dim
        if arms is not None:
            offer = inline_offer(arms, dim)
            self._check_length("arms", offer.arms)
        else:
            if isinstance(items, str):
                raise ArgumentError(f"items must be a list of ids, got {shown(items)}")
            ids = tuple(items) if items is not None else tuple(self.state.catalogue.ids)
            if not ids:
                raise ArgumentError("items must name at least one item, got none; the catalogue may be empty")
            if len(set(ids)) != len(ids):
                raise ArgumentError("items must name each item once")
            offer = Offer(ids, self.state.catalogue.vectors(ids), False)
        self._engine.limits.check_offer(len(offer.ids))
        return offer

    def _repeated(self, known: list[Event], offer: Offer, user: str, k: int) -> Decision:
        """The first answer to the same request."""
        decision = events.first(known, events.DECISION)
        if decision is None or not offer.was_asked(decision, user, k):
            raise Conflict(f"decision_id {shown(known[0].decision)} was used for another request")
        self.duplicates += 1
        return answer(decision)

    def reward(
        self, decision_id: str, reward: float, *, item: str | None = None, x: ArrayLike | None = None
    ) -> RewardResult:
        """Count the reward of a decision once.

        `item` is what was clicked in a list; in shadow mode `item` or `x` is what was shown instead.
        """
        with self._engine.turn:
            checked_id("decision_id", decision_id)
            value = number("reward", reward)
            known = self._events_of(decision_id)
            decision = events.first(known, events.DECISION)
            if decision is None:
                raise UnknownName(f"no decision {shown(decision_id)}: it was not made here, or was removed")
            if item is not None and item == decision.item and "ranking" not in decision.fields():
                item = None if self.state.settings.mode != "shadow" else item
            if (settled := events.first(known, *events.REWARDED)) is not None:
                return self._settled(settled, value, item)
            self.expire_one(decision_id)
            waiting = self.state.waiting.get(decision_id)
            fields = self._reward_fields(decision, waiting, value, item, x)
            if waiting is not None:
                return self._emit_reward(decision, value, item, fields, drawn=waiting.drawn)
            return self._late(decision, value, item, fields)

    def _reward_fields(
        self, decision: Event, waiting: Waiting | None, value: float, item: str | None, x: ArrayLike | None
    ) -> dict[str, Any]:
        """What else the event of a reward says: the vector shown instead, or the click in a list."""
        if self.state.settings.mode == "shadow":
            if item is None and x is None:
                raise ArgumentError("in shadow mode a reward names what was shown: give item or x")
            return {"x": self._vector(item, x)}
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
        self, decision: Event, value: float, item: str | None, fields: Mapping[str, Any], *, drawn: bool
    ) -> RewardResult:
        told = {name: one for name, one in fields.items() if name != "x"}
        with self._engine.change:
            self._happen(
                self._event(
                    events.REWARD,
                    decision=decision.decision,
                    user=decision.user,
                    item=item,
                    reward=value,
                    x=fields.get("x"),
                    detail=detail(**told) if told else None,
                )
            )
        self.totals.add(value, drawn)
        learnt = self.state.settings.mode != "frozen" and not told.get("ignored")
        return RewardResult(decision.decision or "", "counted" if learnt else "recorded")

    def _late(self, decision: Event, value: float, item: str | None, fields: dict[str, Any]) -> RewardResult:
        """A reward after the default was counted: counted too, or instead, or only recorded."""
        late = self.state.settings.late
        if "x" not in fields:
            fields["x"] = chosen_vectors(decision, self.state.settings.dim).tobytes()
        if late != "correct":
            fields["ignored"] = late == "ignore" or None
            drawn = "drawn" in decision.fields()
            result = self._emit_reward(decision, value, item, fields, drawn=drawn)
            return result._replace(status="late") if result.status == "counted" else result
        event = self._event(
            events.REWARD,
            decision=decision.decision,
            user=decision.user,
            item=item,
            reward=value,
            x=fields["x"],
            detail=detail(clicked=fields.get("clicked")),
        )
        key = decision.decision or ""
        self._engine.rewrite(self, lambda store: store.replace_default(key, event), added=event.seq)
        return RewardResult(key, "late")

    def _settled(self, settled: Event, value: float, item: str | None) -> RewardResult:
        """The same reward once more, or another one."""
        if settled.reward != value or settled.item != item:
            raise Conflict(
                f"{shown(settled.decision)} was settled with reward {settled.reward:g}, got {value:g}"
                if settled.reward != value
                else f"{shown(settled.decision)} was settled for {shown(settled.item)}, got {shown(item)}"
            )
        self.duplicates += 1
        return RewardResult(settled.decision or "", "duplicate")

    def feedback(
        self,
        user: str,
        reward: float,
        *,
        item: str | None = None,
        x: ArrayLike | None = None,
        feedback_id: str | None = None,
    ) -> RewardResult:
        """Count a reward for an item that something else chose; the same `feedback_id` is counted once."""
        with self._engine.turn:
            checked_id("user", user)
            value = number("reward", reward)
            if feedback_id is not None:
                known = self._events_of(checked_id("feedback_id", feedback_id))
                if known and known[0].kind != events.FEEDBACK:
                    raise Conflict(f"feedback_id {shown(feedback_id)} is the id of a decision")
                if known and known[0].user != user:
                    raise Conflict(f"feedback_id {shown(feedback_id)} was used for another user")
                if known:
                    return self._settled(known[0], value, item)
            vector = self._vector(item, x)
            self.state.check_newcomer(user)
            key = feedback_id or new_id()
            with self._engine.change:
                self._happen(
                    self._event(events.FEEDBACK, decision=key, user=user, item=item, reward=value, x=vector)
                )
            return RewardResult(key, "recorded" if self.state.settings.mode == "frozen" else "counted")

    def _vector(self, item: str | None, x: ArrayLike | None) -> bytes:
        """The vector of an item of the catalogue, or the one given."""
        if (item is None) == (x is None):
            raise ArgumentError("give an item of the catalogue or its vector x, one of the two")
        dim = self.state.settings.dim
        if x is not None:
            vector = finite("x", arm_vector(x, dim)).reshape(1, dim)
        else:
            vector = self.state.catalogue.vectors([checked_id("item", item)])
        self._check_length("x", vector)
        return vector.tobytes()

    def change_items(
        self,
        put: Mapping[str, ArrayLike] | None = None,
        *,
        remove: Sequence[str] = (),
        replace_all: bool = False,
    ) -> int:
        """Set items of the catalogue and remove others, in one step; how many there are then."""
        with self._engine.turn:
            ids = [checked_id("an item's id", one) for one in put or {}]
            vectors = np.empty((0, self.state.settings.dim))
            if put:
                rows: Any = list(put.values())
                vectors = finite("items", arms_matrix(rows, self.state.settings.dim, "items"))
                self._check_length("items", vectors)
            if remove:
                self.state.catalogue.vectors(list(remove))
            if replace_all or put or remove:
                told = detail(put=ids, removed=list(remove) or None, all=replace_all or None)
                with self._engine.change:
                    self._happen(self._event(events.ITEMS, x=vectors.tobytes(), detail=told))
            return len(self.state.catalogue)

    def configure(self, **changes: Any) -> None:
        """Change settings that may change while a policy runs."""
        with self._engine.turn:
            settings = self.state.settings.changed(**changes)
            if settings != self.state.settings:
                with self._engine.change:
                    self._happen(self._event(events.CONFIGURED, detail=settings.to_json()))

    def expire(self) -> int:
        """Count the default reward of decisions whose time is over; how many there were."""
        with self._engine.turn:
            now, timers, count = self._engine.now(), self.state.timers, 0
            while timers and timers[0][0] <= now and count < EXPIRED_AT_ONCE:
                count += self.expire_one(heappop(timers)[1])
            return count

    def expire_one(self, decision_id: str) -> bool:
        """Count the default reward of a decision if its time is over."""
        waiting = self.state.waiting.get(decision_id)
        if waiting is None or waiting.expires is None or waiting.expires > self._engine.now():
            return False
        with self._engine.change:
            default = self.state.settings.default_reward
            self._happen(self._event(events.EXPIRED, decision=decision_id, user=waiting.user, reward=default))
        return True

    def remove_user(self, user: str) -> None:
        """Forget a user: id, history and statistics; the policy learns anew from what remains."""
        with self._engine.turn:
            self._engine.flush()
            if user not in self.state.users and not self._engine.store.history(self.name, user, 1):
                raise UnknownName(f"no user {shown(user)}: it has not been seen, or was removed")
            told = []
            if user in self.state.settings.users:
                own = self._engine.store.configurations(self.name)
                told = [(seq, PolicySettings.from_json(text).without(user).to_json()) for seq, text in own]
            self._engine.rewrite(self, lambda store: store.forget_user(self.name, user, told))

    @contextmanager
    def reading(self) -> Iterator[PolicyState]:
        """The state, which does not change meanwhile."""
        with self._engine.turn:
            yield self.state

    def stored_history(self, user: str, limit: int) -> list[Event]:
        """The latest events of a user."""
        checked_id("user", user)
        limit = whole("limit", limit, 1, 10_000)
        self._engine.flush()
        return self._engine.store.history(self.name, user, limit)

    def reset(self, state: PolicyState) -> None:
        """Go on from what was read from the store."""
        self.state = state
        self.snapshot_seq = min(self.snapshot_seq, state.seq)
        self._recent.clear()

    def _check_length(self, name: str, vectors: Floats) -> None:
        """Refuse vectors that rounding could not bear."""
        if not self.state.policy.learner.accepts(vectors):
            raise too_long(name, self.state.policy.arguments["ridge"])

    def _events_of(self, decision_id: str) -> list[Event]:
        """Everything that happened to a decision's id."""
        known = self._recent.get(decision_id)
        return self._engine.store.find(self.name, decision_id) if known is None else known

    def _event(self, kind: str, **fields: Any) -> Event:
        return Event(self._engine.next_seq, self.name, kind, self._engine.now(), **fields)

    def _happen(self, event: Event) -> None:
        """Change the state and queue the event for the store."""
        self.state.apply(event)
        self._engine.journal.append(event)
        if event.decision is not None:
            known = self._recent.get(event.decision)
            if known is None and event.kind == events.EXPIRED:
                return  # it is not waiting any more, which is all that a late reward asks
            if known is None and event.kind == events.REWARD:
                known = self._engine.store.find(self.name, event.decision)
            self._recent[event.decision] = [*(known or ()), event]
            self._recent.move_to_end(event.decision)
            self._forget_old()

    def _forget_old(self) -> None:
        """Remember no more than so many decisions, and whatever is not durable yet."""
        while len(self._recent) > REMEMBERED:
            oldest = next(iter(self._recent))
            if self._recent[oldest][-1].seq > self._engine.journal.durable:
                return
            del self._recent[oldest]
