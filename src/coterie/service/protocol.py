"""Requests for decisions and rewards straight from the connection; all others as uvicorn handles them."""

from __future__ import annotations

import re
import time
from asyncio import Future
from functools import cache, partial
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coterie.errors import StoreError
from coterie.service.context import Context
from coterie.service.direct import HANDLES, takes_long
from coterie.service.problems import body_of_problem, headers_of, refused

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


def read_request(data: bytes) -> tuple[str, str, str, bytes] | None:
    """Policy, route, key and body, if the bytes are one request for decisions or rewards and nothing else."""
    found = WHOLE.match(data)
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
    body = data[found.end() :]
    if not length or int(length) != len(body):
        return None
    return policy.decode(), route.decode(), key.decode("latin-1"), body


@cache
def head(status: int) -> bytes:
    """The first lines of an answer."""
    lines = [b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode())]
    lines += [name + b": " + text for name, text in headers_of(status)]
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
            if asked is not None and len(asked[3]) <= self.context.body_limit:
                self._unset_keepalive_if_required()
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

    def _handle(self, policy: str, route: str, key: str, body: bytes) -> None:
        """Let the policy answer; what it answers is sent when it is durable."""
        self._busy = True
        self.context.metrics.in_flight += 1
        began = time.perf_counter()
        where = f"POST {route} of {policy}"
        try:
            self.context.authorise(key, "writer", policy)
            if takes_long(self.context, policy, route):
                answer = self.loop.run_in_executor(None, HANDLES[route], self.context, policy, body)
                answer.add_done_callback(partial(self._handled, route, began, where))
                return
            status, content = HANDLES[route](self.context, policy, body)
        except Exception as error:
            self._send(*_problem(error, where))
            return
        self.context.when_durable(partial(self._settled, route, began, status, content))

    def _handled(self, route: str, began: float, where: str, answer: Future[tuple[int, bytes]]) -> None:
        """A thread has an answer."""
        try:
            status, content = answer.result()
        except Exception as error:
            self._send(*_problem(error, where))
            return
        self.context.when_durable(partial(self._settled, route, began, status, content))

    def _settled(
        self, route: str, began: float, status: int, content: bytes, error: StoreError | None
    ) -> None:
        """The answer is durable, or will not be."""
        if error is not None:
            status, content = _problem(error, route)
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
        extra = b"".join([name + b": " + text + b"\r\n" for name, text in self.server_state.default_headers])
        length = b"content-length: %d\r\n\r\n" % len(content)
        self.transport.write(b"".join([head(status), extra, length, content]))
        if self._closing:
            self.transport.close()
            return
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )
        if self._early:
            early, self._early = self._early, b""
            self.transport.resume_reading()
            self.data_received(early)

    def shutdown(self) -> None:
        """Close, but not before the answer that is under way; streams end soon."""
        self.context.closing = True
        if self._busy:
            self._closing = True
        else:
            super().shutdown()


def _problem(error: Exception, where: str) -> tuple[int, bytes]:
    status, detail = refused(error, where)
    return status, body_of_problem(status, detail)


def protocol_of(context: Context) -> type[DirectProtocol]:
    """The protocol of a service, for uvicorn to make connections of."""
    return type("ServiceProtocol", (DirectProtocol,), {"context": context})
