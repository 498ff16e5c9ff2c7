"""Full disks, lost connections, files that vanish: nothing is acknowledged, and it recovers by itself."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coterie import ArgumentError, Recommender, StoreError
from coterie.service.storage.location import shown_store
from coterie.service.storage.sqlite import SQLiteStore
from inspection import connection_of, engine_of, give_up_after, live_of, replace_choice, store_of
from service.shops import ITEMS, same_state, shop


def writer(recommender: Recommender) -> Any:
    """The connection that writes."""
    return connection_of(store_of(recommender))


def eventually(what: Callable[[], object]) -> None:
    """Try until it works, for some seconds."""
    for _ in range(400):
        try:
            what()
            return
        except StoreError:
            time.sleep(0.05)
    what()


def test_a_full_disk_refuses_and_recovers(tmp_path: Path) -> None:
    one, other = shop(store=tmp_path / "a.db"), shop()
    first = one.decide("alice", decision_id="d0")
    other.decide("alice", decision_id="d0")
    pages = writer(one).execute("PRAGMA page_count").fetchone()[0]
    writer(one).execute(f"PRAGMA max_page_count = {pages}")
    names = iter(range(1000))

    def fill() -> None:
        for n in names:
            one.feedback(f"user-{n}" + "x" * 200, 1.0, item="tea", feedback_id=f"f{n}")

    with pytest.raises(StoreError, match="nothing was counted: database or disk is full"):
        fill()
    for n in range(next(names) - 1):
        other.feedback(f"user-{n}" + "x" * 200, 1.0, item="tea")
    eventually(lambda: one.decide("alice", decision_id="d0"))  # a new connection has no limit
    assert one.decide("alice", decision_id="d0") == first
    assert same_state(one, other)
    one.close()


def test_a_disk_that_became_read_only_refuses_and_recovers(tmp_path: Path) -> None:
    one, other = shop(store=tmp_path / "a.db"), shop()
    for each in (one, other):
        each.feedback("alice", 1.0, item="tea")
    writer(one).execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="nothing was counted: attempt to write a readonly database"):
        one.feedback("alice", 0.0, item="tea", feedback_id="f1")
    eventually(lambda: one.feedback("alice", 0.0, item="tea", feedback_id="f1"))
    other.feedback("alice", 0.0, item="tea")
    assert same_state(one, other)
    one.close()


def test_a_file_that_was_removed_is_not_written_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")
    one.feedback("alice", 1.0, item="tea")
    (tmp_path / "a.db").rename(tmp_path / "elsewhere.db")
    with pytest.raises(StoreError, match=r"a\.db was removed or replaced"):
        one.feedback("alice", 1.0, item="tea", feedback_id="f1")
    with pytest.raises(StoreError):
        one.decide("alice")
    time.sleep(1.2)  # it tries to recover, and must not begin an empty file
    with pytest.raises(StoreError):
        one.decide("alice")
    (tmp_path / "elsewhere.db").rename(tmp_path / "a.db")
    eventually(lambda: one.feedback("alice", 1.0, item="tea", feedback_id="f1"))
    assert one.policy.rounds == 2
    one.close()


def test_a_lost_connection_to_postgresql_is_made_again(postgres: str) -> None:
    import psycopg

    one, other = shop(store=postgres), shop()
    for each in (one, other):
        each.feedback("alice", 1.0, item="tea")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(StoreError, match="nothing was counted"):
        one.feedback("alice", 0.0, item="tea", feedback_id="f1")
    eventually(lambda: one.feedback("alice", 0.0, item="tea", feedback_id="f1"))
    other.feedback("alice", 0.0, item="tea")
    assert same_state(one, other)
    one.close()


def test_a_server_that_stops_answering_is_given_up(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    give_up_after(monkeypatch, 1.0)
    one, other = shop(store=postgres), shop()
    for each in (one, other):
        each.feedback("alice", 1.0, item="tea")
    backend = writer(one).info.backend_pid
    os.kill(backend, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor() as thread:
            stuck = thread.submit(one.feedback, "alice", 0.0, item="tea", feedback_id="f1")
            time.sleep(0.5)
            assert engine_of(one).journal.oldest_age > 0.1
            assert one.users == ("alice",)  # what needs no store goes on
            assert isinstance(stuck.exception(60), StoreError)  # while the server is still stopped
    finally:
        os.kill(backend, signal.SIGCONT)
    eventually(lambda: one.feedback("alice", 0.0, item="tea", feedback_id="f1"))
    assert engine_of(one).journal.oldest_age == 0
    other.feedback("alice", 0.0, item="tea")
    assert same_state(one, other)
    one.close()


def test_a_lock_on_the_log_does_not_hold_requests_for_ever(postgres: str) -> None:
    import psycopg

    one = shop(store=postgres)
    with psycopg.connect(postgres) as connection:
        connection.execute("LOCK TABLE log")
        with pytest.raises(StoreError, match="lock timeout"):
            one.feedback("alice", 0.0, item="tea", feedback_id="f1")
        connection.rollback()
    eventually(lambda: one.feedback("alice", 0.0, item="tea", feedback_id="f1"))
    assert one.policy.rounds == 1
    one.close()


def test_a_commit_whose_answer_was_lost_counts_once(tmp_path: Path) -> None:
    class LosesAnswer(SQLiteStore):
        """What was committed is there, and yet an error is raised, once."""

        broken = False

        def check_place(self) -> None:
            super().check_place()
            if self.broken:
                self.broken = False
                raise OSError("the answer was lost")

    store = LosesAnswer(tmp_path / "a.db")
    one = shop(store=store)
    decision = one.decide("alice")
    store.broken = True
    with pytest.raises(StoreError, match="the answer was lost"):
        one.reward(decision.id, 1.0)
    eventually(lambda: one.reward(decision.id, 1.0))
    assert one.reward(decision.id, 1.0).status == "duplicate"
    assert one.policy.rounds == 1
    one.close()


def test_a_change_that_breaks_off_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = shop(store=tmp_path / "a.db"), shop()

    def broken(*arguments: object) -> None:
        live_of(one).state.join("bob")
        raise RuntimeError("broken")

    replace_choice(monkeypatch, broken)
    with pytest.raises(RuntimeError, match="broken"):
        one.decide("bob")
    monkeypatch.undo()
    assert one.decide("alice").chosen == other.decide("alice").chosen
    assert same_state(one, other)
    one.close()


def test_what_is_no_store_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 20)
    with pytest.raises(StoreError, match=r"cannot be (opened|read)"):
        Recommender(items=ITEMS, store=path)
    with pytest.raises(ArgumentError, match=r"store must be a file, and .* is a folder"):
        Recommender(items=ITEMS, store=tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?user=me&password=secret",
        "postgresql://me:half@secret@127.0.0.1:1/x",
        "postgresql://me:half/secret@127.0.0.1:1/x",
        "postgresql://me:half:secret@127.0.0.1:1/x?no=yes",
    ],
)
def test_postgresql_that_is_not_there_is_told_without_the_password(url: str) -> None:
    with pytest.raises(StoreError, match="PostgreSQL cannot be used as a store") as reported:
        Recommender(items=ITEMS, store=url)
    assert "secret" not in str(reported.value)
    assert "secret" not in shown_store(url)


def tables(where: str) -> list[str]:
    """The names of what a store has in SQLite."""
    with closing(sqlite3.connect(where)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]


@pytest.mark.parametrize("found", ["1", "99"])
def test_a_store_of_another_format_is_refused_and_stays_as_it_is(found: str, tmp_path: Path) -> None:
    where = str(tmp_path / "a.db")
    with closing(sqlite3.connect(where)) as connection:
        connection.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("INSERT INTO meta VALUES ('format', ?)", (found,))
        connection.commit()
        connection.execute("PRAGMA journal_mode = WAL")
    before = Path(where).read_bytes()
    with pytest.raises(StoreError, match=f"it has format {found}, and this Coterie reads formats 4 and 5"):
        Recommender(store=where)
    assert Path(where).read_bytes() == before
    assert tables(where) == ["meta", "sqlite_autoindex_meta_1"]


def test_a_database_of_another_format_is_refused_and_stays_as_it_is(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("INSERT INTO meta VALUES ('format', '1')")
        with pytest.raises(StoreError, match="it has format 1, and this Coterie reads formats 4 and 5"):
            Recommender(store=postgres)
        named = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        assert connection.execute(named).fetchall() == [("meta",)]
