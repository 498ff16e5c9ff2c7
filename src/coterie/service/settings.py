"""What a policy behind a service is made with, and what may be changed while it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from coterie.errors import ArgumentError, unknown
from coterie.policies.base import MOST_DIM, LinearBandit
from coterie.policies.factories import find_factory
from coterie.policies.registry import DEFAULT, find
from coterie.seeding import check_seed
from coterie.service.core.ids import checked_id
from coterie.service.limits import Limits
from coterie.validation import as_array, nonnegative, number, shown, whole

Mode = Literal["online", "shadow", "frozen"]
Late = Literal["accept", "correct", "ignore"]
LogOffers = Literal["chosen", "all"]
LearnParts = Literal["at_close", "at_once"]


class Changes(TypedDict, total=False):
    """Settings that may change while a policy runs; the others determine what it is."""

    reward_wait: float | None
    default_reward: float | None
    late: Late
    learn_parts: LearnParts
    uniform_share: float
    mode: Mode
    log_offers: LogOffers


MOST_NESTED = 8
"""Tables and lists within each other that `params` may have; a graph has three."""
CHANGEABLE = tuple(Changes.__annotations__)
USER_PARAMS = ("labels", "graph")
"""Parameters of a policy that describe each user given at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """A policy by name, and what becomes of its decisions.

    Parameters
    ----------
    dim : int
        The length d of an item's vector.
    policy : str
        A name of the registry; `coterie policies` lists all.
    params : mapping, optional
        What the policy takes, such as `{"alpha": 1.5, "beta": 0.1}` for CLUB. Policies with
        a parameter for each user (`labels`, `graph`) need `users`.
    users : sequence of str, optional
        Users known from the start; all others join when they first come.
    seed : int
        Seed of everything random: the policy's own draws and the uniform share.
    reward_wait : float or None
        Seconds that a decision waits for its reward; None waits for ever.
    default_reward : float or None
        The reward that is counted for a decision if none came in time; with None nothing is counted.
    late : {"accept", "correct", "ignore"}
        What a reward does that comes after the default was counted: it is counted too; or it replaces the
        default, exactly, by learning everything anew from the log; or it is recorded and not counted.
    learn_parts : {"at_close", "at_once"}
        When a reward is learnt that comes in parts, such as a click and then a purchase: their sum, when
        `reward_wait` is over; or the first part at once, and each later one as a correction, exactly, by
        learning anew from the log.
    uniform_share : float
        The share ε of decisions that are drawn uniformly, from 0 to 1.
    mode : {"online", "shadow", "frozen"}
        Decide and learn; or learn only from what was shown instead (rewards name the item); or decide only.
    log_offers : {"chosen", "all"}
        What the log keeps of arms that a request brings with their vectors: the chosen ones, or all, which
        evaluation of other policies on the log needs. Of the catalogue all is known in any case.
    """

    dim: int
    policy: str = "AutoCLUB"
    params: Mapping[str, Any] = field(default_factory=dict)
    users: tuple[str, ...] = ()
    seed: int = 0
    reward_wait: float | None = 86_400.0
    default_reward: float | None = 0.0
    late: Late = "accept"
    learn_parts: LearnParts = "at_close"
    uniform_share: float = 0.0
    mode: Mode = "online"
    log_offers: LogOffers = "chosen"

    def __post_init__(self) -> None:
        """Check every setting."""
        find(self.policy)
        whole("dim", self.dim, 1, MOST_DIM)
        check_seed(self.seed)
        if not isinstance(self.params, Mapping):
            raise ArgumentError(f"params must be a table of names and values, got {shown(self.params)}")
        if isinstance(self.users, str) or len(set(self.users)) != len(self.users):
            raise ArgumentError(f"users must be a list of ids, no two alike, got {shown(self.users)}")
        object.__setattr__(self, "users", tuple(checked_id("a user's id", one) for one in self.users))
        if _depth(self.params) > MOST_NESTED:
            raise ArgumentError(f"params may be nested {MOST_NESTED} deep, got more")
        object.__setattr__(self, "params", dict(self.params))
        self._check_changeable()

    def _check_changeable(self) -> None:
        if self.reward_wait is not None:
            object.__setattr__(self, "reward_wait", nonnegative("reward_wait", self.reward_wait))
        if self.default_reward is not None:
            object.__setattr__(self, "default_reward", number("default_reward", self.default_reward))
        share = number("uniform_share", self.uniform_share)
        if not 0 <= share <= 1:
            raise ArgumentError(f"uniform_share must be from 0 to 1, got {shown(self.uniform_share)}")
        object.__setattr__(self, "uniform_share", share)
        for name, choices in (
            ("late", get_args(Late)),
            ("learn_parts", get_args(LearnParts)),
            ("mode", get_args(Mode)),
            ("log_offers", get_args(LogOffers)),
        ):
            if getattr(self, name) not in choices:
                given = shown(getattr(self, name))
                raise ArgumentError(f"{name} must be one of {', '.join(choices)}, got {given}")

    def changed(self, **changes: Any) -> PolicySettings:
        """Return the same with other values of settings that may change."""
        for name in changes:
            if name not in CHANGEABLE:
                raise unknown(
                    "setting that may change:", name, CHANGEABLE, f"They are {', '.join(CHANGEABLE)}"
                )
        return replace(self, **changes)

    def without(self, user: str) -> PolicySettings:
        """Return the same without a user given at the start, and without its label or its edges."""
        if len(self.users) == 1 and any(name in self.params for name in USER_PARAMS):
            raise ArgumentError(
                f"the last user that {self.policy} was made with cannot be removed; retire the policy"
            )
        gone = self.users.index(user)
        params = dict(self.params)
        for name in USER_PARAMS:
            if name in params:
                # Labels lose an entry; a graph loses a row and a column.
                kept = np.delete(np.asarray(params[name]), gone, axis=0)
                params[name] = (np.delete(kept, gone, axis=1) if kept.ndim == 2 else kept).tolist()
        return replace(self, users=tuple(one for one in self.users if one != user), params=params)

    def make(self) -> LinearBandit:
        """Return the policy before its first round, with its users or with room for the first one."""
        factory = find_factory(self.policy)
        if "catalogue" in factory.arguments:
            raise ArgumentError(
                f"{self.policy} needs a catalogue that never changes, and that of a service does"
            )
        described = [name for name in USER_PARAMS if name in self.params and name in factory.arguments]
        params = {name: value for name, value in self.params.items() if name not in described}
        factory.check(params)
        for name in USER_PARAMS:
            if name in factory.arguments and not (name in described and self.users):
                raise ArgumentError(f"{self.policy} must know its users: give users, and {name} in params")
        offered = {"n_users": max(len(self.users), 1), "dim": self.dim, "seed": self.seed, **params}
        for name in described:
            offered[name] = as_array(name, self.params[name], "an array of numbers")
        try:
            made: LinearBandit = factory(
                {name: value for name, value in offered.items() if factory.passes(name)}
            )
        except MemoryError:
            raise ArgumentError(
                f"{self.policy} with these settings needs more memory than there is"
            ) from None
        return made

    def to_json(self) -> str:
        """Return all settings as JSON."""
        try:
            return json.dumps({one.name: getattr(self, one.name) for one in fields(self)}, default=_plain)
        except (TypeError, ValueError, AttributeError):
            raise ArgumentError(
                f"params must be numbers, text, lists or tables, got {shown(self.params)}"
            ) from None

    @classmethod
    def from_json(cls, text: str) -> PolicySettings:
        """Return the settings that `to_json` wrote."""
        return cls(**json.loads(text))

    def same_policy(self, other: PolicySettings) -> bool:
        """Tell whether both determine the same policy, apart from what may change."""
        # Compared as JSON, since parameters may be arrays, whose == is elementwise.
        changes = {name: getattr(other, name) for name in CHANGEABLE}
        return self.changed(**changes).to_json() == other.to_json()


