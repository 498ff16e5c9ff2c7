"""Where a store is, and both kinds of store: the events of a user, found block by block."""

from __future__ import annotations

from pathlib import Path

import pytest

from coterie import ArgumentError, Recommender
from coterie.service.storage.event_store import BLOCK, DECISION, Event, EventStore
from coterie.service.storage.location import open_store
from inspection import answers_of, read_pages_of


def events(start: int, count: int) -> list[Event]:
    """Events of seven users in turn, the last of whom has another policy."""
    made = []
    for seq in range(start, start + count):
        policy = "other" if seq % 7 == 6 else "shop"
        made.append(Event(seq, policy, DECISION, float(seq), f"d{seq}", f"user-{seq % 7}", "tea"))
    return made


def test_the_history_of_a_user_is_found_in_all_blocks(where: str) -> None:
    store = open_store(where)
    store.open()
    try:
        assert store.history("shop", "user-3", 10) == []
        store.append(events(BLOCK - 40, 80))
        store.append(events(4 * BLOCK, 40))  # numbers are left out after a failure
        theirs = [*range(BLOCK - 40, BLOCK + 40), *range(4 * BLOCK, 4 * BLOCK + 40)]
        expected = [seq for seq in theirs if seq % 7 == 3]
        assert [one.seq for one in store.history("shop", "user-3", 1_000)] == expected
        assert [one.seq for one in store.history("shop", "user-3", 4)] == expected[-4:]
        assert store.history("shop", "user-6", 10) == []
        store.forget_user("shop", "user-3")
        store.forget_user("shop", "user-6")
        assert store.history("shop", "user-3", 10) == []
        assert {one.seq for one in store.read("shop")} == {seq for seq in theirs if seq % 7 not in (3, 6)}
        assert len(list(store.read("other"))) == sum(seq % 7 == 6 for seq in theirs)
    finally:
        store.close()


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("mysql://root:secret@127.0.0.1/shop", "mysql://127.0.0.1/shop"),
        ("postgresql+psycopg://127.0.0.1/shop", "postgresql+psycopg://127.0.0.1/shop"),
        ("sqlite://shop.db", "sqlite://shop.db"),
        ("sqlite:///", "sqlite:///"),
    ],
)
def test_a_store_of_an_unknown_kind_is_refused_and_nothing_is_created(
    where: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError) as refused:
        Recommender(2, store=where)
    assert str(refused.value) == (
        f"store must be the path of a SQLite file, sqlite:///PATH or postgresql://…, got {shown!r}"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_sqlite_url_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for where, file in (
        ("sqlite:///a.db", tmp_path / "a.db"),
        (f"sqlite:///{tmp_path}/b.db", tmp_path / "b.db"),
    ):
        Recommender(2, store=where).close()
        assert file.is_file()
        Recommender(store=file).close()


def test_the_log_is_read_in_pages_of_bounded_size(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes of a catalogue have megabytes each, and a start must not hold thousands of them."""
    read_pages_of(2_500, monkeypatch)
    added = [Event(n, "a", "items", 1.0, x=b"x" * (1_000 if n % 7 else 9_000)) for n in range(1, 40)]
    store.append(added)
    held = answers_of(store, monkeypatch)
    assert list(store.read("a")) == added
    assert list(store.read("a", after=20)) == added[20:]
    assert max(held) <= 2_500 + 9_000
