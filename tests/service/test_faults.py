"""Full disks, lost connections, files that vanish: nothing is acknowledged, and it recovers by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie import Recommender, StoreError
from coterie.service.storage.location import shown_store
from coterie.service.storage.sqlite import SQLiteStore
from service.shops import ITEMS, same_state, shop


def writer(recommender: Recommender) -> Any:
    """The connection that writes."""
    store: Any = recommender._engine.store
    return store._writer


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


def test_a_commit_whose_answer_was_lost_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = shop(store=tmp_path / "a.db")
    decision = one.decide("alice")
    real = SQLiteStore.check_place
    broken = iter([True])

    def check_place(self: SQLiteStore) -> None:
        real(self)
        if next(broken, False):
            raise OSError("the answer was lost")

    monkeypatch.setattr(SQLiteStore, "check_place", check_place)
    with pytest.raises(StoreError, match="the answer was lost"):
        one.reward(decision.id, 1.0)
    eventually(lambda: one.reward(decision.id, 1.0))
    assert one.reward(decision.id, 1.0).status == "duplicate"
    assert one.policy.rounds == 1
    one.close()


def test_a_change_that_breaks_off_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = shop(store=tmp_path / "a.db"), shop()
    from coterie.service.core import live_policy as live

    def broken(*arguments: object) -> None:
        one._live.state.join("bob")
        raise RuntimeError("broken")

    monkeypatch.setattr(live, "choose", broken)
    with pytest.raises(RuntimeError, match="broken"):
        one.decide("bob")
    monkeypatch.undo()
    assert one.decide("alice").chosen == other.decide("alice").chosen
    assert same_state(one, other)
    one.close()


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be looked at" * 20, None])
def test_what_is_no_store_is_refused_in_a_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.db"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(StoreError, match="cannot be opened"):
        Recommender(items=ITEMS, store=path)


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
    with pytest.raises(StoreError, match="PostgreSQL cannot be used as a store") as told:
        Recommender(items=ITEMS, store=url)
    assert "secret" not in str(told.value)
    assert "secret" not in shown_store(url)


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")
    one._engine.journal.run(lambda: one._engine.store.execute("UPDATE meta SET value = '99'"))
    one.close()
    with pytest.raises(StoreError, match="it has format 99, and this Coterie reads format 1"):
        Recommender(store=tmp_path / "a.db")
