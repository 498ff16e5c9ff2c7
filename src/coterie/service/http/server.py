"""From settings to a running service: what `coterie serve` does."""

from __future__ import annotations

import gc
import logging
import sys
from dataclasses import dataclass
from ipaddress import ip_address
from socket import AI_PASSIVE, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, socket
from typing import TYPE_CHECKING, Any

from coterie.errors import ArgumentError
from coterie.policies.registry import find
from coterie.service.core.engine import PolicyEngine
from coterie.service.settings import PolicySettings
from coterie.service.storage.postgresql import open_store
from coterie.validation import whole

if TYPE_CHECKING:
    from coterie.service.http.service import HTTPLimits

SWITCH_INTERVAL = 0.0005
"""Seconds that requests may keep commits waiting; Python's 0.005 is as long as a commit."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """All that `coterie serve` can be told.

    Parameters
    ----------
    host, port
        Where to listen. Another address than this machine's own needs keys, or `insecure`.
    store : str
        The path of a SQLite file, `sqlite:///PATH`, or `postgresql://…`.
    policy : str
        The kind of the first policy, called `default`; made only in a store that has none.
    dim : int
        The length of its vectors.
    insecure : bool
        Let everybody in who can reach the address, without a key.
    snapshot_every : int
        Events of a policy after which a snapshot is taken.
    body_limit : int
        Bytes that the body of a request may have.
    in_flight_limit : int
        Requests that may be answered at the same time; more get 503.
    log_level : str
        What is logged: debug, info, warning or error.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    store: str = "coterie.db"
    policy: str = "AutoCLUB"
    dim: int = 8
    insecure: bool = False
    snapshot_every: int = 50_000
    body_limit: int = 4 * 2**20
    in_flight_limit: int = 1_024
    log_level: str = "info"

    def __post_init__(self) -> None:
        """Check every setting."""
        find(self.policy)
        whole("port", self.port, 0, 65_535)
        whole("dim", self.dim, 1, 4_096)
        whole("snapshot_every", self.snapshot_every, 1)
        whole("body_limit", self.body_limit, 1_024)
        whole("in_flight_limit", self.in_flight_limit, 1)
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise ArgumentError(f"log_level must be debug, info, warning or error, got {self.log_level!r}")


def is_loopback(host: str) -> bool:
    """Can only this machine reach the address?"""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def open_engine(settings: ServerSettings) -> PolicyEngine:
    """The engine of a service, with a first policy; refused where strangers could come in without a key."""
    from coterie.service.http.api_keys import list_keys

    engine = PolicyEngine(open_store(settings.store), snapshot_every=settings.snapshot_every, patience=0.25)
    try:
        if not (is_loopback(settings.host) or settings.insecure or list_keys(engine.store)):
            raise ArgumentError(
                f"{settings.host} can be reached by others, and there are no keys: make one with "
                f"`coterie keys create`, or say --insecure"
            )
        if not engine.policies:
            engine.create("default", PolicySettings(dim=settings.dim, policy=settings.policy))
            engine.wait()
    except BaseException:
        engine.close()
        raise
    return engine


def listen(settings: ServerSettings) -> socket:
    """A socket at the address of the settings; port 0 takes a free one."""
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
    """Where a browser on this machine finds a service."""
    host, port = listening.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = "127.0.0.1" if ":" not in host else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def tune_process() -> None:
    """Set up a process that does nothing but serve.

    The collector of cycles looks seldom, and not at what is there already: requests leave no cycles behind,
    and looking through all decisions that are remembered takes as long as answering them.
    """
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def make_server(settings: ServerSettings, engine: PolicyEngine, limits: HTTPLimits | None = None) -> Any:
    """Return a server of uvicorn that is not running yet; `limits` replaces those of the settings."""
    import uvicorn

    from coterie.service.http.application import build_app
    from coterie.service.http.connection import connection_type
    from coterie.service.http.service import HTTPLimits

    limits = limits or HTTPLimits(body=settings.body_limit, in_flight=settings.in_flight_limit)
    app = build_app(engine, limits)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            log_level=settings.log_level,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the address of the client is of no use here
            http=connection_type(app),
            lifespan="off",
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=5,
        )
    )
