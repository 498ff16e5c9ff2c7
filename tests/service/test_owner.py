"""One owner of a store, through whatever path; files and rows that were tampered with are noticed."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coterie import Recommender, StoreError
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.lifecycle import Phase
from coterie.service.storage import sqlite
from coterie.service.storage.sqlite import SQLiteStore
from inspection import abandon, engine_of, live_of, never_keep_house, release_lock, store_of
from service.shops import ITEMS, same_state, shop
from service.test_faults import eventually

OPEN = "import sys; from coterie import Recommender; Recommender(store=sys.argv[1]).close()"


def opened_elsewhere(path: Path) -> subprocess.CompletedProcess[str]:
    """Open a store in another process."""
    command = [sys.executable, "-c", OPEN, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_no_other_path_leads_into_a_store_that_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with shop(store=path):
        (tmp_path / "soft.db").symlink_to(path)
        os.link(path, tmp_path / "hard.db")
        for file in tmp_path.glob("*lock*"):
            file.unlink()
        hard = ["hard.db"] if sys.platform == "linux" else []  # other systems lock a file beside the store
        for other in ("a.db", "soft.db", *hard):
            told = opened_elsewhere(tmp_path / other)
            assert told.returncode
            assert "is in use by another process; one store has one service" in told.stderr
            with pytest.raises(StoreError, match="is in use by another process"):
                Recommender(store=tmp_path / other)
    (tmp_path / "hard.db").unlink()
    assert opened_elsewhere(tmp_path / "soft.db").returncode == 0


def test_a_store_with_another_name_is_refused_since_that_name_has_another_write_ahead_log(
    tmp_path: Path,
) -> None:
    one = shop(store=tmp_path / "a.db")
    one.feedback("alice", 1.0, item="tea", feedback_id="f1")
    abandon(one)  # the latest commits are in a.db-wal
    os.link(tmp_path / "a.db", tmp_path / "hard.db")
    for name in ("hard.db", "a.db"):
        with pytest.raises(StoreError, match="has another name, a hard link"):
            Recommender(store=tmp_path / name)
    (tmp_path / "hard.db").unlink()
    with Recommender(store=tmp_path / "a.db") as again:
        assert again.policy.rounds == 1


def test_a_store_that_is_mounted_as_a_single_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    shop(store=folder / "a.db").close()
    mounted = os.fspath(folder.resolve()).replace(" ", "\\040")
    listed = tmp_path / "mountinfo"
    monkeypatch.setattr(sqlite, "MOUNTS", listed)
    listed.write_text(f"36 35 98:0 /x {mounted} rw,noatime - ext4 /dev/root rw\n")
    Recommender(store=folder / "a.db").close()
    listed.write_text(f"36 35 98:0 /x {mounted}/a.db rw,noatime - ext4 /dev/root rw\n")
    with pytest.raises(StoreError, match="is mounted as a single file"):
        Recommender(store=folder / "a.db")


@pytest.mark.parametrize("name", ["a.db", "a.db-wal"])
def test_a_file_that_was_cut_stops_acknowledgements(name: str, tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")
    for number in range(600):  # enough for SQLite to copy commits to the main file
        one.feedback("alice", 1.0, item="tea", feedback_id=f"f{number}")
    os.truncate(tmp_path / name, 4096 if name == "a.db" else 0)
    with pytest.raises(StoreError):
        one.feedback("alice", 0.0, item="tea", feedback_id="next")
    until = time.monotonic() + 20
    while engine_of(one).lifecycle.serving:  # housekeeping looks at the files
        assert time.monotonic() < until
        time.sleep(0.05)
    abandon(one)


def test_an_owner_whose_store_was_taken_over_acknowledges_nothing(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_keep_house(monkeypatch)
    one = shop(store=where)
    one.decide("alice", decision_id="d1")
    release_lock(store_of(one))  # as on a file system without locks, or after a failover
    other = Recommender(store=where)
    with pytest.raises(StoreError, match="another process has opened this store since"):
        one.decide("alice", decision_id="d2")
    assert engine_of(one).lifecycle.phase is Phase.FAILED
    with pytest.raises(StoreError, match="another process has opened this store since"):
        engine_of(one).recover()
    other.reward("d1", 1.0)
    assert not store_of(other).find("default", "d2")
    one.close()
    other.decide("alice", decision_id="d3")  # the first has written nothing at its end either
    other.close()
    with Recommender(store=where) as again:
        assert again.policy.rounds == 1


@pytest.mark.parametrize("replaced", [False, True])
def test_a_write_ahead_log_that_vanished_stops_acknowledgements(
    replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_keep_house(monkeypatch)
    one, other = shop(store=tmp_path / "a.db"), shop()
    for each in (one, other):
        each.feedback("alice", 1.0, item="tea", feedback_id="f1")
    (tmp_path / "a.db-wal").unlink()
    if replaced:
        (tmp_path / "a.db-wal").write_bytes(b"")
    with pytest.raises(StoreError, match=r"a\.db-wal was removed or replaced"):
        one.feedback("alice", 0.0, item="tea", feedback_id="f2")
    with pytest.raises(StoreError):
        one.decide("alice")
    engine_of(one).recover()  # what was acknowledged is still in the file that is open
    one.feedback("alice", 0.0, item="tea", feedback_id="f2")
    other.feedback("alice", 0.0, item="tea", feedback_id="f2")
    assert same_state(one, other)
    one.close()
    with Recommender(store=tmp_path / "a.db") as again:
        assert same_state(again, other)


def test_a_vanished_write_ahead_log_is_noticed_without_requests(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")
    one.feedback("alice", 1.0, item="tea")
    (tmp_path / "a.db-wal").unlink()
    until = time.monotonic() + 20
    while not (tmp_path / "a.db-wal").exists():  # made anew by the recovery
        assert time.monotonic() < until
        time.sleep(0.05)
    eventually(lambda: one.feedback("alice", 1.0, item="tea", feedback_id="f2"))
    assert one.policy.rounds == 2
    one.close()


def test_files_of_a_store_are_for_their_owner_alone(tmp_path: Path) -> None:
    with shop(store=tmp_path / "a.db"):
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes


def change(path: Path, statement: str, *values: Any) -> None:
    """Change a store behind the back of Coterie."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, values)
        connection.commit()


@pytest.mark.parametrize(
    ("column", "value"),
    [("reward", 0.5), ("at", 1.0), ("user_id", "eve"), ("x", b"\0" * 16), ("item", "x"), ("detail", "{}")],
)
def test_a_damaged_row_is_named_and_its_policy_quarantined(column: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    one = shop(store=path)
    one.feedback("alice", 1.0, item="tea", feedback_id="f1")
    number = live_of(one).state.seq
    one.close()
    change(path, "DELETE FROM snapshot")
    change(path, f"UPDATE log SET {column} = ? WHERE decision = 'f1'", value)
    engine = PolicyEngine(SQLiteStore(path))
    with pytest.raises(StoreError, match=f"out of service: event {number} of policy 'default' is damaged"):
        engine.find("default")
    engine.close()


def test_a_clock_that_was_a_century_ahead_does_not_keep_the_log_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 100 * 365 * 86_400)
    shop(store=tmp_path / "a.db").close()
    monkeypatch.undo()
    with Recommender(store=tmp_path / "a.db") as one:
        assert "days ahead of the clock: time goes on from the clock" in caplog.text
        assert abs(engine_of(one).journal.now() - real()) < 3600


def test_a_store_of_the_future_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    change(path, "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    change(path, "INSERT INTO meta VALUES ('format', '99')")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="it has format 99"):
        Recommender(items=ITEMS, store=path)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*-wal"))
