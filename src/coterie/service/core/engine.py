"""The one writer of a store: policies in memory, their events on the way to disk, and what recovers both."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event as Signal
from threading import RLock, Thread
from time import monotonic

from coterie.errors import ArgumentError, Conflict, SnapshotError, StoreError, UnknownName, unknown
from coterie.service.core import log_events as events
from coterie.service.core.live_policy import LivePolicy, Recovered
from coterie.service.core.log_events import Event
from coterie.service.core.state import PolicyState
from coterie.service.settings import PolicySettings, without_user
from coterie.service.storage import state_snapshots as snapshots
from coterie.service.storage.event_store import EventStore
from coterie.service.storage.journal import Journal
from coterie.service.storage.postgresql import one_line
from coterie.service.storage.snapshot_writer import DELAY, SnapshotWriter
from coterie.validation import shown

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a policy may be asked for at most; more is refused, so that memory is bounded."""

    arms: int = 1_000
    waiting: int = 1_000_000
    policies: int = 100

    def check_offer(self, count: int) -> None:
        """Refuse too many arms in one decision."""
        if count > self.arms:
            raise ArgumentError(f"a decision may be among at most {self.arms} arms, got {count}")


class Turn:
    """`with engine.turn`: one request at a time, as long as the store can be written."""

    def __init__(self, engine: PolicyEngine, patience: float) -> None:
        """Turns of an engine, and the seconds that a request waits for its own."""
        self._engine, self._patience = engine, patience
        self.lock = RLock()
        self.time = 0.0

    def __enter__(self) -> None:
        """Take the lock, if the store can be written."""
        engine, patience = self._engine, self._patience
        if engine.copying:
            patience = -1  # this takes a moment, and then the request can be answered
        elif engine.rewriting and patience > 0:
            patience = 0.0
        if not self.lock.acquire(True, patience):
            busy = "is learning anew from its log" if engine.rewriting else "is busy"
            raise StoreError(f"the policy {busy}; try again soon")
        try:
            if engine.journal.failure is not None:
                raise engine.journal.failure
            if engine.suspect:
                engine.recover()
            self.time = engine.journal.now()
        except BaseException:
            self.lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        """Let others have theirs."""
        self.lock.release()


