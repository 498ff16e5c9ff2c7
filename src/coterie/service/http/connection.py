"""A connection of uvicorn with bounded request heads, and the fast path for decisions and rewards."""

from __future__ import annotations

import re
import time
from asyncio import Future
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, NamedTuple

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coterie.errors import StoreError
from coterie.service.http.decision_routes import HANDLERS, takes_long
from coterie.service.http.problems import Headers, body_of_problem, headers_of, refused, status_of
from coterie.service.http.service import HTTPService
from coterie.service.storage.journal import Pending

PATH = re.compile(rb"/v1/policies/([A-Za-z0-9_.-]+)/(decisions|rewards)")
"""Paths of the fast path; one with an escape or a query is left to the router."""
FIRST_BYTES = b"POST /v1/policies/"
ORDINARY = frozenset((b"transfer-encoding", b"expect", b"upgrade"))
"""Headers of requests that are left to uvicorn."""
EARLY_LIMIT = 65_536
"""Bytes that are buffered of requests that come before the last one is answered."""
HEAD_LIMIT = 65_536
"""Bytes that the first line and the headers of a request may have."""
SHORT_HEAD = 4_096
"""Bytes of a head that may take the fast path: the latest 512 are cached."""


class Head(NamedTuple):
    """The first line and the headers of a request; names of headers are in lower case."""

    policy: str
    route: str
    headers: Headers
    body_length: int


class HeadRecorder:
    """Callbacks of an httptools parser that keep what it finds in a head."""

    def __init__(self) -> None:
        """Start without a head."""
        self.url = b""
        self.headers: Headers = []
        self.messages = self.heads = self.bodies = 0

    def on_message_begin(self) -> None:
        """Count a request."""
        self.messages += 1

    def on_url(self, url: bytes) -> None:
        """Keep the target."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Count a head that is whole."""
        self.heads += 1

    def on_body(self, body: bytes) -> None:
        """Count a piece of a body."""
        self.bodies += 1


def read_request(data: bytes) -> tuple[Head, bytes] | None:
    """Return head and body of bytes that are exactly one request for decisions or rewards, else None."""
    if not data.startswith(FIRST_BYTES):
        return None
    end = data.find(b"\r\n\r\n", 0, SHORT_HEAD) + 4
    head = read_head(data[:end])
    return None if head is None or head.body_length != len(data) - end else (head, data[end:])


@lru_cache(maxsize=512)
def read_head(data: bytes) -> Head | None:
    """Parse a head that may take the fast path; cached, since a client sends the same one again and again.

    The parser is the one that uvicorn uses, so there is one opinion on where a head ends and what it says.
    What it refuses, or finds to be less or more than a head, is left to uvicorn, which parses it again.
    """
    found = HeadRecorder()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(data)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    headers = dict(found.headers)
    path, length = PATH.fullmatch(found.url), headers.get(b"content-length", b"")
    if (found.messages, found.heads, found.bodies) != (1, 1, 0) or path is None or not length.isdigit():
        return None
    if parser.get_http_version() != "1.1" or not parser.should_keep_alive() or ORDINARY & headers.keys():
        return None
    return Head(path[1].decode(), path[2].decode(), found.headers, int(length))


@lru_cache(maxsize=64)
def response_head(status: int, *others: tuple[bytes, bytes]) -> bytes:
    """Return the first lines of an answer; `others` are the headers of all answers of a server."""
    lines = [b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode())]
    lines += [name + b": " + text for name, text in (*headers_of(status), *others)]
    return b"\r\n".join([*lines, b""])


