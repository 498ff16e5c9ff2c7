"""A connection of uvicorn with bounded request heads, and the fast path for decisions and rewards."""

from __future__ import annotations

import re
import time
from asyncio import Future, TimerHandle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, NamedTuple

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coterie.errors import StoreError
from coterie.service.http.admission import Admission
from coterie.service.http.decision_routes import HANDLERS, QUICK_BODY, Answer
from coterie.service.http.problems import Headers, Refusal, body_of_problem, headers_of, refused, status_of
from coterie.service.http.request_log import AnsweredRequest
from coterie.service.http.service import HTTPService

PATH = re.compile(rb"/v1/policies/([A-Za-z0-9_.-]+)/(decisions|rewards)")
"""Paths of the fast path; one with an escape or a query is left to the router."""
FIRST_BYTES = b"POST /v1/policies/"
ORDINARY = frozenset((b"transfer-encoding", b"expect", b"upgrade"))
"""Headers of requests that are left to uvicorn."""
EARLY_LIMIT = 65_536
"""Bytes that are buffered of requests that come before the last one is answered."""
BLANK_LINE = re.compile(rb"\n\r?\n")
LEAST_PIECE = 256
"""Bytes that are parsed in one go: more only up to the next blank line, where a request may end."""
UPGRADE_HEADERS = frozenset((b"upgrade", b"connection", b"http2-settings"))
"""Headers that offer another protocol."""
SPARE_CONNECTIONS = 16
"""Connections beyond the limit, for health checks alone."""
AUTHORITY = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
"""The start of a target that names a host, as requests to a proxy do."""
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


