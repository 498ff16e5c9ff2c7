"""The wiring of the service: routes, keys, limits and headers around an engine."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coterie.service.core.engine import PolicyEngine
from coterie.service.http.context import Context, authorization_of, context_of, json_response
from coterie.service.http.direct import HANDLES, PREFIX, DirectRoute
from coterie.service.http.endpoints import ROUTES, Endpoint
from coterie.service.http.openapi import document
from coterie.service.http.page import page
from coterie.service.http.problems import HANDLERS, SECURITY_HEADERS, problem
from coterie.service.http.routes import list_policies

LASTING = re.compile(r"/v1/policies/[^/]+/live")
"""Requests that last as long as somebody looks at the page."""


def build_app(engine: PolicyEngine, *, body_limit: int = 4 * 2**20, in_flight_limit: int = 1_024) -> Any:
    """The ASGI application of an engine."""
    context = Context(engine, body_limit=body_limit, in_flight_limit=in_flight_limit)
    described = document(ROUTES, version("coterie"))

    async def openapi(request: Request) -> Response:
        return json_response(described)

    direct = {route: DirectRoute(context, route) for route in HANDLES}
    routes = [_route(endpoint, direct) for endpoint in ROUTES]
    others = [Route("/openapi.json", openapi), Route("/", page), Route("/static/{file}", page)]
    app = Starlette(routes=[*routes, *others], exception_handlers=HANDLERS)
    app.state.context = context
    return Guard(app, context, direct)


def _route(endpoint: Endpoint, direct: dict[str, DirectRoute]) -> Route:
    """A route that looks at the key before anything else."""
    if endpoint.handler in HANDLES.values():
        app: Any = direct[endpoint.path.rpartition("/")[2]]
        return Route(endpoint.path, app, methods=[endpoint.method])

    async def handle(request: Request) -> Response:
        request.state.key = None
        if endpoint.role is not None:
            policy = request.path_params.get("policy")
            scoped = endpoint.handler is list_policies  # lists only those that the key is for
            request.state.key = context_of(request).authorise(
                authorization_of(request.scope), endpoint.role, policy, any_scope=scoped
            )
        answer: Response = await endpoint.handler(request)
        return answer

    return Route(endpoint.path, handle, methods=[endpoint.method], name=endpoint.handler.__name__)


class Guard:
    """Count requests in flight, refuse more than may be, and send the headers that every answer has."""

    def __init__(self, app: ASGIApp, context: Context, direct: dict[str, DirectRoute]) -> None:
        """Around an application; `direct` routes are reached without its layers."""
        self._app = app
        self.context = context
        self._direct = direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        metrics = self.context.metrics
        if metrics.in_flight < self.context.in_flight_limit and (direct := self._find_direct(scope)):
            metrics.in_flight += 1
            try:
                await direct(scope, receive, send)
            finally:
                metrics.in_flight -= 1
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                metrics.responses[message["status"]] += 1
                present = {name for name, _ in message["headers"]}
                extra = [pair for pair in SECURITY_HEADERS if pair[0] not in present]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        if LASTING.fullmatch(scope["path"]):  # a stream has a limit of its own
            await self._app(scope, receive, send_with_headers)
            return
        if metrics.in_flight >= self.context.in_flight_limit and not scope["path"].startswith("/health"):
            refusal = problem(
                503, f"{metrics.in_flight} requests are in flight, and no more may be; try again"
            )
            await refusal(scope, receive, send_with_headers)
            return
        metrics.in_flight += 1
        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            metrics.in_flight -= 1

    def _find_direct(self, scope: Scope) -> DirectRoute | None:
        """The route of a request for decisions or rewards."""
        path: str = scope["path"]
        if scope["method"] != "POST" or not path.startswith(PREFIX):
            return None
        policy, _, rest = path[len(PREFIX) :].partition("/")
        return self._direct.get(rest) if policy else None