class ServiceConnection(HttpToolsProtocol):
    """A connection to the service.

    A request for decisions or rewards that comes in one piece, as nearly all do, is answered here, without a
    task, ASGI messages or Starlette; decision record 0011 says what that saves. All others go through uvicorn
    to the same handlers.
    """

    service: HTTPService

    def __init__(self, *args: Any, **options: Any) -> None:
        """Accept a connection."""
        super().__init__(*args, **options)
        self._parsing = self._in_head = self._busy = self._closing = False
        self._early = b""
        self._head_size = 0
        self._answered = 0.0

    # What uvicorn handles.

    def on_message_begin(self) -> None:
        """The parser is within a request: start to count the bytes of its head."""
        self._parsing = self._in_head = True
        self._head_size = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The parser is within a body, whose limits are checked where it is read."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The parser is between requests."""
        self._parsing = False
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Answer a request that is whole, or pass the bytes to uvicorn."""
        if self._busy:
            self._early += data
            if len(self._early) > EARLY_LIMIT:
                self.transport.pause_reading()
            return
        idle = self.cycle is None or self.cycle.response_complete
        if not self._parsing and idle and self.service.has_room():
            request = read_request(data)
            if request is not None and request[0].body_length <= self.service.limits.body:
                self._answer(*request)
                return
        super().data_received(data)
        # uvicorn keeps all header lines until the head ends, and limits neither their number nor their size.
        if self._in_head and not self.transport.is_closing():
            self._head_size += len(data)
            if self._head_size > HEAD_LIMIT:
                self._refuse(431, f"the headers of a request may have {HEAD_LIMIT} bytes")

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no request."""
        self._refuse(400, "this is not an HTTP/1.1 request")

    def _refuse(self, status: int, detail: str) -> None:
        """Answer without any handler, and close."""
        self.service.metrics.responses[status] += 1
        content = body_of_problem(status, detail)
        last = b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(content)
        self.transport.write(b"".join([response_head(status), last, content]))
        self.transport.close()

    # The fast path.

    def _answer(self, head: Head, body: bytes) -> None:
        """Call the handler; its answer is sent when it is durable."""
        self._busy = True
        service, began = self.service, time.perf_counter()
        service.metrics.in_flight += 1
        policy, route, headers, _ = head
        try:
            service.keys.authorise(headers, "writer", policy)
            if takes_long(service.engine, policy, route):
                answer = self.loop.run_in_executor(None, HANDLERS[route], service.engine, policy, body)
                answer.add_done_callback(partial(self._handled, route, began))
                return
            (status, content), seq = HANDLERS[route](service.engine, policy, body)
        except Exception as error:
            self._send(*_problem(error, route))
            return
        service.when_durable(seq, partial(self._settled, route, began, status, content))

    def _handled(self, route: str, began: float, answer: Future[Pending[tuple[int, bytes]]]) -> None:
        """A thread has called the handler."""
        try:
            (status, content), seq = answer.result()
        except Exception as error:
            self._send(*_problem(error, route))
            return
        self.service.when_durable(seq, partial(self._settled, route, began, status, content))

    def _settled(
        self, route: str, began: float, status: int, content: bytes, error: StoreError | None
    ) -> None:
        """The answer is durable, or never will be."""
        if error is not None:
            status = status_of(error)
            content = body_of_problem(status, str(error))
        self.service.metrics.routes[route].add(time.perf_counter() - began)
        self._send(status, content)

    def _send(self, status: int, content: bytes) -> None:
        """Send an answer, then go on with what came meanwhile."""
        self._busy = False
        metrics = self.service.metrics
        metrics.in_flight -= 1
        metrics.responses[status] += 1
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        head = response_head(status, *self.server_state.default_headers)
        self.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(content), content))
        if self._closing:
            self.transport.close()
            return
        self._answered = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._check_later(self.timeout_keep_alive)
        if self._early:
            early, self._early = self._early, b""
            self.transport.resume_reading()
            self.data_received(early)

    def _check_later(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection. One timer serves many requests: setting one for each is slow."""
        idle = 0.0 if self._busy else self.loop.time() - self._answered
        if idle < self.timeout_keep_alive:
            self._check_later(self.timeout_keep_alive - idle)
        else:
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """Close when the answer under way is sent; streams of the page end soon."""
        self.service.closing = True
        if self._busy:
            self._closing = True
        else:
            super().shutdown()


def _problem(error: Exception, route: str) -> tuple[int, bytes]:
    status, detail = refused(error, f"POST {route}")
    return status, body_of_problem(status, detail)


def connection_type(service: HTTPService) -> type[ServiceConnection]:
    """Return the protocol class of a service, which uvicorn instantiates for each connection."""
    return type("ConnectionOfService", (ServiceConnection,), {"service": service})