def _depth(value: object) -> int:
    """Return how deep tables and lists are nested, without recursion, as far as it matters."""
    depth, level = 0, [value]
    while depth <= MOST_NESTED:
        inner = [one for one in level if isinstance(one, Mapping | list | tuple)]
        if not inner:
            break
        depth += 1
        level = [item for one in inner for item in (one.values() if isinstance(one, Mapping) else one)]
    return depth


def without_user(text: str, user: str, *, retired: bool) -> str:
    """Return settings as JSON without a user, who may be among those given at the start.

    Settings of a retired policy are never read again, so their labels and graph are removed altogether.
    """
    settings = json.loads(text)
    if user not in settings["users"]:
        return text
    if not retired:
        return PolicySettings.from_json(text).without(user).to_json()
    settings["users"].remove(user)
    settings["params"] = {
        name: value for name, value in settings["params"].items() if name not in USER_PARAMS
    }
    return json.dumps(settings)


def _plain(value: Any) -> Any:
    """Return an array or a NumPy number as JSON can have it."""
    return value.tolist()


FIRST_POLICY: Mapping[str, Any] = MappingProxyType({"policy": DEFAULT, "dim": 8})
"""What the first policy of an empty store is, unless `ServerSettings` say otherwise."""


MOST_PROCESSES = 256
"""Shards of one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of `coterie serve`.

    Parameters
    ----------
    host, port
        Where to listen. Another address than this machine's own needs keys, or `insecure`.
    store : str
        The path of a SQLite file, `sqlite:///PATH`, or `postgresql://…`.
    policy : str, optional
        The policy that is created, with the name `default`, if the store has none; AutoCLUB if not given.
    dim : int, optional
        The dimension of its vectors; 8 if not given. If the store has policies, one of them must have this
        policy and dimension, where they are given.
    insecure : bool
        Accept requests without a key whenever the store has no key. Without this, requests need no key only
        on an address of this machine, and only until the first key is created.
    allowed_host : str, optional
        Host names that requests may use, separated by commas, besides those of this machine and `host`; a
        request with another Host is refused. `*` allows all.
    shards : int, optional
        Processes that share the users, each with a store of its own; `store` is then a folder. The number
        is kept in the stores, and cannot change.
    snapshot_every : int
        Events of a policy after which a snapshot is taken.
    stop_timeout : int
        Seconds that requests in flight have after SIGTERM or SIGINT.
    log_level : str
        What is logged: debug (every request), info, warning or error.
    log_format : str
        Lines of the log as text, or as json.
    traces : bool
        Write a span for each request with OpenTelemetry, to where its own settings say.
    limits : Limits
        On what requests can make the service hold; each is a setting of its own for `coterie serve`.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    store: str = "coterie.db"
    policy: str | None = None
    dim: int | None = None
    insecure: bool = False
    allowed_host: str | None = None
    shards: int | None = None
    snapshot_every: int = 50_000
    stop_timeout: int = 5
    log_level: str = "info"
    log_format: str = "text"
    traces: bool = False
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Check every setting."""
        if self.policy is not None:
            find(self.policy)
        whole("port", self.port, 0, 65_535)
        if self.dim is not None:
            whole("dim", self.dim, 1, 4_096)
        if self.shards is not None:
            whole("shards", self.shards, 1, MOST_PROCESSES)
        whole("snapshot_every", self.snapshot_every, 1)
        whole("stop_timeout", self.stop_timeout, 1, 86_400)
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise ArgumentError(f"log_level must be debug, info, warning or error, got {self.log_level!r}")
        if self.log_format not in ("text", "json"):
            raise ArgumentError(f"log_format must be text or json, got {self.log_format!r}")
