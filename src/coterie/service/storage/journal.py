"""The one writer: a thread that owns the store, commits events in groups and tells who waits for them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Condition, Thread
from typing import TypeVar

from coterie.errors import StoreError
from coterie.service.core.log_events import Event
from coterie.service.storage.event_store import EventStore
from coterie.service.storage.postgresql import one_line

R = TypeVar("R")
Subscriber = Callable[[int, StoreError | None], None]
Task = Callable[[], None]


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
