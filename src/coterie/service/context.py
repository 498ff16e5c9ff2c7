"""What handlers share: the engine, keys, metrics, and the wait until an event is durable."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from coterie.errors import StoreError
from coterie.service.engine import PolicyEngine
from coterie.service.keys import Key, KeyRing, Role
from coterie.service.live import LivePolicy
from coterie.service.metrics import Metrics
from coterie.service.problems import Refusal

M = TypeVar("M")
encode = msgspec.json.Encoder().encode


class Acknowledgements:
    """Requests that wait until their events are on the disk; one message a commit wakes all of them."""

    def __init__(self, engine: PolicyEngine, loop: asyncio.AbstractEventLoop) -> None:
        """Listen to the journal of an engine."""
        self._journal = engine.journal
        self._loop = loop
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._journal.subscribe(self._tell)

    def _tell(self, durable: int, error: StoreError | None) -> None:
        """Called on the journal's thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, durable, error)

    def _wake(self, durable: int, error: StoreError | None) -> None:
        while self._waiting and (error is not None or self._waiting[0][0] <= durable):
            seq, future = self._waiting.popleft()
            if future.done():
                continue
            if seq <= durable:
                future.set_result(None)
            else:
                future.set_exception(error or StoreError("the store cannot be written now"))

    async def durable(self) -> None:
        """Return when everything that happened so far is durable."""
        seq = self._journal.last
        if seq <= self._journal.durable:
            return
        if self._journal.failure is not None:
            raise self._journal.failure
        future = self._loop.create_future()
        self._waiting.append((seq, future))
        await future


class Context:
    """What belongs to one running service."""

    def __init__(self, engine: PolicyEngine, *, body_limit: int, in_flight_limit: int) -> None:
        """Around an open engine."""
        self.engine = engine
        self.keys = KeyRing(engine.store)
        self.metrics = Metrics()
        self.body_limit, self.in_flight_limit = body_limit, in_flight_limit
        self.started = time.time()
        self._acknowledgements: Acknowledgements | None = None

    async def durable(self) -> None:
        """Return when everything that happened so far is durable."""
        if self._acknowledgements is None:
            self._acknowledgements = Acknowledgements(self.engine, asyncio.get_running_loop())
        await self._acknowledgements.durable()

    def authorise(self, request: Request, role: Role, policy: str | None) -> Key | None:
        """See that the bearer of the key may do this; without any keys, everybody may."""
        self.keys.refresh()
        if not len(self.keys):
            return None
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        key = self.keys.find(token.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise Refusal(401, "a key is needed: Authorization: Bearer ck_…; `coterie keys create` makes one")
        if not key.allows(role, policy):
            where = "" if policy is None else f" of policy {policy!r}"
            raise Refusal(403, f"this needs the role {role}{where}, and the key does not have it")
        return key


def context_of(request: Request) -> Context:
    """The context of the service that got a request."""
    found: Context = request.app.state.context
    return found


def policy_of(request: Request) -> LivePolicy:
    """The policy that the path names."""
    return context_of(request).engine.find(request.path_params["policy"])


async def body_of(request: Request, decoder: msgspec.json.Decoder[M]) -> M:
    """The body of a request, which is not longer than may be."""
    return decoder.decode(await raw_body(request))


async def raw_body(request: Request) -> bytes:
    """The bytes of a body, which are not more than may be."""
    limit = context_of(request).body_limit
    told = request.headers.get("content-length", "")
    if told.isdigit() and int(told) > limit:
        raise Refusal(413, f"a body may have {limit} bytes, got {told}")
    if told.isdigit():
        return await request.body()
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise Refusal(413, f"a body may have {limit} bytes, got more")
        pieces.append(piece)
    return b"".join(pieces)


def json_response(message: Any, status: int = 200) -> Response:
    """A message as JSON."""
    return Response(encode(message), status, media_type="application/json")


def integer_parameter(request: Request, name: str, default: int, most: int) -> int:
    """A whole number of the query, from 0 to `most`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most):
        raise Refusal(422, f"{name} must be a whole number from 0 to {most}, got {text[:40]!r}")
    return int(text)
