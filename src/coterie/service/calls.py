"""The requests of a client: each may be sent any number of times, and counts once."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError, Conflict, CoterieError, StoreError, UnknownName
from coterie.service import messages
from coterie.service.core.decisions import new_id

T = TypeVar("T")
RETRIED = (429, 502, 503, 504)
"""Statuses after which the same request is sent again."""
ERRORS: dict[int, type[CoterieError]] = {404: UnknownName, 409: Conflict, 503: StoreError, 429: StoreError}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and what its answer is read as; `None` of an answer without a body."""

    method: str
    path: str
    answer: type[T]
    body: Any = None

    def content(self) -> bytes | None:
        """The body as it is sent."""
        return None if self.body is None else msgspec.json.encode(self.body)

    def read(self, response: httpx.Response) -> T:
        """The answer as an object, or the error that it tells."""
        if response.is_success:
            return msgspec.json.decode(response.content or b"null", type=self.answer)
        try:
            told = msgspec.json.decode(response.content, type=messages.Problem).detail
        except msgspec.MsgspecError:
            told = f"the service answered {response.status_code}"
        raise ERRORS.get(response.status_code, ArgumentError)(told)


class Calls:
    """The requests to one policy. What is not idempotent by itself gets an id before it is first sent."""

    def __init__(self, policy: str) -> None:
        """Requests to the policy of this name."""
        self.policy = policy

    def _path(self, rest: str = "") -> str:
        return f"/v1/policies/{quote(self.policy, safe='')}{rest}"

    def create_policy(self, dim: int, policy: str, options: Mapping[str, Any]) -> Call[messages.PolicyAnswer]:
        """Make the policy."""
        body = {"name": self.policy, "dim": dim, "policy": policy, **options}
        return Call("POST", "/v1/policies", messages.PolicyAnswer, body)

    def describe(self) -> Call[messages.PolicyAnswer]:
        """The policy at a glance."""
        return Call("GET", self._path(), messages.PolicyAnswer)

    def configure(self, changes: Mapping[str, Any]) -> Call[messages.PolicyAnswer]:
        """Change settings."""
        return Call("PATCH", self._path(), messages.PolicyAnswer, dict(changes))

    def put_items(self, items: Mapping[str, ArrayLike], replace_all: bool) -> Call[messages.ItemsAnswer]:
        """Set items of the catalogue."""
        body = {"items": [{"id": item, "x": floats(x)} for item, x in items.items()]}
        return Call("PUT" if replace_all else "PATCH", self._path("/items"), messages.ItemsAnswer, body)

    def decide(
        self,
        user: str,
        items: Sequence[str] | None,
        arms: Mapping[str, ArrayLike] | None,
        k: int,
        decision_id: str | None,
    ) -> Call[messages.DecisionAnswer]:
        """Decide for a user."""
        body: dict[str, Any] = {"user": user, "k": k, "decision_id": decision_id or new_id()}
        if items is not None:
            body["items"] = list(items)
        if arms is not None:
            body["arms"] = [{"id": arm, "x": floats(x)} for arm, x in arms.items()]
        return Call("POST", self._path("/decisions"), messages.DecisionAnswer, body)

    def reward(self, rewards: Sequence[Mapping[str, Any]]) -> Call[messages.RewardsAnswer]:
        """Give rewards."""
        listed = [{name: value for name, value in one.items() if value is not None} for one in rewards]
        for one in listed:
            if "decision_id" not in one:
                one.setdefault("id", new_id())
            if "x" in one:
                one["x"] = floats(one["x"])
        return Call("POST", self._path("/rewards"), messages.RewardsAnswer, {"rewards": listed})

    def explain(self, user: str) -> Call[messages.ExplanationAnswer]:
        """Who a user learns from."""
        return Call("GET", self._path(f"/users/{quote(user, safe='')}"), messages.ExplanationAnswer)

    def history(self, user: str) -> Call[messages.HistoryAnswer]:
        """What happened to a user."""
        return Call("GET", self._path(f"/history/{quote(user, safe='')}"), messages.HistoryAnswer)

    def remove_user(self, user: str) -> Call[None]:
        """Forget a user."""
        return Call("DELETE", self._path(f"/users/{quote(user, safe='')}"), type(None))

    def clusters(self) -> Call[messages.ClustersAnswer]:
        """All clusters."""
        return Call("GET", self._path("/clusters"), messages.ClustersAnswer)


def floats(x: ArrayLike) -> list[float]:
    """A vector as JSON has it."""
    return [float(value) for value in np.asarray(x, np.float64).ravel()]


def headers(key: str | None) -> dict[str, str]:
    """The headers of every request."""
    found = {"Content-Type": "application/json"}
    if key is not None:
        found["Authorization"] = f"Bearer {key}"
    return found


def pause(attempt: int, response: httpx.Response | None) -> float:
    """Seconds before the next attempt: twice as long each time, or as the service asks; 5 at most."""
    asked = response.headers.get("retry-after", "") if response is not None else ""
    least = float(asked) if asked.isdigit() else 0.0
    return float(min(max(0.05 * 2**attempt, least), 5.0) * random.uniform(0.75, 1.25))


def unreachable(error: Exception) -> StoreError:
    """No answer came, after all retries."""
    return StoreError(f"the service cannot be reached: {error or type(error).__name__}")
