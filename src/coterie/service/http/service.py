"""The ASGI application around an engine: limits, keys, and the wait until an event is durable."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coterie.errors import StoreError
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import LivePolicy
from coterie.service.http.api_keys import APIKeys
from coterie.service.http.problems import SECURITY_HEADERS, Refusal, header, problem
from coterie.service.http.prometheus import Metrics
from coterie.service.storage.journal import Acknowledge, Acknowledgements, Pending

R = TypeVar("R")
STREAM = re.compile(r"/v1/policies/[^/]+/live")
"""Paths whose responses last as long as a page is open; their number has a limit of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HTTPLimits:
    """What clients may use of the service together; what goes beyond is refused.

    Parameters
    ----------
    body : int
        Bytes of the body of one request.
    bodies : int
        Bytes of all bodies that are being read.
    in_flight : int
        Requests that are being answered; more get 503.
    viewers : int
        Pages that are open.
    idle_seconds : int
        Seconds after which a connection without requests is closed.
    """

    body: int = 4 * 2**20
    bodies: int = 128 * 2**20
    in_flight: int = 1_024
    viewers: int = 100
    idle_seconds: int = 5


class HTTPService:
    """The ASGI application of one running service, and what its handlers share.

    Parameters
    ----------
    engine : PolicyEngine
        Open.
    limits : HTTPLimits
        On bodies, requests and pages.

    Notes
    -----
    Requests for decisions and rewards usually do not come here: `ServiceConnection` answers them.
    """

    app: ASGIApp
    """All routes; set by `build_app`, since handlers need the service."""

    def __init__(self, engine: PolicyEngine, limits: HTTPLimits) -> None:
        """Read the keys of the engine's store."""
        self.engine = engine
        self.keys = APIKeys(engine.store)
        self.metrics = Metrics()
        self.limits = limits
        self.closing = False
        self._reading = 0
        self._acknowledgements: Acknowledgements | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless too many are in flight."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, metrics, send = scope["path"], self.metrics, self._with_headers(send)
        if STREAM.fullmatch(path):
            await self.app(scope, receive, send)
        elif not self.has_room() and not path.startswith("/health"):
            refusal = problem(
                503, f"{metrics.in_flight} requests are in flight, and no more may be; try again"
            )
            await refusal(scope, receive, send)
        else:
            metrics.in_flight += 1
            try:
                await self.app(scope, receive, send)
            finally:
                metrics.in_flight -= 1

    def has_room(self) -> bool:
        """Tell whether one more request may be answered."""
        return self.metrics.in_flight < self.limits.in_flight

    def _with_headers(self, send: Send) -> Send:
        """Count responses and add the headers that all of them have."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.metrics.responses[message["status"]] += 1
                present = {name for name, _ in message["headers"]}
                extra = [pair for pair in SECURITY_HEADERS if pair[0] not in present]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        return send_with_headers

    def when_durable(self, seq: int, acknowledge: Acknowledge) -> None:
        """Call this once the event of this number is durable, or with an error if it never will be."""
        if self._acknowledgements is None:
            self._acknowledgements = Acknowledgements(self.engine.journal, asyncio.get_running_loop())
        self._acknowledgements.when_durable(seq, acknowledge)

    async def durable(self, pending: Pending[R]) -> R:
        """Return a result when its event is durable; StoreError if it never will be."""
        done: asyncio.Future[StoreError | None] = asyncio.get_running_loop().create_future()
        # The client may be gone before the commit: its task is cancelled then, and the future with it.
        self.when_durable(pending.seq, lambda error: None if done.done() else done.set_result(error))
        error = await done
        if error is not None:
            raise error
        return pending.result

    async def read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the body of a request, within the limits; None if the client is gone."""
        pieces: list[bytes] = []
        with self._body_counter(scope) as count:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                pieces.append(message.get("body", b""))
                count(pieces[-1])
                more = message.get("more_body", False)
        return b"".join(pieces)

    @contextmanager
    def _body_counter(self, scope: Scope) -> Iterator[Callable[[bytes], None]]:
        """Count the bytes of a body while it is read; too many of it, or of all together, are refused."""
        limit, size = self.limits.body, 0
        announced = header(scope["headers"], b"content-length")
        if announced.isdigit() and int(announced) > limit:
            raise Refusal(413, f"a body may have {limit} bytes, got {int(announced)}")

        def count(piece: bytes) -> None:
            nonlocal size
            size += len(piece)
            self._reading += len(piece)
            if size > limit:
                raise Refusal(413, f"a body may have {limit} bytes, got more")
            if self._reading > max(self.limits.bodies, limit):
                raise Refusal(503, "too many long bodies are being read; try again")

        try:
            yield count
        finally:
            self._reading -= size


def service_of(request: Request) -> HTTPService:
    """Return the service that got a request."""
    found: HTTPService = request.app.state.service
    return found


def policy_of(request: Request) -> LivePolicy:
    """Return the policy that the path names."""
    return service_of(request).engine.find(request.path_params["policy"])


async def raw_body(request: Request) -> bytes:
    """Read the body of a request, within the limits of the service."""
    body = await service_of(request).read_body(request.scope, request.receive)
    if body is None:
        raise ClientDisconnect()
    return body
