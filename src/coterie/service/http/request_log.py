"""What happened to each request: its id, a line in the log, and a span where traces are on."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from coterie.errors import MissingExtra
from coterie.extras import is_installed
from coterie.service.http.problems import Headers, header

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

HEADER = b"x-request-id"
"""The header of requests and answers that has the id."""
VALID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
"""Ids of clients that are kept; a log must not be written by those who send requests."""
UNKNOWN_ROUTE = "unknown route"
logger = logging.getLogger(__name__)


class AnsweredRequest(NamedTuple):
    """A request and its answer.

    `route` has no names of users or items: a log keeps what was removed from the store.
    """

    id: str
    method: str
    route: str
    policy: str | None
    status: int
    seconds: float


class RequestLog:
    """Gives ids to requests, and records those that were answered.

    Parameters
    ----------
    traces : Traces, optional
        Gets a span for each request.
    """

    def __init__(self, traces: Traces | None = None) -> None:
        """Draw the first part of all ids of this process."""
        self._traces = traces
        self._start, self._numbers = os.urandom(5).hex().encode(), count(1)

    def id_of(self, headers: Headers) -> bytes:
        """Return the id that a client has given, if it is valid, or a new one."""
        given = header(headers, HEADER)
        return given if VALID.fullmatch(given) else b"%b-%x" % (self._start, next(self._numbers))

    def records(self) -> bool:
        """Tell whether anything is done with requests that were answered."""
        return self._traces is not None or logger.isEnabledFor(logging.DEBUG)

    def record(self, request: AnsweredRequest, headers: Headers) -> None:
        """Write a line of level debug, and a span."""
        shown, milliseconds = request._asdict(), 1000 * request.seconds
        named = shown.pop("id")
        logger.debug(
            "%s %s %d in %.1f ms",
            request.method,
            request.route,
            request.status,
            milliseconds,
            extra={"fields": {"request_id": named, **shown}},
        )
        if self._traces is not None:
            self._traces.record(request, headers)


class Traces:
    """Spans of requests for OpenTelemetry: whoever runs the service decides where they go.

    A span is written when its request was answered, and belongs to the trace that the request names.
    """

    def __init__(self) -> None:
        """Take the provider of this process; `MissingExtra` if OpenTelemetry is not installed."""
        if not is_installed("opentelemetry"):
            raise MissingExtra(
                "traces need opentelemetry-api, which is not installed: pip install 'coterie[traces]'"
            )
        from opentelemetry import trace

        self._tracer: Tracer = trace.get_tracer("coterie")

    def record(self, request: AnsweredRequest, headers: Headers) -> None:
        """Write the span of a request."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, Status, StatusCode

        now = time.time_ns()
        names = ("traceparent", "tracestate", "baggage")
        given = {name: header(headers, name.encode()).decode("latin-1") for name in names}
        attributes: dict[str, Any] = {
            "http.request.method": request.method,
            "http.route": request.route,
            "http.response.status_code": request.status,
            "coterie.request_id": request.id,
        }
        if request.policy is not None:
            attributes["coterie.policy"] = request.policy
        span = self._tracer.start_span(
            f"{request.method} {request.route}",
            context=extract({name: value for name, value in given.items() if value}),
            kind=SpanKind.SERVER,
            attributes=attributes,
            start_time=now - int(1e9 * request.seconds),
        )
        if request.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end(now)


class JSONFormatter(logging.Formatter):
    """Lines of the log as JSON: time, level, logger, message, and what else a record has."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
