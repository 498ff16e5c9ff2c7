"""Errors as HTTP responses: a status, and a body of problem+json (RFC 9457)."""

from __future__ import annotations

import logging
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from coterie.errors import ArgumentError, Conflict, CoterieError, StoreError, UnknownName
from coterie.service.messages import Problem, sentence

STATUS: tuple[tuple[type[CoterieError], int], ...] = (
    (Conflict, 409),
    (UnknownName, 404),
    (StoreError, 503),
    (ArgumentError, 422),
)
RETRY_AFTER = b"1"
REQUEST_ID = "coterie.request_id"
"""Name in the scope of a request for its id."""
Headers = list[tuple[bytes, bytes]]
SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
]
OK_HEADERS: Headers = [(b"content-type", b"application/json"), *SECURITY_HEADERS]
encode = msgspec.json.Encoder().encode
logger = logging.getLogger(__name__)


class Refusal(CoterieError):
    """A request that is refused with a status of its own."""

    def __init__(self, status: int, detail: str) -> None:
        """Give the status, and a sentence."""
        super().__init__(detail)
        self.status = status


def header(headers: Headers, name: bytes) -> bytes:
    """Return the first value of a header, or nothing."""
    for key, value in headers:
        if key == name:
            return value
    return b""


def status_of(error: CoterieError) -> int:
    """Return the status of an error of this library."""
    if isinstance(error, Refusal):
        return error.status
    return next((status for kind, status in STATUS if isinstance(error, kind)), 422)


def headers_of(status: int) -> Headers:
    """Return the headers of an answer in JSON, without its length."""
    if status < 400:
        return OK_HEADERS
    extra = [(b"retry-after", RETRY_AFTER)] if status in (429, 503) else []
    if status == 401:
        extra = [(b"www-authenticate", b"Bearer")]
    return [(b"content-type", b"application/problem+json"), *SECURITY_HEADERS, *extra]


def body_of_problem(status: int, detail: str) -> bytes:
    """Return a problem as problem+json."""
    return encode(Problem(title=HTTPStatus(status).phrase, status=status, detail=detail))


def problem(status: int, detail: str) -> Response:
    """Return a response that describes a problem."""
    headers = {name.decode(): text.decode() for name, text in headers_of(status)}
    return Response(body_of_problem(status, detail), status, headers)


def refused(error: Exception, where: str, request_id: str | None = None) -> tuple[int, str]:
    """Return the status and the sentence of an error; an unexpected one is only logged, not described."""
    if isinstance(error, CoterieError):
        return status_of(error), str(error)
    if isinstance(error, ClientDisconnect):
        return 400, "the client has closed the connection"
    if isinstance(error, msgspec.ValidationError):
        return 422, sentence(str(error), "the body")
    if isinstance(error, msgspec.MsgspecError):
        return 400, f"the body is not JSON: {error}"
    if isinstance(error, RecursionError):  # raised by the decoder: nothing else here is recursive
        return 400, "the body is nested too deeply"
    if isinstance(error, MemoryError):
        return 503, "there is not enough memory for this request"
    logger.error("%s failed", where, exc_info=error, extra={"fields": {"request_id": request_id}})
    return 500, "the service has failed to answer this request; its log says why"


async def any_problem(request: Request, error: Exception) -> Response:
    """Answer any other exception."""
    return problem(*refused(error, f"{request.method} {request.url.path}", request.scope.get(REQUEST_ID)))


async def http_problem(request: Request, error: Exception) -> Response:
    """Answer a missing route, or a method that it does not have."""
    assert isinstance(error, HTTPException)
    found = problem(error.status_code, error.detail)
    found.headers.update(error.headers or {})
    return found


EXCEPTION_HANDLERS = {
    CoterieError: any_problem,
    ClientDisconnect: any_problem,
    msgspec.MsgspecError: any_problem,
    RecursionError: any_problem,
    HTTPException: http_problem,
    Exception: any_problem,
}