class HeadReader:
    """Reads requests that may take the fast path, which have passed every check of their first lines.

    Parameters
    ----------
    admission : Admission
        The checks; a request that does not pass is left to the other path, which refuses it.
    """

    def __init__(self, admission: Admission) -> None:
        """Start with an empty cache: a client sends the same head again and again."""
        self._admission = admission
        self._head = lru_cache(maxsize=512)(self._parsed)

    def request(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return head and body of bytes that are exactly one request for decisions or rewards, else None."""
        if not data.startswith(FIRST_BYTES):
            return None
        end = data.find(b"\r\n\r\n", 0, SHORT_HEAD) + 4
        head = self._head(data[:end])
        return None if head is None or head.body_length != len(data) - end else (head, data[end:])

    def _parsed(self, data: bytes) -> Head | None:
        """Parse and check a head.

        The parser is the one that uvicorn uses, so there is one opinion on where a head ends and what it
        says. What it refuses, or finds to be less or more than a head, is left to uvicorn, which parses it
        again.
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
        try:
            self._admission.check("POST", path[0].decode(), found.headers)
        except Refusal:
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

    The client has a limited time for whatever is its turn: to begin a request, to finish it, and to read the
    answer. One timer for each connection looks after that; setting one for each request is slow.
    """

    service: HTTPService
    heads: HeadReader

    def __init__(self, *args: Any, **options: Any) -> None:
        """Accept a connection."""
        super().__init__(*args, **options)
        self._parsing = self._in_head = self._busy = self._closing = False
        self._upgrading = self._refused = self._spare = self._paused = self._ended = False
        self._early = b""
        self._answered: tuple[Head, float, bytes]
        self._since_body = 0
        self._turn_since = self.loop.time()
        self._stalled_since: float | None = None
        self._timer: TimerHandle | None = None

    # Connections.

    def connection_made(self, transport: Any) -> None:
        """Make room for this connection, or keep it for health checks if there is none."""
        super().connection_made(transport)
        self._turn_since = self.loop.time()
        self._check_later(self.service.limits.idle_timeout)
        metrics, limit = self.service.metrics, self.service.limits.connection_limit
        if len(self.connections) > limit and not self._close_longest_idle():
            self.service.limiter.reached("connection")
            self._spare = True
            if len(self.connections) > limit + SPARE_CONNECTIONS:
                transport.abort()
        metrics.connections = len(self.connections)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the timer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
        self.service.metrics.connections = len(self.connections)

    @property
    def _idle(self) -> bool:
        """Whether nothing is lost if the connection is closed: no request has come with its whole head."""
        answered = self.cycle is None or self.cycle.response_complete
        return not self._busy and answered and (not self._parsing or self._in_head)

    def _close_longest_idle(self) -> bool:
        """Close the connection that has been idle the longest; False if all others are in use."""
        others = [one for one in self.connections if isinstance(one, ServiceConnection) and one is not self]
        oldest = min((one for one in others if one._idle), key=lambda one: one._turn_since, default=None)
        if oldest is None:
            return False
        self.connections.discard(oldest)  # at once: it is told that it is closed only later
        oldest.transport.abort()
        return True

    def _check_later(self, seconds: float) -> None:
        self._timer = self.loop.call_later(max(seconds, 0.01), self._check_time)

    def _check_time(self) -> None:
        """Close the connection if its client has had the time that it may take."""
        limits, now = self.service.limits, self.loop.time()
        if self.transport.is_closing():
            return
        if self._stalled_since is not None:
            left = self._stalled_since + limits.request_timeout - now
            if left <= 0:
                self.transport.abort()  # the answer is not read: closing would wait for that
                return
        elif self._busy or not (self._parsing or self.cycle is None or self.cycle.response_complete):
            left = float(limits.idle_timeout)  # it is the service's turn
        else:
            unanswered = self._parsing and (self.cycle is None or not self.cycle.response_complete)
            unanswered = unanswered or (self._parsing and self._in_head)
            patience = limits.request_timeout if unanswered else limits.idle_timeout
            left = self._turn_since + patience - now
            if left <= 0:
                if unanswered:
                    self._refuse(408, f"a request must arrive within {patience} s")
                else:
                    self.transport.close()
                return
        self._check_later(left)

    def pause_writing(self) -> None:
        """The client does not read as fast as the answer comes."""
        self._stalled_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client has read most of it."""
        self._stalled_since = None
        super().resume_writing()
        self._take_early()

    # What uvicorn handles.

    def on_message_begin(self) -> None:
        """The parser is within a request."""
        self._parsing = self._in_head = True
        self._upgrading = False
        self._turn_since = self.loop.time()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; those after a chunked body are dropped, or they would join the checked ones."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The parser is within a body, whose limits are checked where it is read."""
        if self.parser.should_upgrade():
            self._upgrading = True  # it is parsed again without the offer
            return
        self._in_head = False
        if self._spare and not self.url.startswith(b"/health/"):
            self._refuse(503, str(self.service.limiter.reached("connection")))
        if named := AUTHORITY.match(self.url):
            # The host of the target counts, not the header (RFC 9112, section 3.2.2): it is the one to check.
            self.headers[:] = [(name, named[1] if name == b"host" else value) for name, value in self.headers]
        if not self._refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of a body."""
        self._since_body = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The parser is between requests."""
        if self._upgrading:
            return
        self._parsing = False
        self._since_body = 0
        if not self._refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """It is the client's turn; the timer of this class replaces uvicorn's."""
        super().on_response_complete()
        self._unset_keepalive_if_required()
        self._turn_since = self.loop.time()
        self._take_early()

    def data_received(self, data: bytes) -> None:
        """Answer what has come, one request after the other."""
        if self._refused:
            return
        self._early += data
        self._take_early()

    def eof_received(self) -> Any:  # True leaves the connection open, which uvicorn's type does not know
        """The client sends no more, but may still read: answer what has come, then close.

        An answer that has begun is broken off: a page or a long export would never know that nobody reads it.
        """
        self._ended = True
        self._take_early()
        return self.cycle is None or not self.cycle.response_started or self.cycle.response_complete

    @property
    def _must_wait(self) -> bool:
        """Whether the next request has to wait: a request takes a hundred times its bytes when it is parsed.

        Nor must answers pile up that nobody reads.
        """
        if self._busy or self._refused or self._stalled_since is not None or self.transport.is_closing():
            return True
        answering = self.cycle is not None and not self.cycle.response_complete
        return answering and (self._in_head or not self._parsing)

    def _take_early(self) -> None:
        """Go on with what has come and was not parsed."""
        while self._early and not self._must_wait:
            data, self._early = self._early, b""
            if not self._take_fast_path(data):
                self._early = self._parse(data)
        if self._ended and not self._must_wait:
            self.transport.close()
        elif len(self._early) > EARLY_LIMIT:
            self._paused = True
            self.transport.pause_reading()
        elif self._paused:
            self._paused = False
            self.transport.resume_reading()

    def _take_fast_path(self, data: bytes) -> bool:
        """Answer bytes that are exactly one request for decisions or rewards; False if they are not."""
        if self._parsing or self._spare or not self.service.has_room():
            return False
        request = self.heads.request(data)
        if request is None or request[0].body_length > self.service.limits.body_limit:
            return False
        head, body = request
        router = self.service.router
        if router is not None and not router.is_local(head.policy, head.route, body):
            return False
        self._answer(*request)
        return True

    def _parse(self, data: bytes) -> bytes:
        """Pass bytes to uvicorn, until one request is whole; return the rest."""
        start = 0
        while start < len(data) and not self._must_wait:
            blank = BLANK_LINE.search(data, start + LEAST_PIECE)
            end = len(data) if blank is None else blank.end()
            piece, start = data[start:end], end
            self._since_body += len(piece)
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserError:
                self._refuse(400, "this is not an HTTP/1.1 request")
            except httptools.HttpParserUpgrade as upgrade:
                return self._without_upgrade() + piece[upgrade.args[0] :] + data[end:]
            # The parser keeps the lines of a head, and of the trailers of a chunked body, however many.
            if self._parsing and self._since_body > self.service.limits.head_limit:
                self._refuse(431, str(self.service.limiter.reached("head")))
        return data[start:]

    def _without_upgrade(self) -> bytes:
        """Return the head of a request without its offer of another protocol, to be parsed again.

        A server that does not know the other protocol may go on with HTTP/1.1 (RFC 9110, section 7.8). The
        parser would take the body for data of that protocol.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            self._refuse(400, "this service is no proxy: CONNECT is not a request that it knows")
            return b""
        lines = [b"%b %b HTTP/%b" % (method, self.url, version)]
        lines += [name + b": " + value for name, value in self.headers if name not in UPGRADE_HEADERS]
        if not self.parser.should_keep_alive():
            lines.append(b"connection: close")
        self.parser = httptools.HttpRequestParser(self)
        self._parsing = False
        self._since_body = 0
        return b"\r\n".join([*lines, b"", b""])

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no request."""
        self._refuse(400, "this is not an HTTP/1.1 request")

    def _refuse(self, status: int, detail: str) -> None:
        """Answer without any handler, and close."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
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
        self._answered = head, began, service.request_log.id_of(head.headers)
        service.metrics.in_flight += 1
        policy, route, headers, _ = head
        handler, engine = HANDLERS[route], service.engine
        try:
            service.keys.authorise(headers, "writer", policy)
            if len(body) > QUICK_BODY:
                call = partial(handler.handle, engine, policy, body)
                self._answer_in_thread(route, began, call, service.threads)
                return
            request = handler.decode(body)
            answer = handler.answer_if_quick(engine, policy, request)
            if answer is None:
                pool = service.search_thread if handler.searches(engine, policy, request) else service.threads
                self._answer_in_thread(route, began, partial(handler.answer, engine, policy, request), pool)
                return
        except Exception as error:
            self._send_problem(error)
            return
        (status, content), seq = answer
        service.when_durable(seq, partial(self._settled, route, began, status, content))

    def _answer_in_thread(
        self, route: str, began: float, answer: Callable[[], Answer], threads: ThreadPoolExecutor
    ) -> None:
        """Let a thread call the handler: the event loop waits for no store and no lock."""
        running = self.loop.run_in_executor(threads, answer)
        running.add_done_callback(partial(self._handled, route, began))

    def _handled(self, route: str, began: float, answer: Future[Answer]) -> None:
        """A thread has called the handler."""
        # Raised here, the error would know this frame, which knows the future, which knows the error: a cycle
        # that keeps the whole request in memory until the next collection, which is rare.
        error = answer.exception()
        if isinstance(error, Exception):
            self._send_problem(error)
            return
        (status, content), seq = answer.result()
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

    def _send_problem(self, error: Exception) -> None:
        head, _, named = self._answered
        status, detail = refused(error, f"POST {head.route}", named.decode())
        self._send(status, body_of_problem(status, detail))

    def _send(self, status: int, content: bytes) -> None:
        """Send an answer, then go on with what came meanwhile."""
        self._busy = False
        sent, began, named = self._answered
        if self.service.request_log.records():
            path, seconds = f"/v1/policies/{{policy}}/{sent.route}", time.perf_counter() - began
            answered = AnsweredRequest(named.decode(), "POST", path, sent.policy, status, seconds)
            self.service.request_log.record(answered, sent.headers)
        metrics = self.service.metrics
        metrics.in_flight -= 1
        metrics.responses[status] += 1
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        head = response_head(status, *self.server_state.default_headers)
        last = b"x-request-id: %b\r\ncontent-length: %d\r\n\r\n%b" % (named, len(content), content)
        self.transport.write(head + last)
        if self._closing:
            self.transport.close()
            return
        self._turn_since = self.loop.time()
        self._take_early()

    def shutdown(self) -> None:
        """Close when the answer under way is sent; streams of the page end soon."""
        self.service.closing = True
        if self._busy:
            self._closing = True
        else:
            super().shutdown()


def connection_type(service: HTTPService) -> type[ServiceConnection]:
    """Return the protocol class of a service, which uvicorn instantiates for each connection."""
    members = {"service": service, "heads": HeadReader(service.admission)}
    return type("ConnectionOfService", (ServiceConnection,), members)
