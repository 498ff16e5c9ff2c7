"""The state of one policy, a function of the log: the same events give the same state, bit for bit."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappush
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import ArgumentError, DataError
from coterie.policies.base import LinearBandit
from coterie.service.core.known_items import KnownItems, Numbering
from coterie.service.core.outcomes import Outcomes, Settled
from coterie.service.settings import USER_PARAMS, PolicySettings
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event, text_size
from coterie.types import Floats, Ints
from coterie.validation import shown

WAITING_SIZE = 700
"""Bytes of a decision that waits, apart from its vectors and the ids of its user and items."""
PART_SIZE = 100
"""Bytes of a part of its reward, apart from the part's name."""
UNKNOWN_USER = "no user {}: it has not been seen, or was removed"
EARLY = 500
"""Users among whom most clusters have their first member: these labels are searched first."""


class Waiting(NamedTuple):
    """A decision that waits for its reward: its user, its items, when it expires, and how it was made.

    `x` holds the vectors of the items, float64 values, rows first. `named` says whether `items` are names of
    items, and not only positions in a matrix of arms. `parts` are the parts of its reward so far, `instead`
    the item and the vector that were shown in shadow mode, and `experiment` the one that it was made in.
    `counted` is the reward that it counts with until its own comes, if it does. A `deferred`
    one counts for nothing unless it is activated; its reward until then is its only part.
    """

    user: str
    items: tuple[str, ...]
    x: bytes
    expires: float | None
    drawn: bool
    named: bool = True
    parts: tuple[tuple[str, float], ...] = ()
    instead: tuple[str | None, bytes] | None = None
    experiment: str | None = None
    counted: float | None = None
    deferred: bool = False

    def vectors(self) -> Floats:
        """Return the vectors, one per row, read-only."""
        return np.frombuffer(self.x).reshape(len(self.items), -1)

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory, with its id and its timer."""
        shown = WAITING_SIZE + len(self.x) + text_size(self.user) + sum(map(text_size, self.items))
        instead = 0 if self.instead is None else 500 + len(self.instead[1])
        return shown + instead + sum([PART_SIZE + text_size(name) for name, _ in self.parts])


class PolicyState:
    """A policy, the ids of its users, its catalogue and the decisions that wait.

    `apply` is the only way in which any of it changes, with one exception: a decision adds a new user before
    its event exists. Replaying that event adds the user again.
    """

    def __init__(self, settings: PolicySettings, policy: LinearBandit | None = None) -> None:
        """Start with a policy before its first round, unless one is given."""
        self.settings = settings
        self.policy = settings.make() if policy is None else policy
        self.users = Numbering(settings.users, UNKNOWN_USER)
        self.items = KnownItems(settings.dim)
        self.waiting: dict[str, Waiting] = {}
        self.waiting_bytes = 0
        self.timers: list[tuple[float, str]] = []
        self.counts: Counter[str] = Counter()
        self.outcomes = Outcomes()
        self.seq = 0
        self.at = 0.0
        self._stand_in: LinearBandit | None = None
        self._generator: Mapping[str, Any] | None = None
        self._labels: Ints | None = None
        self._firsts: dict[int, int] = {}
        self._steps: dict[str, Callable[[Event], None]] = {
            events.CREATED: self._configured,
            events.CONFIGURED: self._configured,
            events.ITEMS: self._items,
            events.DECISION: self._decision,
            events.ACTIVATED: self._activated,
            events.PART: self._part,
            events.REWARD: self._reward,
            events.FEEDBACK: self._feedback,
            events.EXPIRED: self._expired,
            events.RETIRED: lambda event: None,
        }

    def apply(self, event: Event) -> None:
        """Change the state by an event, when it happens or when it is replayed."""
        if event.kind not in self._steps:
            raise DataError(f"an event of a kind that this Coterie does not know: {shown(event.kind)}")
        self._steps[event.kind](event)
        self.counts[event.kind] += 1
        self.seq, self.at = event.seq, event.at

    def policy_for(self, user: str) -> tuple[LinearBandit, int]:
        """Return the policy that decides for a user, and the user's number in it.

        A new user is added. While the policy is frozen, new users share a copy of it that has one more user:
        adding them to the policy may change what others are recommended.
        """
        number = self.users.find(user)
        if number is not None:
            return self.policy, number
        if self.settings.mode != "frozen":
            return self.policy, self.join(user)
        if self._stand_in is None:
            self.check_new_user(user)
            stand_in = copy.copy(self.policy)
            stand_in.add_users(1)
            self._stand_in = stand_in
        self._stand_in.generator.bit_generator.state = self.policy.generator.bit_generator.state
        return self._stand_in, self._stand_in.n_users - 1

    def join(self, user: str) -> int:
        """Return the number of a user, who is added if new."""
        number = self.users.find(user)
        if number is not None:
            return number
        self.check_new_user(user)
        # A policy cannot have no users: one made without any has room for the first who comes.
        if len(self.users) == self.policy.n_users:
            self.policy.add_users(1)
        return self.users.add(user)

    def check_new_user(self, user: str) -> None:
        """Refuse a new user of a policy whose users were all given at the start."""
        if self.users.find(user) is None and any(name in self.settings.params for name in USER_PARAMS):
            kind = self.settings.policy
            raise ArgumentError(f"user must be one that {kind} was made with, got {shown(user)}")

    def generator_state(self, policy: LinearBandit) -> Mapping[str, Any]:
        """Return the state of a policy's generator."""
        if self._generator is None or policy is not self.policy:
            return policy.generator.bit_generator.state
        return self._generator

    def cache_generator_state(self, found: Mapping[str, Any] | None) -> None:
        """Keep the state of the generator: NumPy takes as long to return it as a decision takes."""
        self._generator = found

    def cluster_number(self, number: int) -> int:
        """Return the cluster of a user, named by the number of its first member."""
        # Labels of all users take longer than a decision among many. So the array is read in place where the
        # learner has one, and the first member of each cluster is kept until the policy learns again.
        policy, labels = self.policy, self._labels
        if labels is None or len(labels) != policy.n_users:
            labels = self._labels = policy.learner.label_array()
            if labels is None:
                return policy.learner.first_member(number)
            self._firsts.clear()
        label = labels.item(number)
        if label < 0:  # in no cluster yet
            return policy.learner.first_member(number)
        first = self._firsts.get(label)
        if first is None:
            first = self._firsts[label] = first_with_label(labels, number)
        return first

    def start_waiting(self, decision: str, waiting: Waiting) -> None:
        """Keep a decision until its reward comes or its time is over."""
        self._stop_waiting(decision)
        self.waiting[decision] = waiting
        self.waiting_bytes += waiting.size
        # A reward does not remove its timer, which would mean a search: `expire` skips what is settled.
        if waiting.expires is not None:
            heappush(self.timers, (waiting.expires, decision))
            if len(self.timers) > 2 * len(self.waiting) + 1_000:
                self._drop_old_timers()

    def _stop_waiting(self, decision: str | None) -> Waiting | None:
        """Let a decision wait no more; return what it was, if it waited."""
        waiting = self.waiting.pop(decision or "", None)
        if waiting is not None:
            self.waiting_bytes -= waiting.size
        return waiting

    def _drop_old_timers(self) -> None:
        """Keep the timers of decisions that wait; in place, since a loop over them may be under way."""
        self.timers[:] = [(one.expires, key) for key, one in self.waiting.items() if one.expires is not None]
        heapify(self.timers)

    def _configured(self, event: Event) -> None:
        self.settings = PolicySettings.from_json(event.detail or "{}")
        self._stand_in = None

    @property
    def catalogue_version(self) -> int:
        """How often the catalogue was changed."""
        return self.counts[events.ITEMS]

    def _items(self, event: Event) -> None:
        fields = event.fields()
        if fields.get("all"):
            self.items.clear()
        self.items.put(fields.get("put", ()), event.vectors(self.settings.dim), fields.get("tags"))
        self.items.remove(one for one in fields.get("removed", ()) if one in self.items)

    def _decision(self, event: Event) -> None:
        if event.decision is None or event.user is None:
            raise DataError("a decision without its id or its user")
        fields = event.fields()
        if self.settings.mode != "frozen":
            self.join(event.user)
        if "generator" in fields:
            set_generator(self.policy, fields["generator"])
            self.cache_generator_state(None)
        waiting = self.shown_by(event)
        if waiting.named:
            for one in waiting.items:
                self.items.known.add(one)
        self.start_waiting(event.decision, waiting if waiting.deferred else self._count_shown(event, waiting))

    def _count_shown(self, event: Event, waiting: Waiting) -> Waiting:
        """Count a decision that is shown, with the default reward; the event has its probability."""
        waiting = waiting._replace(counted=self.settings.default_reward)
        # In shadow mode something else is shown, which the reward names.
        item = None if self.settings.mode == "shadow" else self._first_number(waiting)
        self.outcomes.decide(
            event.at,
            waiting.user,
            drawn=waiting.drawn,
            propensity=event.fields().get("propensity"),
            item=item,
            experiment=waiting.experiment,
        )
        if waiting.counted is not None:
            self.outcomes.credit(item, counted=1, reward=waiting.counted)
            self._count(event.at, waiting, 1, waiting.counted)
        return waiting

    def _activated(self, event: Event) -> None:
        waiting = self.waiting.get(event.decision or "")
        if waiting is None or event.decision is None:
            raise DataError(f"an activation of {shown(event.decision)}, which does not wait for one")
        # A reward that came before is counted next, by an event of its own.
        active = self._count_shown(event, waiting._replace(deferred=False, parts=()))
        self.waiting[event.decision] = active
        self.waiting_bytes += active.size - waiting.size

    def _first_number(self, waiting: Waiting) -> int | None:
        """Return the number of the first item that a decision chose, if it has a name."""
        return self.items.known.find(waiting.items[0]) if waiting.named else None

    def shown_by(self, decision: Event) -> Waiting:
        """Return what a decision has shown to whom, as it waits, or waited, for its reward."""
        fields, wait = decision.fields(), self.settings.reward_wait
        items = tuple(fields.get("ranking", (decision.item or "",)))
        expires = None if wait is None else decision.at + wait
        x = decision.chosen_vectors(self.settings.dim).tobytes()
        return Waiting(
            user=decision.user or "",
            items=items,
            x=x,
            expires=expires,
            drawn="drawn" in fields,
            named="unnamed" not in fields,
            experiment=fields.get("experiment"),
            deferred="deferred" in fields,
        )

    def _part(self, event: Event) -> None:
        waiting = self.waiting.get(event.decision or "")
        if waiting is None or event.decision is None or event.reward is None:
            raise DataError(f"a part of a reward for {shown(event.decision)}, which does not wait for one")
        added = waiting._replace(
            parts=(*waiting.parts, (event.fields()["part"], event.reward)),
            instead=waiting.instead if event.x is None else (event.item, event.x),
        )
        self.waiting[event.decision] = added
        self.waiting_bytes += added.size - waiting.size

    def _settle(self, event: Event, waiting: Waiting, *, before: float | None) -> None:
        """Count the reward of a decision; `before` is what was counted for it already, if anything was."""
        fields, reward = event.fields(), event.reward
        changed = (reward or 0.0) - (before or 0.0)
        count = int(reward is not None) - int(before is not None)
        if fields.get("shadow"):
            if event.item is not None:
                self.outcomes.credit(
                    self.items.known.add(event.item), shown=1, counted=1, reward=reward or 0.0
                )
        elif self.settings.mode != "shadow":
            self.outcomes.credit(self._first_number(waiting), counted=count, reward=changed)
        answered = int(event.kind == events.REWARD and not fields.get("again"))
        self._count(event.at, waiting, count, changed, answered)

    def _count(self, at: float, waiting: Waiting, count: int, reward: float, answered: int = 0) -> None:
        """Count a decision, or another reward than it was counted with."""
        self.outcomes.settle(
            Settled(at, waiting.user, waiting.drawn, waiting.experiment, count, reward, answered)
        )

    def _reward(self, event: Event) -> None:
        waiting = self._stop_waiting(event.decision)
        fields = event.fields()
        if waiting is not None:
            self._settle(event, waiting, before=waiting.counted)
        elif event.user is not None:
            # It came late, and says itself of what decision it is.
            names = fields.get("items")
            late = Waiting(event.user, tuple(names or ("",)), b"", None, "drawn" in fields, bool(names))
            late = late._replace(experiment=fields.get("experiment"))
            self._settle(event, late, before=fields.get("before"))
        if fields.get("ignored") or (self.settings.mode == "shadow" and event.x is None):
            return
        vectors = event.vectors(self.settings.dim) if event.x is not None else None
        names = fields.get("items")
        if fields.get("shadow"):
            names = None if event.item is None else (event.item,)
        elif waiting is not None:
            names = waiting.items if waiting.named else None
            vectors = waiting.vectors() if vectors is None else vectors
        if vectors is None:
            raise DataError(
                f"a reward for {shown(event.decision)}, a decision that is not in the log before it"
            )
        self._learn(event, vectors, names, fields.get("clicked"))

    def _feedback(self, event: Event) -> None:
        names = None if event.item is None else (event.item,)
        self._learn(event, event.vectors(self.settings.dim), names, None)

    def _expired(self, event: Event) -> None:
        waiting = self._stop_waiting(event.decision)
        if waiting is not None:
            self._settle(event, waiting, before=waiting.counted)
        if waiting is not None and self.settings.mode == "online" and event.reward is not None:
            self._learn(event, waiting.vectors(), waiting.items if waiting.named else None, None)

    def _learn(self, event: Event, vectors: Floats, names: Sequence[str] | None, clicked: int | None) -> None:
        """Update the policy by a reward for one vector, or by the click in a list of several."""
        items = None if names is None else [self.items.known.add(one) for one in names]
        if self.settings.mode == "frozen":
            return
        if event.user is None or event.reward is None:
            raise DataError("a reward without its user or its value")
        number = self.join(event.user)
        self._firsts.clear()  # an update may move any user to another cluster
        if len(vectors) == 1:
            self.policy.update(number, vectors[0], event.reward, item=None if items is None else items[0])
        else:
            self.policy.update_list(number, vectors, clicked, items=items)


def set_generator(policy: LinearBandit, fields: list[Any]) -> None:
    """Set a policy's generator to the state that an event recorded."""
    state: dict[str, Any] = dict(policy.generator.bit_generator.state)
    state["state"] = {"state": int(fields[0], 16), "inc": int(fields[1], 16)}
    state["has_uint32"], state["uinteger"] = fields[2:]
    policy.generator.bit_generator.state = state


def generator_fields(state: dict[str, Any]) -> list[Any]:
    """Return the state of a generator as events record it."""
    inner = state["state"]
    return [f"{inner['state']:x}", f"{inner['inc']:x}", state["has_uint32"], state["uinteger"]]


def first_with_label(labels: Ints, number: int) -> int:
    """Return the first user with the label of this one."""
    mine = labels[number]
    first = int((labels[:EARLY] == mine).argmax())
    return first if labels[first] == mine else int((labels == mine).argmax())
