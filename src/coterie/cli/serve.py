"""`coterie serve`: decisions and rewards over HTTP, and a page on which clusters form."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from pathlib import Path
from signal import SIGTERM, signal
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.options import complete_policy, examples
from coterie.cli.output import print_note
from coterie.errors import ArgumentError, unknown
from coterie.extras import need

if TYPE_CHECKING:
    from coterie.service.core.engine import PolicyEngine
    from coterie.service.settings import ServerSettings

EPILOG = examples(
    ("a service on this machine, with a store in coterie.db", "coterie serve"),
    ("watch clusters form: simulated visitors come through the real interface", "coterie serve --demo"),
    ("on PostgreSQL, for vectors of length 25", "coterie serve --store postgresql://localhost/shop --dim 25"),
    ("on four cores, with the stores in a folder", "coterie serve --shards 4 --store shop"),
    ("settings from a file", "coterie serve --config service.toml"),
)
PREFIX = "COTERIE_"


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (8000).")] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="SQLite file, sqlite:///PATH or postgresql://… (coterie.db)."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Policy that is created if the store has none (AutoCLUB).", autocompletion=complete_policy
        ),
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Dimension of the vectors of that policy (8).")] = None,
    insecure: Annotated[
        bool | None,
        typer.Option(
            "--insecure",
            help="Accept requests without a key, at any address, whenever the store has no key (also after "
            "all were revoked).",
        ),
    ] = None,
    allowed_host: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Host names that requests may use, separated by commas."),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Processes that share the users; --store is then a folder (coterie-shards)."
        ),
    ] = None,
    snapshot_every: Annotated[
        int | None, typer.Option(metavar="N", help="Events between snapshots (50000).")
    ] = None,
    policy_limit: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of policies (100).")
    ] = None,
    user_limit: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of users of a policy (100000).")
    ] = None,
    item_limit: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of items of a policy (1000000).")
    ] = None,
    known_item_limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Maximum number of items that a policy knows, removed ones included (4000000)."
        ),
    ] = None,
    waiting_limit: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="Maximum total size of the decisions of a policy that wait for a reward (268435456).",
        ),
    ] = None,
    queue_limit: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="Maximum total size of the events that the store has not confirmed (67108864).",
        ),
    ] = None,
    batch_limit: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of rewards in a request (1000).")
    ] = None,
    body_limit: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Maximum size of the body of a request (4194304).")
    ] = None,
    bodies_limit: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="Maximum total size of the bodies of requests being received or processed (134217728).",
        ),
    ] = None,
    head_limit: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Maximum size of the headers of a request (65536).")
    ] = None,
    arms_limit: Annotated[
        int | None,
        typer.Option(metavar="N", help="Maximum number of items or arms that a request may list (1000)."),
    ] = None,
    in_flight_limit: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of requests at the same time (1024).")
    ] = None,
    stream_limit: Annotated[
        int | None,
        typer.Option(metavar="N", help="Maximum number of live pages open at the same time (100)."),
    ] = None,
    export_limit: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of exports at the same time (4).")
    ] = None,
    connection_limit: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of open connections (1000).")
    ] = None,
    idle_timeout: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Time after which an idle connection is closed (5).")
    ] = None,
    request_timeout: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Time in which a whole request must arrive (30).")
    ] = None,
    commit_timeout: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", help="Time in which the store must confirm an event (15)."),
    ] = None,
    stop_timeout: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS", help="Time that running requests have to finish when the service stops (5)."
        ),
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error (info).")] = None,
    log_format: Annotated[str | None, typer.Option(help="Lines of the log: text or json (text).")] = None,
    traces: Annotated[
        bool | None,
        typer.Option("--traces", help="Write a span for each request with OpenTelemetry (coterie[traces])."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file of these settings.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Send simulated visitors; keeps nothing.")] = False,
) -> None:
    """Serve decisions and rewards over HTTP.

    Every setting may also be an environment variable, such as COTERIE_STORE, or be in a TOML file. Options
    override variables, and variables override the file. A reward is acknowledged when it is on the disk.

    Without --insecure, an address that other machines can reach needs keys (`coterie keys create`); on
    127.0.0.1, no key is needed until the first one is created; after that every request needs one, even if
    all keys have been revoked.
    """
    need("starlette", "the service")
    need("uvicorn", "the service")
    given = {
        name: value
        for name, value in locals().items()
        if name not in ("config", "demo") and value is not None
    }
    with TemporaryDirectory() as folder:
        defaults = {"store": str(Path(folder, "demo.db"))} if demo else {}
        run_server(read_server_settings(given, config, defaults), demo=demo)


def read_server_settings(
    given: dict[str, Any], config: Path | None, defaults: dict[str, Any] | None = None
) -> ServerSettings:
    """Return settings from options, then the environment, then a file."""
    from coterie.cli.config import convert, read_toml
    from coterie.service.limits import Limits
    from coterie.service.settings import ServerSettings

    limits = [field.name for field in fields(Limits)]
    names = [*(field.name for field in fields(ServerSettings) if field.name != "limits"), *limits]
    from_file = read_toml(config) if config is not None else {}
    for name in from_file:
        if name not in names:
            raise unknown(f"setting in {config}:", name, names, "`coterie serve --help` lists all")
    variables = {
        name: os.environ[PREFIX + name.upper()] for name in names if PREFIX + name.upper() in os.environ
    }
    values = {**(defaults or {}), **from_file, **variables, **given}
    if values.get("shards") is not None:
        values.setdefault("store", "coterie-shards")
    limited = {name: values.pop(name) for name in limits if name in values}
    return replace(convert(values, ServerSettings), limits=convert(limited, Limits))


def run_shards(settings: ServerSettings, *, demo: bool) -> None:
    """Serve with a process for each shard until SIGTERM or SIGINT; then each ends as a service does."""
    from coterie.service.http.server import address_of
    from coterie.service.shards.supervisor import running_shards

    signal(SIGTERM, _end)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with running_shards(settings) as supervisor:
        url = address_of(supervisor.front)
        print_note(f"serving {settings.shards} shards from {settings.store} on {url}; Ctrl-C ends it")
        if demo:
            _start_demo(url)
        with suppress(KeyboardInterrupt):
            supervisor.watch()


def run_server(settings: ServerSettings, *, demo: bool) -> None:
    """Serve until SIGTERM or SIGINT; then answer what is in flight, take snapshots and close the store."""
    if settings.shards is not None:
        run_shards(settings, demo=demo)
        return
    from coterie.service.http.background_log import logging_in_background
    from coterie.service.http.request_log import JSONFormatter
    from coterie.service.http.server import address_of, listen, make_server, open_engine, tune_process
    from coterie.service.storage.location import shown_store

    # The server handles both signals while it runs. Before and after, SIGTERM must not skip `finally`.
    signal(SIGTERM, _end)
    with listen(settings) as listening, ExitStack() as last:
        engine = open_engine(settings)
        try:
            server = make_server(settings, engine)
            tune_process()
            url = address_of(listening)
            where = shown_store(settings.store)
            print_note(f"serving {', '.join(engine.policies)} from {where} on {url}; Ctrl-C ends it")
            formatter = JSONFormatter() if settings.log_format == "json" else None
            last.enter_context(logging_in_background(settings.log_level, formatter))
            if demo:
                _check_no_keys(engine)
                _start_demo(url)
            server.run(sockets=[listening])
            server.config.app.close()
        finally:
            engine.close()


def _end(*_: object) -> None:
    """End the process as if its work were done."""
    raise SystemExit(0)


def _check_no_keys(engine: PolicyEngine) -> None:
    from coterie.service.http.api_keys import keys_required

    if keys_required(engine.store):
        raise ArgumentError("visitors of the demo have no key: --demo needs a store that never had one")


def _start_demo(url: str) -> None:
    """Start simulated visitors, who have no key."""
    from coterie.cli.demo import visit

    Thread(target=visit, args=(url,), daemon=True).start()
