"""A copy of a store goes on as the store would have: backup, restore, and from one database to another."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from typing import Any

import psycopg
import pytest

from cli.conftest import run_here
from coterie import Client, Recommender, StoreError
from coterie.service.core.experiments import Experiment
from coterie.service.http.api_keys import create_key, list_keys
from coterie.service.settings import PolicySettings
from coterie.service.storage.location import open_store
from coterie.service.storage.store_copy import copy_store, count_rows
from inspection import engine_of, live_of, store_of, take_snapshot
from service.serving import served
from service.shops import ITEMS, arms, same_state, shop

OLD_STORE = Path(__file__).with_name("store_format_4.sql")


@pytest.fixture
def other(request: pytest.FixtureRequest, where: str, tmp_path: Path) -> str:
    """A place for a copy, in the other kind of database."""
    if where.startswith("postgresql"):
        return str(tmp_path / "copy.db")
    return str(request.getfixturevalue("postgres"))


def visited(where: str) -> Recommender:
    """Policies with a snapshot, events after it, decisions that wait, and one that is retired."""
    one = shop(store=where, policy="AutoCLUB", uniform_share=0.2, default_reward=0.0, reward_wait=1e6)
    for n in range(30):
        key = one.decide(f"user-{n % 4}", decision_id=f"d{n}").id
        if n % 3:
            one.reward(key, float(n % 2))
    take_snapshot(one)
    one.decide("ann", arms=arms(1, dim=2), decision_id="inline")
    one.reward("d0", 0.1, part="click")
    return one


def moved(source: str, target: str) -> Any:
    """Copy with the command, and expect that it works."""
    done = run_here("store", "copy", source, target)
    assert done.exit_code == 0, done.output
    return done


def opened(where: str, *, lock: bool = True) -> Any:
    """A store, open until the end of a block."""
    store = open_store(where)
    store.open(lock=lock)
    return closing(store)


def test_a_copy_in_the_other_database_and_back_is_the_same_to_the_last_bit(
    where: str, other: str, tmp_path: Path
) -> None:
    one = visited(where)
    store = store_of(one)
    key = create_key(store, "writer", label="shop")
    engine_of(one).create("other", PolicySettings(policy="LinUCBInd", dim=2))
    engine_of(one).experiments.create(Experiment(name="colours", shares={"default": 1.0, "other": 1.0}))
    back = str(tmp_path / "back.db")
    assert "copied 55 events" in moved(where, other).output  # while it serves
    moved(other, back)
    for copied in (other, back):
        with opened(copied, lock=False) as found:
            assert list(found.read("default")) == list(store.read("default"))
            assert [one.id for one in list_keys(found)] == [key.split("_")[1]]
            assert found.experiments() == store.experiments() != []
        with Recommender(store=copied) as again:
            assert live_of(again).snapshots.seq == live_of(one).snapshots.seq > 0
            assert same_state(again, one)
    with Recommender(store=back) as again:
        assert again.reward("d1", 1.0).status == "duplicate"
        assert again.decide("ann", arms=arms(2, dim=2))[1:-1] == one.decide("ann", arms=arms(2, dim=2))[1:-1]
        assert again.reward("d0", 1.0, part="purchase") == one.reward("d0", 1.0, part="purchase")
        assert same_state(again, one)
    one.close()


def rewards_sent(url: str, stop: Signal, acknowledged: list[str]) -> None:
    """Ask for decisions and give rewards until the end, and note which were acknowledged."""
    with Client(url) as client:
        while not stop.is_set():
            decided = client.decide(f"user-{len(acknowledged) % 20}", items=list(ITEMS))
            client.reward(decided.id, 1.0)
            acknowledged.append(decided.id)


@pytest.mark.slow
def test_a_backup_of_a_running_service_has_all_that_was_acknowledged_before_and_is_of_one_moment(
    where: str, tmp_path: Path
) -> None:
    shop(store=where).close()
    stop, acknowledged = Signal(), list[str]()
    with served(where) as service:
        sender = Thread(target=rewards_sent, args=(service.url, stop, acknowledged))
        sender.start()
        try:
            for number in range(5):
                before = list(acknowledged)
                backup = str(tmp_path / f"backup-{number}.db")
                moved(where, backup)
                with Recommender(store=backup) as restored:
                    events = list(store_of(restored).read("default"))
                    assert [one.seq for one in events] == list(range(1, len(events) + 1))
                    rewarded = {one.decision for one in events if one.kind == "reward"}
                    assert set(before) <= rewarded
                    assert restored.policy.rounds == len(rewarded)
        finally:
            stop.set()
            sender.join()
    assert len(acknowledged) > 20


def test_queries_of_one_moment_do_not_see_what_is_committed_meanwhile(where: str) -> None:
    with Recommender(store=where, dim=2) as one, opened(where, lock=False) as reader:
        with reader.one_moment():
            before = count_rows(reader)
            one.feedback("ann", 1.0, x=[1.0, 0.0])
            assert count_rows(reader) == before
        assert count_rows(reader) == before + 1


def test_a_reader_that_is_cut_off_does_not_go_on_at_another_moment(postgres: str) -> None:
    with Recommender(store=postgres, dim=2) as one, opened(postgres, lock=False) as reader:
        with reader.one_moment():
            count_rows(reader)
            with psycopg.connect(postgres, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE state = 'idle in transaction' AND datname = current_database()"
                )
            one.feedback("ann", 1.0, x=[1.0, 0.0])
            with pytest.raises(StoreError, match="PostgreSQL cannot be read"):
                count_rows(reader)
        assert count_rows(reader) == 2  # afterwards it connects again


def test_a_copy_is_complete_or_absent(where: str, other: str) -> None:
    visited(where).close()
    with opened(where) as store:
        store.execute("UPDATE log SET reward = 7 WHERE seq = 40")
    refused = run_here("store", "copy", where, other)
    assert refused.exit_code == 1
    assert refused.output == "coterie: event 40 of policy 'default' is damaged: its checksum is another\n"
    with opened(other) as target:
        assert count_rows(target) == 0


def test_a_store_that_fails_meanwhile_is_told_in_a_sentence(tmp_path: Path) -> None:
    visited(str(tmp_path / "a.db")).close()
    with opened(str(tmp_path / "a.db")) as source, opened(str(tmp_path / "b.db")) as target:
        target.execute("PRAGMA max_page_count = 12")
        with pytest.raises(StoreError, match="nothing was copied: database or disk is full"):
            copy_store(source, target)
        assert count_rows(target) == 0


def test_what_cannot_be_copied_is_refused_and_nothing_is_made(where: str, tmp_path: Path) -> None:
    visited(where).close()
    missing = tmp_path / "missing.db"
    for source, target, sentence in (
        (str(missing), str(tmp_path / "new.db"), f"there is no store {missing}"),
        (where, where, "the target must be a new or an empty store, and it has rows already"),
        (where, "mysql://host/shop", "'mysql://host/shop'"),
        ("mysql://host/shop", str(missing), "'mysql://host/shop'"),
    ):
        refused = run_here("store", "copy", source, target)
        assert refused.exit_code in (1, 2)
        assert sentence in refused.output
        assert refused.output.count("\n") == 1
    assert {one.name for one in tmp_path.iterdir()} <= {"store.db", "store.db-wal", "store.db-shm", "cache"}


def tables_of(url: str) -> list[tuple[Any, ...]]:
    """The tables of a database."""
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()


def test_a_database_without_a_store_is_no_source(postgres: str, tmp_path: Path) -> None:
    refused = run_here("store", "copy", postgres, tmp_path / "new.db")
    assert refused.output == "coterie: there is no store in this PostgreSQL database\n"
    assert not (tmp_path / "new.db").exists()
    assert tables_of(postgres) == []


@pytest.mark.slow
def test_the_store_of_a_running_service_is_no_target(where: str, tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    visited(source).close()
    with Recommender(store=where, dim=2) as one:
        refused = run_here("store", "copy", source, where)
        assert "in use by another" in refused.output
        assert one.users == ()


def test_a_copy_of_a_store_of_the_former_format_has_the_present_one(tmp_path: Path, other: str) -> None:
    old = tmp_path / "old.db"
    with closing(sqlite3.connect(old)) as connection:
        connection.executescript(OLD_STORE.read_text())
    moved(str(old), other)
    with Recommender(store=other, name="ridge") as one:
        assert one.users == ("ann", "bob", "cid", "dan")
        assert one.policy.estimates.tolist() == [[0.5, 0.0], [0.25, 0.0], [0.5, 0.0], [0.0, 0.5]]
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchall() == [("4",)]
