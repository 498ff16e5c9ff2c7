"""From settings to a server of uvicorn: what `coterie serve` runs."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address
from signal import SIGINT, SIGTERM, signal
from socket import AI_PASSIVE, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, socket
from threading import current_thread, main_thread
from typing import Any

from coterie.errors import ArgumentError
from coterie.placement import Placement
from coterie.service.core.engine import PolicyEngine
from coterie.service.http.service import Router
from coterie.service.settings import FIRST_POLICY, PolicySettings, ServerSettings
from coterie.service.storage.location import open_store

BACKLOG = 100
"""Connections that wait to be accepted; all of them may be accepted before the first one is looked at."""
OTHER_FILES = 64
"""File descriptors that the store, temporary files and libraries may use."""
SWITCH_INTERVAL = 0.0005
"""Seconds that requests may keep commits waiting; Python's 0.005 is as long as a commit."""
logger = logging.getLogger(__name__)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def most_connections() -> int:
    """Return how many connections leave file descriptors for the store and for those being accepted."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 2**31
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return 2**31
    return max(int(allowed) - OTHER_FILES - BACKLOG, 16)


def open_engine(settings: ServerSettings, placement: Placement | None = None) -> PolicyEngine:
    """Return the engine of a service, with a first policy; refused if others could use it without a key.

    A shard other than the first gets policies and keys from that, and answers nothing before.
    """
    from coterie.service.http.api_keys import list_keys

    limits = settings.limits
    engine = PolicyEngine(
        open_store(settings.store),
        snapshot_every=settings.snapshot_every,
        patience=0.25,
        limits=replace(limits, connection_limit=min(limits.connection_limit, most_connections())),
        placement=placement,
    )
    if placement is not None and placement.shard:
        return engine
    try:
        if not (is_loopback(settings.host) or settings.insecure or list_keys(engine.store)):
            raise ArgumentError(
                f"{settings.host} can be reached from other machines, and the store has no keys: make one "
                f"with `coterie keys create`, or say --insecure"
            )
        _first_policy(engine, settings)
    except BaseException:
        engine.close()
        raise
    return engine


def _first_policy(engine: PolicyEngine, settings: ServerSettings) -> None:
    """Create a policy in an empty store; in another one, what was asked for must be there."""
    asked = {"policy": settings.policy, "dim": settings.dim}
    given = {name: value for name, value in asked.items() if value is not None}
    if not (engine.policies or engine.quarantined):
        engine.settle(engine.create("default", PolicySettings(**{**FIRST_POLICY, **given})))
        return
    kept = {name: live.state.settings for name, live in engine.policies.items()}
    same = [all(getattr(one, name) == value for name, value in given.items()) for one in kept.values()]
    # A policy that is out of service may be the one: then it is not refused.
    if given and not any(same) and not engine.quarantined:
        listed = ", ".join(f"{name} ({one.policy}, dim {one.dim})" for name, one in list(kept.items())[:3])
        name, value = next(iter(given.items()))
        raise ArgumentError(
            f"{name} {value} is for the first policy of an empty store, and this one has {listed}: leave it "
            "out, or choose another store"
        )


def listen(settings: ServerSettings) -> socket:
    """Return a socket at the address of the settings; port 0 takes a free one."""
    try:
        found = getaddrinfo(settings.host, settings.port, type=SOCK_STREAM, flags=AI_PASSIVE)[0]
        made = socket(found[0], SOCK_STREAM)
        try:
            made.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            made.bind(found[4])
        except OSError:
            made.close()
            raise
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise ArgumentError(f"cannot listen on {where}: {error.strerror or error}") from None
    return made


def address_of(listening: socket) -> str:
    """Return the URL of a service for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = "127.0.0.1" if ":" not in host else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def tune_process() -> None:
    """Tune a process that does nothing but serve.

    Requests leave no reference cycles behind, and a collection that goes through all remembered decisions
    takes as long as answering them: so the collector runs seldom, and skips what is there already.
    """
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def make_server(settings: ServerSettings, engine: PolicyEngine, router: Router | None = None) -> Any:
    """Return a server of uvicorn that is not running yet; a router makes it one shard of several."""
    import uvicorn

    from coterie.service.http.admission import Admission
    from coterie.service.http.application import build_app
    from coterie.service.http.connection import connection_type
    from coterie.service.http.request_log import RequestLog, Traces

    admission = Admission.to(settings.host, settings.allowed_host)
    request_log = RequestLog(Traces() if settings.traces else None)
    app = build_app(
        engine, admission=admission, insecure=settings.insecure, router=router, request_log=request_log
    )

    class Server(uvicorn.Server):
        """A server after whose end the process goes on, to close the engine."""

        @contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            """End at SIGTERM and SIGINT; uvicorn's own method sends the signal again, which would kill."""
            if current_thread() is not main_thread():
                yield
                return
            before = {one: signal(one, self.handle_exit) for one in (SIGTERM, SIGINT)}
            try:
                yield
            finally:
                for one, handler in before.items():
                    signal(one, handler)

    return Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            log_level=settings.log_level,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the address of the client is of no use here
            headers=[] if router is None else router.headers,
            http=connection_type(app),
            ws="none",  # a WebSocket library that is installed would get requests before any check
            lifespan="off",
            backlog=BACKLOG,
            timeout_keep_alive=settings.limits.idle_timeout,
            timeout_graceful_shutdown=settings.stop_timeout,
        )
    )
