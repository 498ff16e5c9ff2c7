"""The engine: all policies of a store, their one writer, housekeeping, and recovery after a failure."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import partial
from threading import Event as Signal
from threading import RLock, Thread
from typing import TypeVar
from weakref import WeakSet

from coterie.errors import ArgumentError, Conflict, StoreError, UnknownName, unknown
from coterie.placement import Placement
from coterie.service.core.experiments import NAME, Experiments
from coterie.service.core.lifecycle import Lifecycle, Phase
from coterie.service.core.live_policy import LivePolicy
from coterie.service.core.recovery import DamagedPolicy, Recovered, recover_policy
from coterie.service.core.state import PolicyState
from coterie.service.limits import Limiter, Limits
from coterie.service.settings import PolicySettings, without_user
from coterie.service.storage import event_store as events
from coterie.service.storage.erasure import Erasure
from coterie.service.storage.event_store import Event, EventStore, StoreTakenOver, one_line
from coterie.service.storage.journal import Journal, PendingResult, RequestLock
from coterie.service.storage.shard_mark import check_mark
from coterie.service.storage.state_snapshots import unreferenced_chunks
from coterie.validation import shown

R = TypeVar("R")
logger = logging.getLogger(__name__)
ENGINES: WeakSet[PolicyEngine] = WeakSet()
"""Engines of this process."""


class PolicyEngine:
    """Policies by name, on one store.

    A request takes its turn, is checked, and changes the state in memory; its event is queued for the store.
    It is acknowledged when `settle` returns. If a commit fails, the state in memory is ahead of the store: it
    is thrown away, and read again from the store as soon as that can be written. `lifecycle` says whether it
    may be believed.

    A policy whose log cannot be replayed is out of service, and listed in `quarantined` with the reason; the
    others serve.

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
    limits : Limits, optional
        On policies, users, items and decisions.
    placement : Placement, optional
        Which shard the store is of; None if it is not one of several.
    """

    def __init__(
        self,
        store: EventStore,
        *,
        snapshot_every: int = 50_000,
        patience: float = -1,
        tick: float = 0.5,
        limits: Limits | None = None,
        placement: Placement | None = None,
    ) -> None:
        """Open the store and recover all policies."""
        self.store = store
        self.limiter = Limiter(limits or Limits())
        self._tick, self._snapshot_every = tick, snapshot_every
        self._stop = Signal()
        store.open()
        try:
            check_mark(store, placement)
            self._remove_unfinished_snapshots()
            self.lifecycle = Lifecycle()
            self.journal = Journal(store, self.lifecycle)
            self.requests = RequestLock(self.journal, patience)
            self.policies: dict[str, LivePolicy] = {}
            self.quarantined: dict[str, StoreError] = {}
            self.erasure = Erasure(self.journal)
            self.experiments = Experiments(self.journal, self.requests, self.limiter, self.find)
            self._read_policies()
        except BaseException:
            store.close()
            raise
        self._keeper = Thread(target=self._keep_house, name="coterie-housekeeping", daemon=True)
        self._keeper.start()
        ENGINES.add(self)

    def _live(self, name: str, recovered: Recovered) -> LivePolicy:
        return LivePolicy(name, recovered, self.requests, self.limiter, self.experiments.learners)

    def settle(self, pending: PendingResult[R]) -> R:
        """Return the result of an operation once its event is durable; StoreError if it will not be."""
        if self.store.durable:
            self.journal.wait(pending.seq)
        else:
            self.journal.wake()
        return pending.result

    def wait(self) -> None:
        """Return when everything that happened so far is durable."""
        self.journal.flush()

    def out_of_service(self) -> dict[str, str]:
        """Return the policies that cannot be used now, and why."""
        found = {name: str(why) for name, why in self.quarantined.items()}
        for name, live in list(self.policies.items()):
            if not live.lifecycle.serving:
                found[name] = str(live.lifecycle.error())
        return found

    # Policies.

    def create(self, name: str, settings: PolicySettings) -> PendingResult[LivePolicy]:
        """Make a policy under a name that was never used."""
        with self.requests:
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise ArgumentError(
                    f"a policy's name must be 1 to 64 letters, digits, '-', '_' or '.', got {shown(name)}"
                )
            self.limiter.check("policy", len(self.policies) + len(self.quarantined))
            self.limiter.check("user", 0, len(settings.users))
            if name in self.policies or next(self.store.read(name), None) is not None:
                raise Conflict(f"there is, or was, a policy {name!r}")
            live = self._live(name, Recovered(PolicyState(settings)))
            event = Event(
                self.journal.next_seq, name, events.CREATED, self.requests.now, detail=settings.to_json()
            )
            live.state.apply(event)
            self.journal.append(event)
            self.policies[name] = live
            return PendingResult(live, event.seq)

    def find(self, name: str) -> LivePolicy:
        """Return the policy of this name; StoreError with the reason if it is out of service."""
        live = self.policies.get(name)
        if live is None:
            if name in self.quarantined:
                raise StoreError(str(self.quarantined[name]))
            raise unknown("policy", name, self.policies, "GET /v1/policies of a service lists all")
        return live

    def retire(self, name: str) -> PendingResult[None]:
        """End a policy's service, even that of one whose log cannot be replayed; its log remains."""
        with self.requests:
            if name not in self.quarantined:
                self.find(name).lifecycle.check_unoccupied()
            running = self.experiments.running_with(name)
            if running is not None:
                raise Conflict(f"policy {name!r} takes part in experiment {running.name!r}: stop that first")
            self.experiments.keep_results(name)
            event = Event(self.journal.next_seq, name, events.RETIRED, self.requests.now)
            self.journal.append(event)
            self._drop(name, StoreError(f"policy {name!r} was retired"))
            return PendingResult(None, event.seq)

    def _drop(self, name: str, reason: StoreError) -> None:
        """Forget a policy; requests that have found it before are refused."""
        live = self.policies.pop(name, None)
        if live is not None:
            live.lifecycle.fail(reason)
        self.quarantined.pop(name, None)

    def forget_user(self, name: str, user: str) -> None:
        """Remove all that is known of a user of a policy, which learns anew unless it is retired.

        If the files cannot be written anew now, StoreError says so, and calling it again finishes that.
        """
        with self.requests:
            self.journal.flush()
            live = self.policies.get(name)
            if live is not None:
                live.lifecycle.check_unoccupied()
            if name in self.quarantined:
                self.find(name)
            if live is None and next(self.store.read(name), None) is None:
                self.find(name)
            if (live and user in live.state.users) or self.store.history(name, user, 1):
                try:
                    self._remove_events(name, user)
                finally:  # it may be removed even if the policy cannot be read again
                    with suppress(StoreError):
                        self.erasure.look()
            elif not self.erasure.pending:
                raise UnknownName(f"no user {shown(user)}: it has not been seen, or was removed")
        self.erasure.finish()

    def _remove_events(self, name: str, user: str) -> None:
        """Remove a user from the log of a policy, which learns anew unless it is retired."""
        live = self.policies.get(name)
        settings = [
            (seq, without_user(text, user, retired=live is None))
            for seq, text in self.store.configurations(name)
        ]

        def forget(store: EventStore) -> None:
            store.forget_user(name, user, settings)

        if live is None:
            self.journal.run(partial(forget, self.store))
        else:
            live.rewrite(forget)

    # Snapshots and recovery.

    def snapshot(self, name: str) -> None:
        """Write a snapshot of a policy; StoreError if that cannot be done."""
        self.find(name).snapshots.take()

    def _remove_unfinished_snapshots(self) -> None:
        """Remove what a killed process left of a snapshot; start also if the disk is full even for that."""
        try:
            for name in self.store.chunk_owners():
                for digests in unreferenced_chunks(self.store, name):
                    self.store.remove_chunks(name, digests)
        except Exception as error:
            logger.warning("chunks of an unfinished snapshot stay in the store: %s", one_line(error))

    def recover(self) -> None:
        """Connect again and read everything from the store; StoreError if that cannot be done yet.

        The engine serves again only if all of it succeeds: the connection alone proves nothing of what is in
        memory.
        """
        with self.requests.lock:
            if self.lifecycle.serving:
                return
            self.lifecycle.begin()
            try:
                for live in self.policies.values():
                    live.snapshots.epoch += 1  # a copy that is being written may hold what was lost
                self.journal.reopen()
                self.erasure.look()
                self.experiments.read()
                self._read_policies()
                self.lifecycle.serve()
            except StoreTakenOver as error:
                self.lifecycle.fail(error)
                raise
            except BaseException as error:
                reason = error if isinstance(error, StoreError) else StoreError(one_line(error))
                self.lifecycle.doubt(reason)
                raise

    def _read_policies(self) -> None:
        """Read all policies from the store; one whose log cannot be replayed is put in quarantine."""
        named = self.store.policies()
        for name in {*self.policies, *self.quarantined} - set(named):
            self._drop(name, StoreError(f"policy {name!r} is not in the store any more"))
        for name in named:
            try:
                found = recover_policy(self.store, name)
            except (DamagedPolicy, MemoryError) as error:
                lacking = f"policy {name!r} is out of service: there is not enough memory to read it"
                reason = StoreError(lacking if isinstance(error, MemoryError) else str(error))
                logger.error("%s", reason)
                self._drop(name, reason)
                self.quarantined[name] = reason
                continue
            if name in self.policies and self.policies[name].lifecycle.phase is not Phase.FAILED:
                self.policies[name].restore(found)
            else:
                self.policies[name] = self._live(name, found)
                self.quarantined.pop(name, None)

    def _keep_house(self) -> None:
        """Look after timers, snapshots and a store that failed, until the engine is closed."""
        while not self._stop.wait(self._tick):
            try:
                self._look_after()
            except StoreError:
                continue  # the next tick tries again
            except Exception:
                logger.exception("housekeeping failed, and is tried again")

    def _look_after(self) -> None:
        if self.lifecycle.serving:
            try:
                self.store.check_place()
            except OSError as error:  # even if nothing is written now: what was committed may be gone
                self.journal.doubt(error)
        if not self.lifecycle.serving:
            self.recover()
        self.erasure.finish_due()
        for live in list(self.policies.values()):
            live.recover_due()
            if live.lifecycle.serving:
                with suppress(StoreError):  # one policy that is busy must not keep the others waiting
                    live.expire()
                    live.watch_due()
                self.journal.wake()
                live.snapshots.take_due(self._snapshot_every)

    def _end_in_child(self) -> None:
        """Refuse everything in a forked process, and do nothing at its end: the store is its parent's."""
        self._stop = Signal()
        self._stop.set()
        self.requests.lock = RLock()
        self.journal.end_in_child()
        self.store.leave_in_child()

    def close(self, *, snapshot: bool = True) -> None:
        """Commit what is queued, take last snapshots, so that the next start replays nothing, and close."""
        if self._stop.is_set():
            return
        self._stop.set()
        self.store.hurry()
        self._keeper.join()
        for live in self.policies.values():
            sound = self.lifecycle.serving and live.lifecycle.serving
            if snapshot and sound and self.store.durable and live.state.seq > live.snapshots.seq:
                with suppress(StoreError):
                    live.snapshots.take()
        self.journal.close()
        if not self.lifecycle.serving:
            logger.error(
                "the service ends while its store cannot be written: requests that were not answered may not "
                "be counted, and all that were answered are in the store. %s",
                self.lifecycle.error(),
            )


def _end_in_child() -> None:
    for engine in list(ENGINES):
        engine._end_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_in_child)
