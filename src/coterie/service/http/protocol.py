"""Requests for decisions and rewards straight from the connection; all others as uvicorn handles them."""

from __future__ import annotations

import re
import time
from asyncio import Future
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coterie.errors import StoreError
from coterie.service.http.context import Context
from coterie.service.http.direct import HANDLES, takes_long
from coterie.service.http.problems import body_of_problem, headers_of, refused, status_of

WHOLE = re.compile(
    rb"POST /v1/policies/([A-Za-z0-9_.-]+)/(decisions|rewards) HTTP/1\.1\r\n((?:[!-9;-~]+:[^\r\n]*\r\n)+)\r\n"
)
"""The head of a request that may be handled here."""
ELSEWHERE = (b"transfer-encoding", b"expect", b"upgrade")
"""Headers of requests that are left to uvicorn."""
MOST_EARLY = 65_536
"""Bytes that may come before the last request is answered."""
MOST_HEAD = 65_536
"""Bytes that the first line and the headers of a request may have."""
SHORT_HEAD = 4_096
"""Bytes of a head that may be handled here: the latest are remembered."""


class Head(NamedTuple):
    """What the first line and the headers of a request say."""

    policy: str
    route: str
    key: str
    length: int


def read_request(data: bytes) -> tuple[Head, bytes] | None:
    """Head and body, if the bytes are one request for decisions or rewards and nothing else."""
    at = data.find(b"\r\n\r\n", 0, SHORT_HEAD) + 4
    told = read_head(data[:at])
    return None if told is None or told.length != len(data) - at else (told, data[at:])


@lru_cache(maxsize=512)
def read_head(text: bytes) -> Head | None:
    """What a head says, if the request may be handled here; a client sends the same one again and again."""
    found = WHOLE.fullmatch(text)
    if found is None:
        return None
    policy, route, lines = found.groups()
    length = key = b""
    for line in lines.split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        if name == b"content-length":
            if length or not value.isdigit():
                return None
            length = value
        elif name == b"authorization":
            key = value
        elif name in ELSEWHERE or (name == b"connection" and value.lower() != b"keep-alive"):
            return None
    if not length:
        return None
    return Head(policy.decode(), route.decode(), key.decode("latin-1"), int(length))


@lru_cache(maxsize=64)
def head(status: int, *others: tuple[bytes, bytes]) -> bytes:
    """The first lines of an answer; `others` are the headers of all answers of a server."""
    lines = [b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode())]
    lines += [name + b": " + text for name, text in (*headers_of(status), *others)]
    return b"\r\n".join([*lines, b""])


class DirectProtocol(HttpToolsProtocol):
    """A connection. A request that came in one piece, as nearly all do, needs no task and no message.

    What is not plainly one whole request goes through uvicorn's parser to the same handlers.
    """

    context: Context

    def __init__(self, *args: Any, **options: Any) -> None:
        """A connection of the server."""
        super().__init__(*args, **options)
        self._parsing = self._in_head = self._busy = self._closing = False
        self._early = b""
        self._head_size = 0
        self._answered = 0.0

    def on_message_begin(self) -> None:
        """The parser is within a request."""
        self._parsing = self._in_head = True
        self._head_size = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The parser is within a body."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The parser is between requests."""
        self._parsing = False
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Handle a request that is whole, or let the parser have the bytes."""
        if self._busy:
            self._early += data
            if len(self._early) > MOST_EARLY:
                self.transport.pause_reading()
            return
        metrics = self.context.metrics
        free = self.cycle is None or self.cycle.response_complete
        if not self._parsing and free and metrics.in_flight < self.context.in_flight_limit:
            asked = read_request(data)
            if asked is not None and asked[0].length <= self.context.body_limit:
                self._handle(*asked)
                return
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        """Let the parser have the bytes; a head that does not end is not read on."""
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._head_size += len(data)
            if self._head_size > MOST_HEAD:
                self._refuse(431, f"the headers of a request may have {MOST_HEAD} bytes")

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no request."""
        self._refuse(400, "this is no request of HTTP/1.1")

    def _refuse(self, status: int, detail: str) -> None:
        """Answer without any handler, and close."""
        self.context.metrics.responses[status] += 1
        content = body_of_problem(status, detail)
        last = b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(content)
        self.transport.write(b"".join([head(status), last, content]))
        self.transport.close()

    def _handle(self, told: Head, body: bytes) -> None:
        """Let the policy answer; what it answers is sent when it is durable."""
        self._busy = True
        context, (policy, route, key, _) = self.context, told
        context.metrics.in_flight += 1
        began = time.perf_counter()
        try:
            context.authorise(key, "writer", policy)
            if route == "rewards" and takes_long(context, policy, route):
                answer = self.loop.run_in_executor(None, HANDLES[route], context, policy, body)
                answer.add_done_callback(partial(self._handled, told, began))
                return
            status, content = HANDLES[route](context, policy, body)
        except Exception as error:
            self._send(*_problem(error, told))
            return
        context.when_durable(partial(self._settled, route, began, status, content))

    def _handled(self, told: Head, began: float, answer: Future[tuple[int, bytes]]) -> None:
        """A thread has an answer."""
        route = told.route
        try:
            status, content = answer.result()
        except Exception as error:
            self._send(*_problem(error, told))
            return
        self.context.when_durable(partial(self._settled, route, began, status, content))

    def _settled(
        self, route: str, began: float, status: int, content: bytes, error: StoreError | None
    ) -> None:
        """The answer is durable, or will not be."""
        if error is not None:
            status = status_of(error)
            content = body_of_problem(status, str(error))
        self.context.metrics.routes[route].add(time.perf_counter() - began)
        self._send(status, content)

    def _send(self, status: int, content: bytes) -> None:
        """Send an answer, then go on with what came meanwhile."""
        self._busy = False
        metrics = self.context.metrics
        metrics.in_flight -= 1
        metrics.responses[status] += 1
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        first = head(status, *self.server_state.default_headers)
        self.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (first, len(content), content))
        if self._closing:
            self.transport.close()
            return
        self._answered = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_later(self.timeout_keep_alive)
        if self._early:
            early, self._early = self._early, b""
            self.transport.resume_reading()
            self.data_received(early)

    def _look_later(self, seconds: float) -> None:
        """Close the connection then, unless there are requests meanwhile."""
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which nothing happened; one timer serves many requests."""
        idle = 0.0 if self._busy else self.loop.time() - self._answered
        if idle < self.timeout_keep_alive:
            self._look_later(self.timeout_keep_alive - idle)
        else:
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """Close, but not before the answer that is under way; streams end soon."""
        self.context.closing = True
        if self._busy:
            self._closing = True
        else:
            super().shutdown()


def _problem(error: Exception, told: Head) -> tuple[int, bytes]:
    status, detail = refused(error, f"POST {told.route} of {told.policy}")
    return status, body_of_problem(status, detail)


def protocol_of(context: Context) -> type[DirectProtocol]:
    """The protocol of a service, for uvicorn to make connections of."""
    return type("ServiceProtocol", (DirectProtocol,), {"context": context})
