"""The way of events to the store: requests take turns, one thread commits, and callers wait for it."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Condition, RLock, Thread
from typing import TypeVar

from coterie.errors import StoreError
from coterie.service.storage.event_store import Event, EventStore, one_line

R = TypeVar("R")
Subscriber = Callable[[int, StoreError | None], None]
Task = Callable[[], None]
Acknowledge = Callable[[StoreError | None], None]
COLLECT = 0.001
"""Seconds that a commit waits for more requests at most."""


class Journal:
    """Events on their way to the store.

    `append` only queues; the thread commits whatever is queued, in order, in one transaction. When a commit
    fails nothing of it is acknowledged, nothing more is taken, and `failure` says why, until `reopen`.
    """

    def __init__(self, store: EventStore) -> None:
        """Start the thread of an open store."""
        self.store = store
        self._changed = Condition()
        self._queue: deque[Event] = deque()
        self._tasks: list[Task] = []
        self._subscribers: list[Subscriber] = []
        self._closing = self._idle = False
        self._lost: list[tuple[int, int]] = []
        self.failure: StoreError | None = None
        self.commits = 0
        self.commit_seconds = 0.0
        self.last, self._start = store.last()
        self.durable = self.last
        self._set_clock()
        self._thread = Thread(target=self._work, name="coterie-journal", daemon=True)
        self._thread.start()

    def _set_clock(self) -> None:
        """Time runs on from the last event, even if the clock was set back since."""
        self._start = max(time.time(), self._start)
        self._ticks = time.monotonic()

    def now(self) -> float:
        """Seconds since 1970; never goes back, whatever happens to the clock."""
        return self._start + time.monotonic() - self._ticks

    @property
    def next_seq(self) -> int:
        """The number of the next event."""
        return self.last + 1

    @property
    def depth(self) -> int:
        """Events that are not durable yet."""
        return self.last - self.durable

    def append(self, event: Event) -> None:
        """Queue an event whose number is `last + 1`; it is committed after the next `wake` or `wait`.

        Only who holds the engine's lock appends.
        """
        self.last = event.seq
        self._queue.append(event)

    def wake(self) -> None:
        """Let the thread commit what is queued, unless it is at work and will see it anyway."""
        if self._idle and self._queue:
            with self._changed:
                self._changed.notify_all()

    def pass_over(self, seq: int) -> None:
        """Give out no number up to this one: a task has added it to the store."""
        with self._changed:
            self.last, self.durable = max(self.last, seq), max(self.durable, seq)

    def wait(self, seq: int) -> None:
        """Return when everything up to this number is durable; StoreError if it will not be."""
        with self._changed:
            self._changed.notify_all()
            while seq > self.durable and self.failure is None and not self.is_lost(seq):
                self._changed.wait()
            if self.is_lost(seq) or seq > self.durable:
                raise self.failure or unavailable("the commit failed")

    def is_lost(self, seq: int) -> bool:
        """Was the event of this number given up, since its commit failed?"""
        return bool(self._lost) and any(low < seq <= high for low, high in self._lost)

    def flush(self) -> None:
        """Return when the store has everything that happened so far, so that it can be read there."""
        if self.depth:
            self.run(lambda: None)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call this after every commit, on the journal's thread: with what is durable now, or an error."""
        self._subscribers.append(subscriber)

    def run(self, task: Callable[[], R]) -> R:
        """Do something with the store on the journal's thread, after all that is queued; its result.

        Whatever goes wrong counts as a failed commit.
        """
        return self._on_thread(task, self._perform)

    def attempt(self, task: Callable[[], R]) -> R:
        """Do something on the journal's thread that no event depends on; StoreError if it fails.

        Its transaction is undone then, and events go on.
        """
        return self._on_thread(task, self._try)

    def reopen(self) -> None:
        """Connect again after a failure; numbers that were given out are not given out again."""
        self._on_thread(self._reconnect, lambda task: task())

    def _on_thread(self, task: Callable[[], R], perform: Callable[[Callable[[], R]], R]) -> R:
        """The result of a task, or its error, once the thread has come to it."""
        outcome: Future[R] = Future()

        def come() -> None:
            try:
                outcome.set_result(perform(task))
            except StoreError as error:
                outcome.set_exception(error)

        with self._changed:
            if self._closing:
                raise unavailable("it is closed")
            self._tasks.append(come)
            self._changed.notify_all()
        return outcome.result()

    def _perform(self, task: Callable[[], R]) -> R:
        if self.failure is not None:
            raise self.failure
        try:
            return task()
        except Exception as error:
            raise self._fail(error) from None

    def _try(self, task: Callable[[], R]) -> R:
        if self.failure is not None:
            raise self.failure
        try:
            return task()
        except Exception as error:
            raise StoreError(one_line(error)) from None

    def _reconnect(self) -> None:
        self.store.open()
        stored, at = self.store.last()
        with self._changed:
            self._start, self._ticks = max(self.now(), at), time.monotonic()
            self.last = self.durable = max(self.last, stored) + 1  # after all that was lost
            self.failure = None

    def close(self) -> None:
        """Commit what is queued, end the thread, close the store."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self.store.close()

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
        if self.failure is not None:
            self._fail(self.failure)
            return
        began = time.perf_counter()
        try:
            self.store.append(events)
        except Exception as error:
            self._fail(error)
            return
        self.commits += 1
        self.commit_seconds += time.perf_counter() - began
        with self._changed:
            self.durable = events[-1].seq
            self._changed.notify_all()
        self._tell(None)

    def _fail(self, error: Exception) -> StoreError:
        """Refuse all that was not durable, and everything from now on."""
        with self._changed:
            self.failure = error if isinstance(error, StoreError) else unavailable(one_line(error))
            self._lost = [*self._lost[-100:], (self.durable, self.last)]
            self._queue.clear()
            self._changed.notify_all()
        self._tell(self.failure)
        return self.failure

    def _tell(self, error: StoreError | None) -> None:
        for subscriber in self._subscribers:
            subscriber(self.durable, error)


def unavailable(why: str) -> StoreError:
    """The store cannot be written; the sentence says that nothing was counted."""
    return StoreError(f"the store cannot be written now, and nothing was counted: {why}")


class RequestLock:
    """One request at a time, as long as the store can be written: `with requests: ...`.

    A request changes the state in memory before its event is durable. When a commit fails, or a change breaks
    off halfway, memory is no longer a function of the log: it is `suspect`, and recovered before the next
    request.

    Parameters
    ----------
    journal : Journal
        Where events go.
    patience : float
        Seconds that a request waits for its turn; −1 waits for ever.
    recover : callable
        Reads the state from the store again.

    Attributes
    ----------
    now : float
        The time of the request whose turn it is: all that it does happens at once.
    suspect, rewriting, copying : bool
        The state may be ahead of the log; a policy learns anew from its log; a snapshot's copy is finished.
    """

    def __init__(self, journal: Journal, patience: float, recover: Callable[[], None]) -> None:
        """Start without a request."""
        self.journal = journal
        self._patience, self._recover = patience, recover
        self.lock = RLock()
        self.now = 0.0
        self.suspect = self.rewriting = self.copying = False
        self.change = Change(self)

    def __enter__(self) -> None:
        """Take the lock, if the store can be written."""
        patience = self._patience
        if self.copying:
            patience = -1  # this takes a moment, and then the request can be answered
        elif self.rewriting and patience > 0:
            patience = 0.0
        if not self.lock.acquire(True, patience):
            busy = "is learning anew from its log" if self.rewriting else "is busy"
            raise StoreError(f"the policy {busy}; try again soon")
        try:
            if self.journal.failure is not None:
                raise self.journal.failure
            if self.suspect:
                self._recover()
            self.now = self.journal.now()
        except BaseException:
            self.lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        """Let the next request have its turn."""
        self.lock.release()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep requests waiting, however little patience they have; StoreError if the state is suspect."""
        self.copying = True
        try:
            with self.lock:
                if self.suspect:
                    raise StoreError(
                        "a change has broken off, and the state is read from the log again first"
                    )
                yield
        finally:
            self.copying = False


class Change:
    """`with requests.change`: the state and its event change together; an error makes the state suspect."""

    def __init__(self, requests: RequestLock) -> None:
        """Guard changes of a request."""
        self._requests = requests

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Distrust the state in memory after an error."""
        if kind is not None:
            self._requests.suspect = True


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

    def _committed(self, durable: int, error: StoreError | None) -> None:
        """Called on the journal's thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, durable, error)

    def _wake(self, durable: int, error: StoreError | None) -> None:
        before = len(self._waiting)
        while self._waiting and (error is not None or self._waiting[0][0] <= durable):
            seq, acknowledge = self._waiting.popleft()
            acknowledge(None if seq <= durable else error)
        self._served = before - len(self._waiting)

    def when_durable(self, acknowledge: Acknowledge) -> None:
        """Call this once everything that happened so far is durable, or with an error if it never will be."""
        journal = self._journal
        seq = journal.last
        if journal.failure is not None or journal.is_lost(seq):
            acknowledge(journal.failure or unavailable("the commit failed"))
            return
        if seq <= journal.durable:
            acknowledge(None)
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
