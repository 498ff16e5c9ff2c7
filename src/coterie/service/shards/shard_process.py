"""The process of one shard: the whole service on a store of its own, started by the supervisor.

`python -m coterie.service.shards.shard_process` reads an `Assignment` from its standard input, and ends when
that is closed: so no shard outlives its supervisor, however that ends.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from signal import SIGTERM, signal
from socket import socket
from threading import Thread
from typing import Any

import httpx
import msgspec

from coterie.errors import CoterieError, StoreError
from coterie.placement import Placement
from coterie.service.core.engine import PolicyEngine
from coterie.service.http.api_keys import APIKeys
from coterie.service.http.background_log import logging_in_background
from coterie.service.http.request_log import JSONFormatter
from coterie.service.http.server import make_server, open_engine, tune_process
from coterie.service.limits import Limits
from coterie.service.settings import ServerSettings
from coterie.service.shards.changes import LEADER, ChangeBatch, Follower, fetched
from coterie.service.shards.peers import MEANT_FOR, PEER_TOKEN, Peers
from coterie.service.shards.router import ShardRouter

READY = "ready"
"""What a shard writes when it serves; otherwise the reason why it does not."""


class Assignment(msgspec.Struct):
    """What a process needs to be a shard."""

    placement: Placement
    settings: dict[str, Any]
    addresses: list[tuple[str, int]]
    token: str
    sockets: list[int]
    """File descriptors: the address of the whole service, then that of this shard."""

    @classmethod
    def of(
        cls,
        placement: Placement,
        settings: ServerSettings,
        addresses: list[tuple[str, int]],
        token: str,
        sockets: list[int],
    ) -> Assignment:
        """Return the assignment with settings as plain data."""
        return cls(placement, asdict(settings), addresses, token, sockets)

    def server_settings(self) -> ServerSettings:
        """Return the settings of the service."""
        fields = dict(self.settings)
        return ServerSettings(**{**fields, "limits": Limits(**fields["limits"])})


def serve_shard(assignment: Assignment) -> None:
    """Serve until SIGTERM, or until the supervisor is gone."""
    settings, placement = assignment.server_settings(), assignment.placement
    sockets = [socket(fileno=one) for one in assignment.sockets]
    peers = Peers(assignment.addresses, assignment.token)
    with ExitStack() as last:
        formatter = JSONFormatter() if settings.log_format == "json" else None
        last.enter_context(logging_in_background(settings.log_level, formatter))
        engine = open_engine(settings, placement)
        last.callback(engine.close)
        router = ShardRouter(engine, placement, peers, sockets[-1].getsockname()[1])
        server = make_server(settings, engine, router)
        service = server.config.app
        last.callback(service.close)
        if placement.shard != LEADER:
            router.follower = _following(assignment, engine, service.keys)
            last.callback(router.follower.close)
            while not router.follower.ready:  # a new shard: connections wait until it knows what there is
                time.sleep(0.02)
        tune_process()
        Thread(target=_end_with_supervisor, args=(server,), daemon=True).start()
        print(READY, flush=True)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the supervisor reads no more
        server.run(sockets=sockets)


def _following(assignment: Assignment, engine: PolicyEngine, keys: APIKeys) -> Follower:
    """Return what keeps this shard in step with shard 0."""
    host, port = assignment.addresses[LEADER]
    named = f"[{host}]" if ":" in host else host
    headers = {MEANT_FOR.decode(): str(LEADER), PEER_TOKEN.decode(): assignment.token}
    leader = httpx.Client(base_url=f"http://{named}:{port}", headers=headers, trust_env=False, timeout=10.0)

    def fetch(position: int) -> ChangeBatch:
        try:
            answer = leader.get("/v1/shards/changes", params={"after": position})
        except httpx.TransportError as error:
            raise StoreError(f"shard 0 does not answer: {error or type(error).__name__}") from None
        return fetched(answer.status_code, answer.content)

    return Follower(engine, fetch, keys.refresh)


def _end_with_supervisor(server: Any) -> None:
    # Not through `sys.stdin`: a thread that holds its lock would end the interpreter with an error.
    while os.read(sys.stdin.fileno(), 4_096):
        pass
    server.should_exit = True


def _end(*_: object) -> None:
    """End the process as if its work were done."""
    raise SystemExit(0)


def main() -> None:
    """Be the shard that the standard input describes."""
    signal(SIGTERM, _end)  # before the server handles it
    assignment = msgspec.json.decode(sys.stdin.buffer.readline(), type=Assignment)
    try:
        serve_shard(assignment)
    except CoterieError as error:
        print(f"shard {assignment.placement.shard}: {error}", flush=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