class Change:
    """`with engine.change`: state and its event change; if that breaks off, the state is read again."""

    def __init__(self, engine: PolicyEngine) -> None:
        """Changes in an engine."""
        self._engine = engine

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Distrust the state in memory after an error."""
        if kind is not None:
            self._engine.suspect = True


class PolicyEngine:
    """Policies by name, on one store.

    A request takes its turn, is checked, and changes the state in memory; its event is queued for the store.
    It is acknowledged when `wait` returns. If a commit fails, the state in memory is ahead of the store: it
    is thrown away, and read again from the store as soon as that can be written.

    Parameters
    ----------
    store : EventStore
        Not open yet.
    snapshot_every : int
        Events of a policy after which a new snapshot is taken.
    patience : float
        Seconds that a request waits for its turn; −1 waits for ever.
    tick : float
        Seconds between looks at timers, snapshots and a store that failed.
    """

    def __init__(
        self,
        store: EventStore,
        *,
        snapshot_every: int = 50_000,
        patience: float = -1,
        tick: float = 0.5,
        limits: Limits | None = None,
    ) -> None:
        """Open the store and recover all policies."""
        self.store = store
        self.limits = limits or Limits()
        self._tick, self._snapshots = tick, SnapshotWriter(self, snapshot_every)
        self.suspect = self.rewriting = self.copying = False
        self.turn, self.change = Turn(self, patience), Change(self)
        self._stop = Signal()
        store.open()
        try:
            self._drop_parts()
            self.journal = Journal(store)
            self.policies = {name: LivePolicy(self, name, self._recovered(name)) for name in store.policies()}
        except BaseException:
            store.close()
            raise
        self._keeper = Thread(target=self._keep_house, name="coterie-housekeeping", daemon=True)
        self._keeper.start()

    @property
    def next_seq(self) -> int:
        """The number of the next event."""
        return self.journal.last + 1

    def now(self) -> float:
        """The time of the request whose turn it is: all that it does happens at once."""
        return self.turn.time

    def wait(self) -> None:
        """Return when everything that happened so far is durable."""
        if self.store.durable:
            self.journal.wait(self.journal.last)
        else:
            self.journal.wake()

    def flush(self) -> None:
        """Let the store have everything that happened so far, so that it can be read there."""
        if self.journal.depth:
            self.journal.run(lambda: None)

    def check_room(self, waiting: int) -> None:
        """Refuse a decision when too many wait for their reward."""
        if waiting >= self.limits.waiting:
            raise StoreError(f"{waiting} decisions wait for a reward, and no more may; shorten reward_wait")

    # Policies.

    def create(self, name: str, settings: PolicySettings) -> LivePolicy:
        """A new policy under a name that was never used."""
        with self.turn:
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise ArgumentError(
                    f"a policy's name must be 1 to 64 letters, digits, '-', '_' or '.', got {shown(name)}"
                )
            if len(self.policies) >= self.limits.policies:
                raise ArgumentError(f"there are {len(self.policies)} policies, and no more may be made")
            if name in self.policies or next(self.store.read(name), None) is not None:
                raise Conflict(f"there is, or was, a policy {name!r}")
            live = LivePolicy(self, name, Recovered(PolicyState(settings)))
            event = Event(self.next_seq, name, events.CREATED, self.now(), detail=settings.to_json())
            with self.change:
                live.state.apply(event)
                self.journal.append(event)
                self.policies[name] = live
            return live

    def find(self, name: str) -> LivePolicy:
        """The policy of this name."""
        if name not in self.policies:
            raise unknown("policy", name, self.policies, "the service lists all")
        return self.policies[name]

    def retire(self, name: str) -> None:
        """Let a policy serve no more; its log remains."""
        with self.turn:
            self.find(name)
            self.journal.append(Event(self.next_seq, name, events.RETIRED, self.now()))
            del self.policies[name]

    def forget_user(self, name: str, user: str) -> None:
        """Remove all that is known of a user of a policy, which learns anew unless it is retired."""
        with self.turn:
            self.flush()
            live = self.policies.get(name)
            if live is None and next(self.store.read(name), None) is None:
                self.find(name)
            if not (live and user in live.state.users) and not self.store.history(name, user, 1):
                raise UnknownName(f"no user {shown(user)}: it has not been seen, or was removed")
            told = [
                (seq, without_user(text, user, retired=live is None))
                for seq, text in self.store.configurations(name)
            ]

            def forget(store: EventStore) -> None:
                store.forget_user(name, user, told)

            if live is None:
                self.journal.run(partial(forget, self.store))
            else:
                self.rewrite(live, forget)

    # Snapshots and recovery.

    def _drop_parts(self) -> None:
        """Remove what a killed process left of a snapshot; start also if the disk is full even for that."""
        try:
            self.store.drop_parts()
        except Exception as error:
            logger.warning(
                "parts of a snapshot that was not finished stay where they are: %s", one_line(error)
            )

    def _recovered(self, name: str) -> Recovered:
        """The state of a policy: its last snapshot, then the log."""
        state: PolicyState | None = None
        seq, at = 0, None
        began = monotonic()
        with closing(self.store.snapshots(name)) as found:
            for stored in found:
                try:
                    state = snapshots.load(stored)
                    seq, at = state.seq, state.at
                    if monotonic() - began > DELAY:
                        logger.info("snapshot of policy %s: read in %.0f s", name, monotonic() - began)
                    break
                except SnapshotError as error:
                    logger.warning("snapshot %s of policy %s is left aside: %s", stored.seq, name, error)
        for event in self.store.read(name, after=seq):
            if state is None:
                state = PolicyState(PolicySettings.from_json(event.detail or "{}"))
            state.apply(event)
        if state is None:
            raise StoreError(f"the log of policy {name!r} is empty")
        return Recovered(state, seq, at)

    def snapshot(self, name: str) -> None:
        """Write a snapshot, or what has changed since the last whole one; StoreError if it cannot be."""
        self._snapshots.take(self.find(name))

    def rewrite(self, live: LivePolicy, task: Callable[[EventStore], None], *, added: int = 0) -> None:
        """Change what is in the log of a policy, and let it learn anew from what is there then.

        `added` is the number of the event that the task adds, if it adds one.
        """

        def perform() -> None:
            live.epoch += 1
            task(self.store)
            self.journal.pass_over(added)

        self.rewriting = True
        try:
            self.journal.run(perform)
            with self.change:
                live.reset(self._recovered(live.name))
        finally:
            self.rewriting = False

    def recover(self) -> None:
        """Connect again and read everything from the store; StoreError if that cannot be done yet."""
        with self.turn.lock:
            for live in self.policies.values():
                live.epoch += 1  # a copy that is being written may hold what was lost
            self.journal.reopen()
            named = self.store.policies()
            for name in named:
                found = self._recovered(name)
                if name in self.policies:
                    self.policies[name].reset(found)
                else:
                    self.policies[name] = LivePolicy(self, name, found)
            for name in set(self.policies) - set(named):
                del self.policies[name]
            self.suspect = False

    def _keep_house(self) -> None:
        """Look after timers, snapshots and a store that failed, until the engine is closed."""
        while not self._stop.wait(self._tick):
            try:
                if self.journal.failure is not None:
                    self.recover()
                for live in list(self.policies.values()):
                    live.expire()
                    self.journal.wake()
                    self._snapshots.take_due(live)
            except StoreError:
                continue  # the next tick tries again
            except Exception:
                logger.exception("housekeeping failed, and is tried again")

    def close(self) -> None:
        """Commit what is queued, take last snapshots, release the store."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._keeper.join()
        for live in self.policies.values():
            if self.store.durable and live.state.seq > live.snapshot_seq:
                with suppress(StoreError):
                    self._snapshots.take(live)  # so that the next start replays nothing
        self.journal.close()
