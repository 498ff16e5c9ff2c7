"""What handlers share: the engine, keys, metrics, and the wait until an event is durable."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from coterie.errors import StoreError
from coterie.service import messages
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import LivePolicy
from coterie.service.http.api_keys import Key, KeyRing, Role
from coterie.service.http.problems import Refusal
from coterie.service.http.prometheus import Metrics
from coterie.service.storage.journal import unavailable

if TYPE_CHECKING:
    from coterie.service.http.frames import PolicyFrames

M = TypeVar("M")
Tell = Callable[[StoreError | None], None]
MOST_BODIES = 128 * 2**20
"""Bytes of bodies that may be read at the same time."""
COLLECT = 0.001
"""Seconds that a commit waits for more requests at most."""
encode = msgspec.json.Encoder().encode


class Acknowledgements:
    """Requests that wait until their events are on the disk; one message a commit wakes all of them.

    A commit takes as long for one request as for many. So it begins when half as many wait as the last one
    served, since most of those come back, or after a millisecond.
    """

    def __init__(self, engine: PolicyEngine, loop: asyncio.AbstractEventLoop) -> None:
        """Listen to the journal of an engine."""
        self._journal = engine.journal
        self._loop = loop
        self._waiting: deque[tuple[int, Tell]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._soon = False
        self._served = 0
        self._journal.subscribe(self._tell)

    def _tell(self, durable: int, error: StoreError | None) -> None:
        """Called on the journal's thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, durable, error)

    def _wake(self, durable: int, error: StoreError | None) -> None:
        before = len(self._waiting)
        while self._waiting and (error is not None or self._waiting[0][0] <= durable):
            seq, tell = self._waiting.popleft()
            tell(None if seq <= durable else error)
        self._served = before - len(self._waiting)

    def when_durable(self, tell: Tell) -> None:
        """Call this when everything that happened so far is durable, or with the error if it will not be."""
        journal = self._journal
        seq = journal.last
        if journal.failure is not None or journal.is_lost(seq):
            tell(journal.failure or unavailable("the commit failed"))
            return
        if seq <= journal.durable:
            tell(None)
            return
        self._waiting.append((seq, tell))
        if self._timer is None:
            self._timer = self._loop.call_later(COLLECT, self._commit)
        if len(self._waiting) > self._served // 2 and not self._soon:
            self._soon = True
            self._loop.call_soon(self._commit)  # after all requests that are ready now

    def _commit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._soon = None, False
        self._journal.wake()


class Context:
    """What belongs to one running service."""

    def __init__(self, engine: PolicyEngine, *, body_limit: int, in_flight_limit: int) -> None:
        """Around an open engine."""
        self.engine = engine
        self.keys = KeyRing(engine.store)
        self.metrics = Metrics()
        self.body_limit, self.in_flight_limit = body_limit, in_flight_limit
        self.started = time.time()
        self.closing = False
        self.frames: dict[str, PolicyFrames] = {}
        self._reading = 0
        self._acknowledgements: Acknowledgements | None = None

    def when_durable(self, tell: Tell) -> None:
        """Call this when everything that happened so far is durable, or with the error if it will not be."""
        if self._acknowledgements is None:
            self._acknowledgements = Acknowledgements(self.engine, asyncio.get_running_loop())
        self._acknowledgements.when_durable(tell)

    @contextmanager
    def body_reader(self, told: int) -> Iterator[Callable[[bytes], None]]:
        """Count the bytes of a body while it is read; too many of it, or of all together, are refused."""
        limit, size = self.body_limit, 0
        if told > limit:
            raise Refusal(413, f"a body may have {limit} bytes, got {told}")

        def count(piece: bytes) -> None:
            nonlocal size
            size += len(piece)
            self._reading += len(piece)
            if size > limit:
                raise Refusal(413, f"a body may have {limit} bytes, got more")
            if self._reading > max(MOST_BODIES, limit):
                raise Refusal(503, "too many long bodies are being read; try again")

        try:
            yield count
        finally:
            self._reading -= size

    async def durable(self) -> None:
        """Return when everything that happened so far is durable."""
        future: asyncio.Future[StoreError | None] = asyncio.get_running_loop().create_future()
        self.when_durable(lambda error: None if future.done() else future.set_result(error))
        error = await future
        if error is not None:
            raise error

    def authorise(self, told: str, role: Role, policy: str | None, *, any_scope: bool = False) -> Key | None:
        """See that the bearer of a key may do this; without any keys, everybody may.

        `told` is what the header Authorization says; `any_scope` lets keys of one policy pass, too.
        """
        self.keys.refresh()
        if not len(self.keys):
            return None
        scheme, _, token = told.partition(" ")
        key = self.keys.find(token.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise Refusal(401, "a key is needed: Authorization: Bearer ck_…; `coterie keys create` makes one")
        if not key.allows(role, key.policy if any_scope else policy):
            where = "" if policy is None else f" of policy {policy!r}"
            raise Refusal(403, f"this needs the role {role}{where}, and the key does not have it")
        return key


def authorization_of(scope: Scope) -> str:
    """What the header Authorization of a request says."""
    return next((text.decode("latin-1") for name, text in scope["headers"] if name == b"authorization"), "")


def content_length(scope: Scope) -> int:
    """How long the body of a request is said to be; 0 if that is not said."""
    told = next((text for name, text in scope["headers"] if name == b"content-length"), b"")
    return int(told) if told.isdigit() else 0


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
    pieces = []
    with context_of(request).body_reader(content_length(request.scope)) as count:
        async for piece in request.stream():
            count(piece)
            pieces.append(piece)
    return b"".join(pieces)


def json_response(message: Any, status: int = 200) -> Response:
    """A message as JSON."""
    return Response(encode(message), status, media_type="application/json")


def by_id(arms: list[messages.Arm], name: str) -> dict[str, Any]:
    """Vectors by id; the same id twice is refused."""
    found = {arm.id: arm.x for arm in arms}
    if len(found) != len(arms):
        raise Refusal(422, f"{name} must name each id once")
    if len({len(x) for x in found.values()}) > 1:
        raise Refusal(422, f"{name} must have vectors of one length")
    return found


def integer_parameter(request: Request, name: str, default: int, most: int) -> int:
    """A whole number of the query, from 0 to `most`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most):
        raise Refusal(422, f"{name} must be a whole number from 0 to {most}, got {text[:40]!r}")
    return int(text)
