"""All that one policy knows, as a function of the log: the same events give the same state, bit for bit."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappush
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import ArgumentError, UnknownName
from coterie.policies.base import LinearBandit
from coterie.service.settings import USER_PARAMS, PolicySettings
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event
from coterie.types import Floats, Ints
from coterie.validation import shown

EARLY = 500
"""Users among whom most clusters have their first member."""


class Waiting(NamedTuple):
    """A decision that waits for its reward: whom it was for, what was chosen, until when, and how.

    `x` holds the vectors of the items, float64 values, rows first.
    """

    user: str
    items: tuple[str, ...]
    x: bytes
    expires: float | None
    drawn: bool

    def vectors(self) -> Floats:
        """The vectors, one a row, read-only."""
        return np.frombuffer(self.x).reshape(len(self.items), -1)


class Users:
    """The ids of a policy's users; the place in the list is the number that the policy knows."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        """The users known at the start, in order."""
        self._ids = list(ids)
        self._numbers = {one: number for number, one in enumerate(self._ids)}
        self.find: Callable[[str], int | None] = self._numbers.get
        """Returns the number of a user, or None for one who was never seen."""

    def __len__(self) -> int:
        """How many users are known."""
        return len(self._ids)

    def __contains__(self, user: str) -> bool:
        """Is this user known?"""
        return user in self._numbers

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids, in the order of their numbers."""
        return tuple(self._ids)

    def add(self, user: str) -> int:
        """The number of a user who is new."""
        number = self._numbers[user] = len(self._ids)
        self._ids.append(user)
        return number

    def number(self, user: str) -> int:
        """The number of a known user."""
        if user not in self._numbers:
            raise UnknownName(f"no user {shown(user)}: it has not been seen, or was removed")
        return self._numbers[user]

    def named(self, numbers: Iterable[int]) -> list[str]:
        """The ids of these numbers."""
        return [self._ids[number] for number in numbers]


class Catalogue:
    """Items with a vector each, kept as bytes: a matrix of some of them is joined from those."""

    def __init__(self, dim: int, ids: Sequence[str] = (), vectors: Floats | None = None) -> None:
        """The items at the start, a row of `vectors` each."""
        self._dim = dim
        self._rows: dict[str, bytes] = {}
        if vectors is not None:
            self.put(ids, vectors)

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._rows)

    def __contains__(self, item: str) -> bool:
        """Is there such an item?"""
        return item in self._rows

    @property
    def ids(self) -> list[str]:
        """All ids, in the order in which the items came."""
        return list(self._rows)

    def put(self, ids: Sequence[str], vectors: Floats) -> None:
        """Add items, or give those that are there another vector."""
        for item, vector in zip(ids, vectors, strict=True):
            self._rows[item] = vector.tobytes()

    def remove(self, ids: Iterable[str]) -> None:
        """Remove items; the rest keeps its order."""
        for item in ids:
            self._rows.pop(item, None)

    def vectors(self, ids: Sequence[str]) -> Floats:
        """The vectors of these items, a row each, read-only."""
        try:
            content = b"".join(map(self._rows.__getitem__, ids))
        except KeyError as missing:
            raise UnknownName(f"no item {shown(missing.args[0])} in the catalogue of this policy") from None
        return np.frombuffer(content).reshape(len(ids), self._dim)


class PolicyState:
    """A policy, the ids of its users, its catalogue and the decisions that wait.

    `apply` is the only way in which any of it changes, but for users who join while a decision is made for
    them; the event of that decision lets them join again.
    """

    def __init__(self, settings: PolicySettings, policy: LinearBandit | None = None) -> None:
        """A policy that has seen nothing, unless one is given."""
        self.settings = settings
        self.policy = settings.make() if policy is None else policy
        self.users = Users(settings.users)
        self.catalogue = Catalogue(settings.dim)
        self.waiting: dict[str, Waiting] = {}
        self.timers: list[tuple[float, str]] = []
        self.counts: Counter[str] = Counter()
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
            events.REWARD: self._reward,
            events.FEEDBACK: self._feedback,
            events.EXPIRED: self._expired,
            events.RETIRED: lambda event: None,
        }

    def apply(self, event: Event) -> None:
        """Let an event happen, now or again."""
        self._steps[event.kind](event)
        self.counts[event.kind] += 1
        self.seq, self.at = event.seq, event.at

    def policy_for(self, user: str) -> tuple[LinearBandit, int]:
        """The policy that decides for a user, and the user's number in it.

        A stranger joins. While the policy is frozen, a copy with one more user stands in for strangers:
        joining may change what others are recommended.
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
        """The number of a user, who is added if new."""
        number = self.users.find(user)
        if number is not None:
            return number
        self.check_new_user(user)
        if len(self.users) == self.policy.n_users:
            self.policy.add_users(1)
        return self.users.add(user)

    def check_new_user(self, user: str) -> None:
        """Refuse a stranger where users are given from the start."""
        if self.users.find(user) is None and any(name in self.settings.params for name in USER_PARAMS):
            kind = self.settings.policy
            raise ArgumentError(f"user must be one that {kind} was made with, got {shown(user)}")

    def generator_state(self, policy: LinearBandit) -> Mapping[str, Any]:
        """Where a policy's generator stands."""
        if self._generator is None or policy is not self.policy:
            return policy.generator.bit_generator.state
        return self._generator

    def cache_generator_state(self, found: Mapping[str, Any] | None) -> None:
        """Keep in mind where the generator stands: asking it takes as long as a decision."""
        self._generator = found

    def cluster_number(self, number: int) -> int:
        """The cluster of a user, named by the number of its first member."""
        policy, labels = self.policy, self._labels
        if labels is None or len(labels) != policy.n_users:
            if "labels" not in policy.learner.FIELDS:
                return first_alike(policy.learner.labels(), number)
            labels = self._labels = policy.learner.array("labels")  # a view, until there are more users
            self._firsts.clear()
        label = labels.item(number)
        if label < 0:  # in no cluster yet
            return first_alike(policy.learner.labels(), number)
        first = self._firsts.get(label)
        if first is None:
            first = self._firsts[label] = first_alike(labels, number)
        return first

    def start_waiting(self, decision: str, waiting: Waiting) -> None:
        """Keep a decision until its reward comes or its time is over."""
        self.waiting[decision] = waiting
        if waiting.expires is not None:
            heappush(self.timers, (waiting.expires, decision))

    def _configured(self, event: Event) -> None:
        self.settings = PolicySettings.from_json(event.detail or "{}")
        self._stand_in = None

    def _items(self, event: Event) -> None:
        told = event.fields()
        if told.get("all"):
            self.catalogue = Catalogue(self.settings.dim)
        self.catalogue.put(told.get("put", ()), event.vectors(self.settings.dim))
        self.catalogue.remove(told.get("removed", ()))

    def _decision(self, event: Event) -> None:
        assert event.decision is not None
        assert event.user is not None
        told = event.fields()
        if self.settings.mode != "frozen":
            self.join(event.user)
        if "generator" in told:
            set_generator(self.policy, told["generator"])
            self.cache_generator_state(None)
        ranking = told.get("ranking")
        items = (event.item or "",) if ranking is None else tuple(ranking)
        wait = self.settings.reward_wait
        expires = None if wait is None else event.at + wait
        x = event.x or b""
        if "arms" in told:
            x = event.chosen_vectors(self.settings.dim).tobytes()
        waiting = Waiting(event.user, items, x, expires, "drawn" in told)
        self.start_waiting(event.decision, waiting)

    def _reward(self, event: Event) -> None:
        waiting = self.waiting.pop(event.decision or "", None)
        told = event.fields()
        if told.get("ignored") or (self.settings.mode == "shadow" and event.x is None):
            return
        vectors = event.vectors(self.settings.dim) if event.x is not None else None
        if vectors is None and waiting is not None:
            vectors = waiting.vectors()
        assert vectors is not None
        self._learn(event, vectors, told.get("clicked"))

    def _feedback(self, event: Event) -> None:
        self._learn(event, event.vectors(self.settings.dim), None)

    def _expired(self, event: Event) -> None:
        waiting = self.waiting.pop(event.decision or "", None)
        if waiting is not None and self.settings.mode == "online" and event.reward is not None:
            self._learn(event, waiting.vectors(), None)

    def _learn(self, event: Event, vectors: Floats, clicked: int | None) -> None:
        """Absorb a reward for one vector, or what was done with a list of several."""
        if self.settings.mode == "frozen":
            return
        assert event.user is not None
        assert event.reward is not None
        number = self.join(event.user)
        self._firsts.clear()
        if len(vectors) == 1:
            self.policy.update(number, vectors[0], event.reward)
        else:
            self.policy.update_list(number, vectors, clicked)


def set_generator(policy: LinearBandit, kept: list[Any]) -> None:
    """Put a policy's generator where an event says that it stood."""
    state: dict[str, Any] = dict(policy.generator.bit_generator.state)
    state["state"] = {"state": int(kept[0], 16), "inc": int(kept[1], 16)}
    state["has_uint32"], state["uinteger"] = kept[2:]
    policy.generator.bit_generator.state = state


def generator_fields(state: dict[str, Any]) -> list[Any]:
    """The state of a generator as events keep it."""
    inner = state["state"]
    return [f"{inner['state']:x}", f"{inner['inc']:x}", state["has_uint32"], state["uinteger"]]


def first_alike(labels: Ints, number: int) -> int:
    """The first user with the label of this one."""
    mine = labels[number]
    first = int((labels[:EARLY] == mine).argmax())
    return first if labels[first] == mine else int((labels == mine).argmax())
