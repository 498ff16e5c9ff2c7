"""Puts the ASGI application of a service together: routes, the fast path, the page, the OpenAPI document."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from inspect import iscoroutinefunction
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from coterie.service.core.engine import PolicyEngine
from coterie.service.core.ids import checked_id
from coterie.service.http.admission import Admission
from coterie.service.http.decision_routes import decide, respond, reward
from coterie.service.http.openapi import document
from coterie.service.http.page import PAGES, PolicyMonitors, show_page
from coterie.service.http.personalizer_routes import without_version
from coterie.service.http.problems import EXCEPTION_HANDLERS
from coterie.service.http.request_log import RequestLog
from coterie.service.http.routes import ROUTES, Endpoint, json_response, list_policies
from coterie.service.http.service import ROUTE, HTTPService, Router, service_of


def build_app(
    engine: PolicyEngine,
    *,
    admission: Admission | None = None,
    insecure: bool = False,
    router: Router | None = None,
    request_log: RequestLog | None = None,
) -> HTTPService:
    """Return the ASGI application of an open engine, with the arguments of `HTTPService`."""
    service = HTTPService(
        engine,
        admission=admission or Admission(),
        insecure=insecure,
        router=router,
        request_log=request_log,
    )
    described = document(ROUTES, version("coterie"))

    async def openapi(request: Request) -> Response:
        return json_response(described)

    routes = [_route(endpoint) for endpoint in ROUTES]
    routes += [Route(path, show_page) for path in (*PAGES, "/static/{file}")]
    routes.append(Route("/openapi.json", openapi))
    own = [] if router is None else router.routes(service)
    app = Starlette(routes=[*own, *routes], exception_handlers=EXCEPTION_HANDLERS)
    app.state.service, app.state.monitors = service, PolicyMonitors(service)

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["path"] = without_version(scope["path"])
        await app(scope, receive, send)

    service.app = routed
    return service


def _route(endpoint: Endpoint) -> Route:
    """Return a route that checks the key before anything else.

    A handler that is not a coroutine runs in a thread: it reads the store, waits for its turn, or takes
    longer the more users or items there are.
    """
    # The handlers of decisions and rewards take bytes, since `ServiceConnection` calls them, too.
    name, fast = endpoint.path.rpartition("/")[2], endpoint.handler in (decide, reward)
    handler: Any = partial(respond, route=name) if fast else endpoint.handler

    async def handle(request: Request) -> Response:
        request.state.key = None
        request.scope[ROUTE] = endpoint.path
        if endpoint.role is not None:
            policy = request.path_params.get("policy")
            listing = endpoint.handler is list_policies  # shows only the policies that the key is for
            request.state.key = service_of(request).keys.authorise(
                request.scope["headers"], endpoint.role, policy, any_scope=listing
            )
        for name, value in request.path_params.items():
            checked_id(f"{name} in the path", value)  # not every store can look up a NUL
        router = service_of(request).router
        return await (perform(request) if router is None else router.answer(request, endpoint, perform))

    async def perform(request: Request) -> Response:
        if iscoroutinefunction(handler):
            answer: Response = await handler(request)
        else:
            answer = await run_in_threadpool(handler, request)
        return answer

    return Route(endpoint.path, handle, methods=[endpoint.method], name=endpoint.handler.__name__)
