"""Takes snapshots of policies while they serve: when they are due, and again later where one failed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from coterie.errors import StoreError
from coterie.policies.kernel.learner import Learner
from coterie.service.storage import state_snapshots as snapshots
from coterie.service.storage.copies import DiskCopy
from coterie.service.storage.event_store import PART
from coterie.service.storage.increments import base_of, increment
from coterie.service.storage.postgresql import one_line

if TYPE_CHECKING:
    from coterie.service.core.engine import PolicyEngine
    from coterie.service.core.live_policy import LivePolicy

DELAY = 2.0
"""Seconds after which the log is told of a snapshot that is written or read."""
FIRST_PAUSE = 1.0
"""Seconds until a snapshot that failed is tried again; twice as long after each further failure."""
LONGEST_PAUSE = 300.0
"""Seconds that pass at most between two attempts."""
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Retry:
    """Attempts at a snapshot that failed since the last one that was written, and when the next one is."""

    failures: int = 0
    why: str | None = None
    pause: float = 0.0
    _next: float = 0.0

    def fail(self, why: str) -> None:
        """One more attempt failed."""
        self.failures, self.why = self.failures + 1, why
        self.pause = min(2 * self.pause, LONGEST_PAUSE) if self.pause else FIRST_PAUSE
        self._next = monotonic() + self.pause

    def is_due(self) -> bool:
        """Has enough time passed since the last failure?"""
        return monotonic() >= self._next


class SnapshotWriter:
    """What writes the snapshots of an engine's policies; events go on whether or not it can.

    Parameters
    ----------
    engine : PolicyEngine
        Whose policies are written to its store.
    every : int
        Events of a policy after which a new snapshot is due.
    """

    def __init__(self, engine: PolicyEngine, every: int) -> None:
        """Nothing is written yet."""
        self._engine, self._every = engine, every

    def take_due(self, live: LivePolicy) -> None:
        """Take a snapshot if there are enough new events, unless one has failed just now; never raises."""
        if self._engine.store.durable and live.state.seq - live.snapshot_seq >= self._every:
            if live.retry.is_due():
                with suppress(StoreError):
                    self.take(live)

    def take(self, live: LivePolicy) -> None:
        """Write a snapshot, or what has changed since the last whole one; requests go on meanwhile.

        Parameters
        ----------
        live : LivePolicy
            What is written.

        Raises
        ------
        StoreError
            If it cannot be written. The log is told why, and `live.retry` when to try again.
        """
        try:
            with DiskCopy(self._engine.store.folder) as copy:
                self._write(live, copy)
        except Exception as error:  # whatever it was, timers and the next attempt must go on
            self._fail(live, error)
            raise StoreError(f"no snapshot of policy {live.name!r}: {one_line(error)}") from error
        if live.retry.failures:
            logger.info("snapshot of policy %s: written, after %d failures", live.name, live.retry.failures)
            live.retry = Retry()

    def _fail(self, live: LivePolicy, error: Exception) -> None:
        """Say so, and give back the room that parts have taken."""
        live.retry.fail(one_line(error))
        logger.warning(
            "snapshot of policy %s failed, nothing is lost, and it is tried again in %.0f s: %s",
            live.name,
            live.retry.pause,
            live.retry.why,
            exc_info=None if isinstance(error, OSError) else error,
        )
        with suppress(StoreError):
            self._engine.journal.attempt(partial(self._engine.store.drop_parts, live.name))

    def _write(self, live: LivePolicy, copy: DiskCopy) -> None:
        engine = self._engine

        @contextmanager
        def look() -> Iterator[Learner]:
            if engine.journal.failure is not None:
                raise engine.journal.failure  # the thread that copies is the one that recovers
            with engine.turn.lock, live.state.policy.lock:
                yield live.state.policy.learner

        copy.prepare(look)
        with self._still():
            captured, epoch, base = snapshots.capture(live.state, copy), live.epoch, live.base
            at = engine.journal.now()
        arrays = snapshots.arrays_of(captured)
        changes = None if base is None or base.seq == captured.seq else increment(arrays, base, copy.new_file)
        put = self._put_part(live.name, captured.seq)
        count, digest = snapshots.write(arrays if changes is None else changes, put)
        after = base if changes is not None else base_of(captured.seq, digest, arrays)

        def complete() -> None:
            if live.epoch == epoch:
                built_on = None if changes is None or base is None else base.seq
                engine.store.complete(live.name, captured.seq, count, digest, base=built_on)
                live.base, live.snapshot_seq, live.snapshot_at = after, captured.seq, at
            else:
                engine.store.drop_parts(live.name)

        engine.journal.attempt(complete)

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Nothing changes within, and requests wait for its end; StoreError if the state is distrusted."""
        self._engine.copying = True
        try:
            with self._engine.turn.lock:
                if self._engine.suspect:
                    raise StoreError(
                        "a change has broken off, and the state is read from the log again first"
                    )
                yield
        finally:
            self._engine.copying = False

    def _put_part(self, name: str, seq: int) -> Callable[[int, bytes], None]:
        """What writes the parts of a snapshot, and tells the log how far it is where that takes long."""
        told, engine = monotonic(), self._engine

        def put(number: int, part: bytes) -> None:
            nonlocal told
            engine.journal.attempt(partial(engine.store.put_part, name, seq, number, part))
            if monotonic() - told > DELAY:
                told = monotonic()
                logger.info("snapshot of policy %s: %d MB are written", name, (number + 1) * PART // 10**6)

        return put
