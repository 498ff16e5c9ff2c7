"""The ASGI application around an engine: limits, keys, and the wait until an event is durable."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Protocol, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coterie.errors import StoreError
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import LivePolicy
from coterie.service.http.admission import Admission
from coterie.service.http.api_keys import APIKeys
from coterie.service.http.problems import REQUEST_ID, SECURITY_HEADERS, Refusal, header, problem
from coterie.service.http.prometheus import Metrics
from coterie.service.http.request_log import HEADER, UNKNOWN_ROUTE, AnsweredRequest, RequestLog
from coterie.service.storage.journal import Acknowledge, Acknowledgements, PendingResult

R = TypeVar("R")
STREAM = re.compile(r"/v1/policies/[^/]+/live")
"""Paths whose responses last as long as a page is open; their number has a limit of its own."""
REQUEST_THREADS = 64
"""Threads for decisions and rewards that look something up, or wait for their turn."""
ROUTE = "coterie.route"
"""Name in the scope of a request for the pattern of its path."""
BODY_BYTES = "coterie.body_bytes"
"""Name in the scope of a request for the bytes of its body that have been read."""


class Router(Protocol):
    """Decides where requests are answered, in a service that is one shard of several."""

    headers: list[tuple[str, str]]
    """Headers of all answers."""

    def is_local(self, policy: str, route: str, body: bytes) -> bool:
        """Tell whether decisions or rewards are of users of this shard."""

    async def answer(self, request: Request, endpoint: Any, handle: Any) -> Response:
        """Answer a request, here by `handle(request)` or elsewhere."""

    def routes(self, service: HTTPService) -> list[Any]:
        """Return the routes that a service without shards does not have."""


class Unsettled:
    """An acknowledgement that is called once: when the commit is done, or at the deadline."""

    __slots__ = ("acknowledge", "deadline")

    def __init__(self, acknowledge: Acknowledge, deadline: float) -> None:
        """Wait."""
        self.acknowledge: Acknowledge | None = acknowledge
        self.deadline = deadline

    def settle(self, error: StoreError | None) -> None:
        """Call it, unless it was called before."""
        acknowledge, self.acknowledge = self.acknowledge, None
        if acknowledge is not None:
            acknowledge(error)


class HTTPService:
    """The ASGI application of one running service, and what its handlers share.

    Parameters
    ----------
    engine : PolicyEngine
        Open.
    admission : Admission
        Decides which requests come in.
    insecure : bool
        Whether requests need no key while the store has none, even if it had one.
    router : Router, optional
        Of a service that is one shard of several.
    request_log : RequestLog, optional
        Gives ids to requests, and records them.

    Notes
    -----
    Requests for decisions and rewards usually do not come here: `ServiceConnection` answers them.
    """

    app: ASGIApp
    """All routes; set by `build_app`, since handlers need the service."""

    def __init__(
        self,
        engine: PolicyEngine,
        *,
        admission: Admission,
        insecure: bool = False,
        router: Router | None = None,
        request_log: RequestLog | None = None,
    ) -> None:
        """Read the keys of the engine's store."""
        self.engine, self.router = engine, router
        self.request_log = request_log or RequestLog()
        self.keys = APIKeys(engine.store, insecure=insecure)
        self.admission = admission
        self.metrics = Metrics()
        self.limiter, self.limits = engine.limiter, engine.limiter.limits
        self.closing = False
        # Many: while a store hangs, a request waits for its turn before it is refused.
        self.threads = ThreadPoolExecutor(REQUEST_THREADS, "coterie-request")
        # One: searches take turns anyway, and those that wait here do not wait for the lock of requests, for
        # which patience is short.
        self.search_thread = ThreadPoolExecutor(1, "coterie-search")
        self._unsettled: deque[Unsettled] = deque()
        self._sweep: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it may not come in or too many are in flight."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, named = time.perf_counter(), self.request_log.id_of(scope["headers"])
        scope[REQUEST_ID] = named.decode()
        await self._answer(scope, receive, self._with_headers(scope, began, named, send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, metrics = scope["path"], self.metrics
        try:
            self.admission.check(scope["method"], path, scope["headers"], version=scope["http_version"])
        except Refusal as error:
            await problem(error.status, str(error))(scope, receive, send)
            return
        if STREAM.fullmatch(path):
            await self.app(scope, receive, send)
        elif not self.has_room() and not path.startswith("/health"):
            await problem(503, str(self.limiter.reached("in_flight")))(scope, receive, send)
        else:
            metrics.in_flight += 1
            try:
                await self.app(scope, receive, send)
            finally:
                metrics.in_flight -= 1
                metrics.body_bytes -= scope.get(BODY_BYTES, 0)

    def close(self) -> None:
        """Stop reading keys, and take no more requests."""
        self.keys.close()
        for pool in (self.threads, self.search_thread):
            pool.shutdown(wait=False)

    def has_room(self) -> bool:
        """Tell whether one more request may be answered."""
        return self.metrics.in_flight < self.limits.in_flight_limit

    def _with_headers(self, scope: Scope, began: float, named: bytes, send: Send) -> Send:
        """Count and record responses, and add the headers that all of them have."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.metrics.responses[message["status"]] += 1
                present = {name for name, _ in message["headers"]}
                extra = [pair for pair in SECURITY_HEADERS if pair[0] not in present]
                message["headers"] = [*message["headers"], *extra, (HEADER, named)]
                if self.request_log.records():
                    self._record(scope, message["status"], time.perf_counter() - began)
            await send(message)

        return send_with_headers

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        policy = scope.get("path_params", {}).get("policy")
        request = AnsweredRequest(
            id=scope[REQUEST_ID],
            method=scope["method"],
            route=scope.get(ROUTE, UNKNOWN_ROUTE),
            policy=policy,
            status=status,
            seconds=seconds,
        )
        self.request_log.record(request, scope["headers"])

    def when_durable(self, seq: int, acknowledge: Acknowledge) -> None:
        """Call this once the event of this number is durable, or with an error if it is not in time."""
        loop = asyncio.get_running_loop()
        waiting = Unsettled(acknowledge, loop.time() + self.limits.commit_timeout)
        self.acknowledgements.when_durable(seq, waiting.settle)
        if waiting.acknowledge is None:
            return
        while self._unsettled and self._unsettled[0].acknowledge is None:
            self._unsettled.popleft()
        self._unsettled.append(waiting)
        if self._sweep is None:
            self._sweep = loop.call_later(1.0, self._answer_overdue)

    def _answer_overdue(self) -> None:
        """Answer requests whose commit takes too long: a store that hangs must not keep clients waiting."""
        loop, seconds = asyncio.get_running_loop(), self.limits.commit_timeout
        overdue = StoreError(
            f"the store has not confirmed this for {seconds} s, and it may still be counted; "
            "send it again with the same id"
        )
        while self._unsettled:
            first = self._unsettled[0]
            if first.acknowledge is not None:
                if first.deadline > loop.time():
                    break
                first.settle(overdue)
            self._unsettled.popleft()
        self._sweep = loop.call_later(1.0, self._answer_overdue) if self._unsettled else None

    @cached_property
    def acknowledgements(self) -> Acknowledgements:
        """Requests that wait for a commit; they are woken in the event loop of the first one."""
        return Acknowledgements(self.engine.journal, asyncio.get_running_loop())

    async def durable(self, pending: PendingResult[R]) -> R:
        """Return a result when its event is durable; StoreError if it never will be."""
        done: asyncio.Future[StoreError | None] = asyncio.get_running_loop().create_future()
        # The client may be gone before the commit: its task is cancelled then, and the future with it.
        self.when_durable(pending.seq, lambda error: None if done.done() else done.set_result(error))
        error = await done
        if error is not None:
            raise error
        return pending.result

    async def read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the body of a request, within the limits; None if the client is gone.

        Its bytes count until the request is answered: handlers may wait for a thread or for the store.
        """
        limits, metrics = self.limits, self.metrics
        announced = header(scope["headers"], b"content-length")
        if announced.isdigit() and len(announced) < 20 and int(announced) > limits.body_limit:
            raise Refusal(413, str(self.limiter.reached("body")))
        pieces: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            metrics.body_bytes += len(pieces[-1])
            scope[BODY_BYTES] = size
            if size > limits.body_limit:
                raise Refusal(413, str(self.limiter.reached("body")))
            if metrics.body_bytes > max(limits.bodies_limit, limits.body_limit):
                raise self.limiter.reached("bodies")
            more = message.get("more_body", False)
        return b"".join(pieces)


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


def replayed(request: Request, body: bytes) -> Request:
    """Return a request whose body, which was read, can be read once more."""
    service_of(request).metrics.body_bytes -= request.scope.pop(BODY_BYTES, 0)

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(request.scope, receive)
