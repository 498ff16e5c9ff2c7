"""Errors as HTTP has them: a status, and a body of problem+json (RFC 9457)."""

from __future__ import annotations

import logging
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coterie.errors import ArgumentError, Conflict, CoterieError, StoreError, UnknownName
from coterie.service.messages import Problem

STATUS: tuple[tuple[type[CoterieError], int], ...] = (
    (Conflict, 409),
    (UnknownName, 404),
    (StoreError, 503),
    (ArgumentError, 422),
)
RETRY_AFTER = "1"
encode = msgspec.json.Encoder().encode
logger = logging.getLogger(__name__)


class Refusal(CoterieError):
    """A request that is refused before any policy sees it."""

    def __init__(self, status: int, detail: str) -> None:
        """The status, and a sentence."""
        super().__init__(detail)
        self.status = status


def status_of(error: CoterieError) -> int:
    """The status of an error of ours."""
    if isinstance(error, Refusal):
        return error.status
    return next((status for kind, status in STATUS if isinstance(error, kind)), 422)


def problem(status: int, detail: str) -> Response:
    """An answer that says what went wrong."""
    body = encode(Problem(title=HTTPStatus(status).phrase, status=status, detail=detail))
    headers = {}
    if status in (429, 503):
        headers["Retry-After"] = RETRY_AFTER
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(body, status, headers, media_type="application/problem+json")


async def coterie_problem(request: Request, error: Exception) -> Response:
    """An error of ours."""
    assert isinstance(error, CoterieError)
    return problem(status_of(error), str(error))


async def body_problem(request: Request, error: Exception) -> Response:
    """A body that is not JSON, or has a wrong field."""
    if isinstance(error, msgspec.ValidationError):
        return problem(422, _sentence(str(error)))
    return problem(400, f"the body is not JSON: {error}")


async def http_problem(request: Request, error: Exception) -> Response:
    """A route that is not there, or a method that it does not have."""
    assert isinstance(error, HTTPException)
    found = problem(error.status_code, error.detail)
    found.headers.update(error.headers or {})
    return found


async def unexpected_problem(request: Request, error: Exception) -> Response:
    """A fault of ours; the log tells more than the answer."""
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem(500, "the service has failed to answer this request; its log says why")


HANDLERS = {
    CoterieError: coterie_problem,
    msgspec.MsgspecError: body_problem,
    HTTPException: http_problem,
    Exception: unexpected_problem,
}


def _sentence(said: str) -> str:
    """What msgspec says of a field, with the field first: `rewards[0].reward: expected float, got str`."""
    message, _, where = said.partition(" - at `$")
    field = where.strip("`").removeprefix(".") or "the body"
    return f"{field}: {message[:1].lower()}{message[1:]}".replace("`", "")
