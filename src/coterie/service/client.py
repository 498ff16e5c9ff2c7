"""Clients of the service, for threads and for asyncio, whose retries cannot count twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import httpx
from numpy.typing import ArrayLike

from coterie.errors import StoreError
from coterie.service import messages
from coterie.service.calls import RETRIED, Call, Calls, headers, pause

T = TypeVar("T")


def _unreachable(error: Exception) -> StoreError:
    return StoreError(f"the service cannot be reached: {error or type(error).__name__}")


class Client:
    """Talk to a service: `coterie serve` at the other end.

    Parameters
    ----------
    url : str
        Where the service is.
    policy : str
        The policy that requests are for.
    key : str, optional
        An API key, `ck_…`.
    retries : int
        How often a request is sent again if the connection breaks or the service cannot serve.
    timeout : float
        Seconds to wait for an answer.

    Notes
    -----
    Every decision and every reward has an id before it is first sent. A request whose answer was lost is
    sent again with the same id, and counts once.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        policy: str = "default",
        *,
        key: str | None = None,
        retries: int = 5,
        timeout: float = 10.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Connect when the first request is sent."""
        self._calls = Calls(policy)
        self._retries = retries
        self._http = httpx.Client(
            base_url=url, headers=headers(key), timeout=timeout, transport=transport, trust_env=False
        )

    def _send(self, call: Call[T]) -> T:
        """Send a request until it is answered, or there were too many attempts."""
        for attempt in range(self._retries + 1):
            response: httpx.Response | None = None
            try:
                response = self._http.request(call.method, call.path, content=call.content())
            except httpx.TransportError as error:
                if attempt == self._retries:
                    raise _unreachable(error) from None
            if response is not None and (response.status_code not in RETRIED or attempt == self._retries):
                return call.read(response)
            time.sleep(pause(attempt, response))
        raise AssertionError("every attempt returns or raises")

    def create_policy(self, dim: int, policy: str = "AutoCLUB", **options: Any) -> messages.PolicyAnswer:
        """Make the policy that this client is for."""
        return self._send(self._calls.create_policy(dim, policy, options))

    def describe(self) -> messages.PolicyAnswer:
        """The policy at a glance."""
        return self._send(self._calls.describe())

    def configure(self, **changes: Any) -> messages.PolicyAnswer:
        """Change reward_wait, default_reward, late, uniform_share or mode."""
        return self._send(self._calls.configure(changes))

    def put_items(self, items: Mapping[str, ArrayLike], *, replace_all: bool = False) -> int:
        """Set items of the catalogue; how many there are then."""
        return (self._send(self._calls.put_items(items, replace_all))).count

    def decide(
        self,
        user: str,
        items: Sequence[str] | None = None,
        *,
        arms: Mapping[str, ArrayLike] | None = None,
        k: int = 1,
        decision_id: str | None = None,
    ) -> messages.DecisionAnswer:
        """Decide what to show a user."""
        return self._send(self._calls.decide(user, items, arms, k, decision_id))

    def reward(self, decision_id: str, reward: float, *, item: str | None = None) -> messages.RewardAnswer:
        """Give the reward of a decision."""
        one = {"decision_id": decision_id, "reward": reward, "item": item}
        return (self.reward_many([one]))[0]

    def reward_many(self, rewards: Sequence[Mapping[str, Any]]) -> list[messages.RewardAnswer]:
        """Give many rewards, as the interface has them; a result each."""
        return (self._send(self._calls.reward(rewards))).results

    def explain(self, user: str) -> messages.ExplanationAnswer:
        """Who a user learns from, and how items score for it."""
        return self._send(self._calls.explain(user))

    def history(self, user: str) -> list[messages.UserEventAnswer]:
        """The latest decisions and rewards of a user, in order."""
        return (self._send(self._calls.history(user))).events

    def clusters(self) -> list[messages.ClusterAnswer]:
        """All clusters, the largest first."""
        return (self._send(self._calls.clusters())).clusters

    def remove_user(self, user: str) -> None:
        """Forget a user: id, history and statistics."""
        self._send(self._calls.remove_user(user))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        """Close at the end of a `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


class AsyncClient:
    """Talk to a service from asyncio: `coterie serve` at the other end.

    Parameters
    ----------
    url : str
        Where the service is.
    policy : str
        The policy that requests are for.
    key : str, optional
        An API key, `ck_…`.
    retries : int
        How often a request is sent again if the connection breaks or the service cannot serve.
    timeout : float
        Seconds to wait for an answer.

    Notes
    -----
    Every decision and every reward has an id before it is first sent. A request whose answer was lost is
    sent again with the same id, and counts once.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        policy: str = "default",
        *,
        key: str | None = None,
        retries: int = 5,
        timeout: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect when the first request is sent."""
        self._calls = Calls(policy)
        self._retries = retries
        self._http = httpx.AsyncClient(
            base_url=url, headers=headers(key), timeout=timeout, transport=transport, trust_env=False
        )

    async def _send(self, call: Call[T]) -> T:
        """Send a request until it is answered, or there were too many attempts."""
        for attempt in range(self._retries + 1):
            response: httpx.Response | None = None
            try:
                response = await self._http.request(call.method, call.path, content=call.content())
            except httpx.TransportError as error:
                if attempt == self._retries:
                    raise _unreachable(error) from None
            if response is not None and (response.status_code not in RETRIED or attempt == self._retries):
                return call.read(response)
            await asyncio.sleep(pause(attempt, response))
        raise AssertionError("every attempt returns or raises")

    async def create_policy(
        self, dim: int, policy: str = "AutoCLUB", **options: Any
    ) -> messages.PolicyAnswer:
        """Make the policy that this client is for."""
        return await self._send(self._calls.create_policy(dim, policy, options))

    async def describe(self) -> messages.PolicyAnswer:
        """The policy at a glance."""
        return await self._send(self._calls.describe())

    async def configure(self, **changes: Any) -> messages.PolicyAnswer:
        """Change reward_wait, default_reward, late, uniform_share or mode."""
        return await self._send(self._calls.configure(changes))

    async def put_items(self, items: Mapping[str, ArrayLike], *, replace_all: bool = False) -> int:
        """Set items of the catalogue; how many there are then."""
        return (await self._send(self._calls.put_items(items, replace_all))).count

    async def decide(
        self,
        user: str,
        items: Sequence[str] | None = None,
        *,
        arms: Mapping[str, ArrayLike] | None = None,
        k: int = 1,
        decision_id: str | None = None,
    ) -> messages.DecisionAnswer:
        """Decide what to show a user."""
        return await self._send(self._calls.decide(user, items, arms, k, decision_id))

    async def reward(
        self, decision_id: str, reward: float, *, item: str | None = None
    ) -> messages.RewardAnswer:
        """Give the reward of a decision."""
        one = {"decision_id": decision_id, "reward": reward, "item": item}
        return (await self.reward_many([one]))[0]

    async def reward_many(self, rewards: Sequence[Mapping[str, Any]]) -> list[messages.RewardAnswer]:
        """Give many rewards, as the interface has them; a result each."""
        return (await self._send(self._calls.reward(rewards))).results

    async def explain(self, user: str) -> messages.ExplanationAnswer:
        """Who a user learns from, and how items score for it."""
        return await self._send(self._calls.explain(user))

    async def history(self, user: str) -> list[messages.UserEventAnswer]:
        """The latest decisions and rewards of a user, in order."""
        return (await self._send(self._calls.history(user))).events

    async def clusters(self) -> list[messages.ClusterAnswer]:
        """All clusters, the largest first."""
        return (await self._send(self._calls.clusters())).clusters

    async def remove_user(self, user: str) -> None:
        """Forget a user: id, history and statistics."""
        await self._send(self._calls.remove_user(user))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        """Close at the end of a `with` block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.close()
