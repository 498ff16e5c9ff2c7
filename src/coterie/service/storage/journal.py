"""The way of events to the store: requests take turns, one thread commits, and callers wait for it."""

from __future__ import annotations

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from enum import Enum
from threading import Condition, RLock, Thread
from typing import Generic, NamedTuple, TypeVar

from coterie.errors import StoreError
from coterie.service.core.lifecycle import Lifecycle
from coterie.service.storage.event_store import Event, EventStore, StoreTakenOver, one_line

R = TypeVar("R")
Subscriber = Callable[[int, int, StoreError | None], None]
Task = Callable[[], None]
Acknowledge = Callable[[StoreError | None], None]
COLLECT = 0.001
"""Seconds that a commit waits for more requests at most."""
FARTHEST_AHEAD = 30 * 86_400.0
"""Seconds that the time of the log may be ahead of the clock: more is an error of a clock, not its drift."""
logger = logging.getLogger(__name__)


class PendingResult(NamedTuple, Generic[R]):
    """The result of an operation, which counts once the event of this number is durable.

    `seq` is 0 where nothing has to be waited for: the event was in the store when it was last read.
    """

    result: R
    seq: int


class Journal:
    """Events on their way to the store.

    `append` only queues; one thread commits whatever is queued, in order, in one transaction. That thread is
    the only one that writes to the store. When a commit fails, nothing of it is acknowledged, and nothing is
    committed any more until the engine has recovered: `lifecycle` says whether it has.

    Attributes
    ----------
    durable : int
        Events of this recovery up to this number are in the store.
    base : int
        The last number before this recovery. A number up to it is either of an event that was read from the
        store, or of one that was given up; so an acknowledgement never waits for one.
    acknowledged : int
        The last event that was committed, and may have been acknowledged, in the life of this process.
    """

    def __init__(self, store: EventStore, lifecycle: Lifecycle | None = None) -> None:
        """Start the thread that writes to an open store."""
        self.store = store
        self.lifecycle = lifecycle or Lifecycle()
        self._changed = Condition()
        self._queue: deque[Event] = deque()
        self._tasks: list[Task] = []
        self._subscribers: list[Subscriber] = []
        self._closing = self._idle = False
        self._queued_at = 0.0
        self._committing_since: float | None = None
        self._given_up: StoreError = unavailable("the commit failed")
        self.commits = 0
        self.commit_seconds = 0.0
        # Two counters, since two threads count: each has one writer.
        self._bytes_queued = self._bytes_settled = 0
        self._remove_unfinished_imports()
        self.last, self._start = store.last()
        self.durable = self.base = self.acknowledged = self.last
        self._set_clock()
        self._thread = Thread(target=self._work, name="coterie-journal", daemon=True)
        self._thread.start()

    def _set_clock(self) -> None:
        """Let time run on from the last event, even if the clock was set back since.

        An event far ahead of the clock was written with a wrong one: going on from there would keep the log
        in the future for good.
        """
        now = time.time()
        if self._start > now + FARTHEST_AHEAD:
            logger.warning(
                "the last event is %.0f days ahead of the clock: time goes on from the clock, and decisions "
                "of that time expire that much later",
                (self._start - now) / 86_400,
            )
            self._start = now
        self._start = max(now, self._start)
        self._ticks = time.monotonic()

    def now(self) -> float:
        """Return seconds since 1970; never goes back, whatever happens to the clock."""
        return self._start + time.monotonic() - self._ticks

    @property
    def next_seq(self) -> int:
        """The number of the next event."""
        return self.last + 1

    @property
    def depth(self) -> int:
        """Events that are not durable yet."""
        return self.last - self.durable

    @property
    def queued_bytes(self) -> int:
        """What the events that are not durable yet take in memory."""
        return self._bytes_queued - self._bytes_settled

    def append(self, event: Event) -> None:
        """Queue an event whose number is `next_seq`; it is committed after the next `wake` or `wait`.

        The caller holds the request lock, so that numbers are in order.
        """
        self.last = event.seq
        if not self._queue:
            self._queued_at = time.monotonic()
        self._bytes_queued += event.size
        self._queue.append(event)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all events that are appended within be committed in one transaction; never wait within."""
        with self._changed:
            yield

    def wake(self) -> None:
        """Let the thread commit what is queued, unless it is busy and will look again anyway."""
        if self._idle and self._queue:
            with self._changed:
                self._changed.notify_all()

    def pass_over(self, seq: int) -> None:
        """Use no number up to this one: a task has added it to the store, or removed others from it."""
        stored, _ = self.store.last()  # the last event may have been removed
        with self._changed:
            self.last, self.durable = max(self.last, seq), max(self.durable, seq)
            self.acknowledged = stored

    def doubt(self, error: Exception) -> StoreError:
        """Give up what is not durable, until the engine has recovered; what callers are refused with."""
        return self._fail(error)

    @property
    def oldest_age(self) -> float:
        """Seconds that the oldest event waits for its commit; 0.0 if none does."""
        since = self._committing_since
        if since is None:
            since = self._queued_at if self._queue else None
        return 0.0 if since is None else max(time.monotonic() - since, 0.0)

    def number_to_await(self, seq: int) -> int:
        """Return what an acknowledgement of this event, which is in memory, has to wait for.

        Only who holds the engine's lock may ask: otherwise a recovery could come between.
        """
        return seq if seq > self.base else 0

    def wait(self, seq: int) -> None:
        """Return when the event of this number is durable; StoreError if it will not be."""
        with self._changed:
            self._changed.notify_all()
            while self.base < seq and seq > self.durable and self.lifecycle.serving:
                self._changed.wait()
            if (error := self.refusal(seq)) is not None:
                raise error

    def refusal(self, seq: int) -> StoreError | None:
        """Return why an event will not be acknowledged; None if it is durable, or may still become so."""
        if seq == 0 or self.base < seq <= self.durable:
            return None
        if seq <= self.base:
            return StoreError(str(self._given_up))  # it may have recovered since
        return None if self.lifecycle.serving else self.lifecycle.error()

    def flush(self) -> None:
        """Return when the store has everything that happened so far, so that it can be read there."""
        if self.depth:
            self.run(lambda: None)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call this after every commit, on the journal's thread: with the last number that is durable.

        After a failure it gets the last number that was given up, too, and the error.
        """
        self._subscribers.append(subscriber)

    def run(self, task: Callable[[], R]) -> R:
        """Perform a task on the journal's thread, after all that is queued, and return its result.

        An error counts as a failed commit: the task has changed the log, and perhaps only in part.
        """
        return self._on_thread(task, self._perform)

    def attempt(self, task: Callable[[], R]) -> R:
        """Perform a task on the journal's thread that no event depends on; StoreError if it fails.

        Its transaction is rolled back then, and commits go on.
        """
        return self._on_thread(task, self._try)

    def reopen(self) -> None:
        """Connect again after a failure; numbers that were used are not used again.

        Nothing is committed until the engine has read the log and serves again.
        """
        self._on_thread(self._reconnect, lambda task: task())

    def _on_thread(self, task: Callable[[], R], perform: Callable[[Callable[[], R]], R]) -> R:
        """Wait until the thread has performed a task; return its result, or raise its error."""
        outcome: Future[R] = Future()

        def settle() -> None:
            try:
                outcome.set_result(perform(task))
            except BaseException as error:  # the thread must go on, and the caller not wait for ever
                outcome.set_exception(error)

        with self._changed:
            if self._closing:
                raise unavailable("it is closed")
            self._tasks.append(settle)
            self._changed.notify_all()
        return outcome.result()

    def _perform(self, task: Callable[[], R]) -> R:
        self.lifecycle.check()
        try:
            return task()
        except Exception as error:
            raise self._fail(error) from None

    def _try(self, task: Callable[[], R]) -> R:
        self.lifecycle.check()
        try:
            return task()
        except StoreTakenOver as error:
            raise self._fail(error) from None
        except Exception as error:
            raise StoreError(one_line(error)) from None

    def _reconnect(self) -> None:
        self.store.open(again=True)
        stored, at = self.store.last()
        if stored < self.acknowledged:
            lost = StoreError(
                f"the store has lost events that were acknowledged: it ends with number {stored}, and "
                f"{self.acknowledged} was committed; nothing is answered. Restore the store, or start the "
                "service again to go on without them"
            )
            logger.critical("%s", lost)
            self.lifecycle.fail(lost)
            raise lost
        self._remove_unfinished_imports()  # after that check: their events are missing from now on
        self.acknowledged, _ = self.store.last()
        with self._changed:
            self._queue.clear()
            self._bytes_settled = self._bytes_queued
            self._start = max(self.now(), min(at, time.time() + FARTHEST_AHEAD))
            self._ticks = time.monotonic()
            self.last = max(self.last, stored) + 1  # after all that was given up
            self.durable = self.base = self.last

    def _remove_unfinished_imports(self) -> None:
        for policy in self.store.unfinished_imports():
            logger.warning("an import of policy %s had not ended: nothing of it is counted", policy)
            self.store.remove_import(policy)

    def close(self) -> None:
        """Commit what is queued, end the thread, close the store."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self.store.close()

    def end_in_child(self) -> None:
        """Refuse everything in a forked process, where the thread that commits is missing."""
        self._changed, self._closing = Condition(), True
        self.lifecycle.end_in_child()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                while not (self._queue or self._tasks or self._closing):
                    self._changed.wait()
                self._idle = False
                if not (self._queue or self._tasks):
                    return
                events = [self._queue.popleft() for _ in range(len(self._queue))]
                tasks, self._tasks = self._tasks, []
            if events:
                self._commit(events)
            for task in tasks:
                task()

    def _commit(self, events: Sequence[Event]) -> None:
        if not self.lifecycle.serving:
            self._give_up()  # they rest on what may be lost
            return
        began = time.perf_counter()
        self._committing_since = self._queued_at
        try:
            self.store.append(events)
        except Exception as error:
            self._fail(error)
            return
        finally:
            self._committing_since = None
        self.commits += 1
        self.commit_seconds += time.perf_counter() - began
        self._bytes_settled += sum([one.size for one in events])
        with self._changed:
            self.durable = self.acknowledged = events[-1].seq
            self._changed.notify_all()
        self._notify(None)

    def _fail(self, error: Exception) -> StoreError:
        """Refuse all that was not durable, and everything until the engine has recovered."""
        if isinstance(error, StoreTakenOver):
            logger.critical("%s", error)
            self.lifecycle.fail(error)
        else:
            self.lifecycle.doubt(error if isinstance(error, StoreError) else unavailable(one_line(error)))
        return self._give_up()

    def _give_up(self) -> StoreError:
        error = self._given_up = self.lifecycle.error()
        with self._changed:
            self._queue.clear()
            self._changed.notify_all()
            last = self.last
        self._notify(error, last)
        return error

    def _notify(self, error: StoreError | None, given_up: int = 0) -> None:
        for subscriber in self._subscribers:
            subscriber(self.durable, given_up, error)


def unavailable(why: str) -> StoreError:
    """Return the error of a store that cannot be written; it says that nothing was counted."""
    return StoreError(f"the store cannot be written now, and nothing was counted: {why}")


class Holder(Enum):
    """What has the lock of requests, which says how long others should wait for it."""

    REQUEST = "is busy"
    """A moment."""
    COPY = "is copied for a snapshot"
    """A moment, after which the request can be answered: wait however long it takes."""
    REWRITE = "is learning anew from its log"
    """As long as learning took: do not wait."""


class RequestLock:
    """One request at a time, while the engine serves: `with requests: ...`.

    Parameters
    ----------
    journal : Journal
        Where events go.
    patience : float
        Seconds that a request waits for its turn; −1 waits for ever.

    Attributes
    ----------
    now : float
        The time of the request whose turn it is: all that it does happens at once.
    holder : Holder
        What has the lock, or had it last.
    """

    def __init__(self, journal: Journal, patience: float) -> None:
        """Start without a request."""
        self.journal = journal
        self.patience = patience
        self.lock = RLock()
        self.now = 0.0
        self.holder = Holder.REQUEST

    def __enter__(self) -> None:
        """Take the lock, if the store can be written."""
        patience = self.patience
        if self.holder is Holder.COPY:
            patience = -1
        elif self.holder is not Holder.REQUEST and patience > 0:
            patience = 0.0
        if not self.lock.acquire(True, patience):
            raise StoreError(f"the policy {self.holder.value}; try again soon")
        try:
            self.journal.lifecycle.check()
            self.now = self.journal.now()
        except BaseException:
            self.lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        """Let the next request have its turn."""
        self.lock.release()

    @contextmanager
    def held(self, holder: Holder) -> Iterator[None]:
        """Keep requests waiting, or away; StoreError unless the engine serves."""
        self.holder = holder
        try:
            with self.lock:
                self.journal.lifecycle.check()
                yield
        finally:
            self.holder = Holder.REQUEST


class Acknowledgements:
    """Requests that wait until their events are durable; one callback per commit wakes all of them.

    A commit takes as long for one request as for many. So it begins when half as many wait as the last
    commit served, since most of those clients come back, or after a millisecond.
    """

    def __init__(self, journal: Journal, loop: AbstractEventLoop) -> None:
        """Subscribe to a journal."""
        self._journal = journal
        self._loop = loop
        self._waiting: deque[tuple[int, Acknowledge]] = deque()
        self._timer: TimerHandle | None = None
        self._scheduled = False
        self._served = 0
        self._journal.subscribe(self._committed)

    def _committed(self, durable: int, given_up: int, error: StoreError | None) -> None:
        """Called on the journal's thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, durable, given_up, error)

    def _wake(self, durable: int, given_up: int, error: StoreError | None) -> None:
        # A request that came after a recovery may wait here when the loop gets to the failure before it.
        before, last = len(self._waiting), max(durable, given_up)
        while self._waiting and self._waiting[0][0] <= last:
            seq, acknowledge = self._waiting.popleft()
            acknowledge(None if seq <= durable else error)
        self._served = before - len(self._waiting)

    def when_durable(self, seq: int, acknowledge: Acknowledge) -> None:
        """Call this once the event of this number is durable, or with an error if it never will be."""
        journal = self._journal
        if seq <= journal.durable or not journal.lifecycle.serving:
            acknowledge(journal.refusal(seq))
            return
        self._waiting.append((seq, acknowledge))
        if self._timer is None:
            self._timer = self._loop.call_later(COLLECT, self._commit)
        if len(self._waiting) > self._served // 2 and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._commit)  # after all requests that are ready now

    def _commit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._scheduled = None, False
        self._journal.wake()
