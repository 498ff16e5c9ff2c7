"""Takes snapshots of a policy while it serves: when one is due, and again later where one failed.

The policy's arrays are first copied to temporary files, piece by piece, and requests are answered between the
pieces. Then, while nothing changes, all of it is compared with the policy, and what has changed meanwhile is
copied again. So a snapshot takes no memory, and requests wait for the comparison alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from errno import ENOSPC
from functools import partial
from math import prod
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryFile, gettempdir
from threading import Lock
from time import monotonic
from typing import IO

import numpy as np

from coterie.errors import StoreError
from coterie.policies.array_files import Array, FileArray
from coterie.policies.kernel.learner import Learner
from coterie.service.core.lifecycle import Lifecycle
from coterie.service.core.state import PolicyState
from coterie.service.storage import state_snapshots
from coterie.service.storage.event_store import one_line
from coterie.service.storage.journal import Holder, RequestLock

PIECE = 2**20
"""Bytes that are copied or compared at a time."""
LOG_AFTER = 2.0
"""Seconds after which the log says how far a snapshot is that is written or read."""
FIRST_PAUSE = 1.0
"""Seconds until a snapshot that failed is tried again; twice as long after each further failure."""
LONGEST_PAUSE = 300.0
"""Seconds that pass at most between two attempts."""
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Retry:
    """Attempts at a snapshot that failed since the last one was written, and when to try again."""

    failures: int = 0
    reason: str | None = None
    pause: float = 0.0
    _next: float = 0.0

    def fail(self, reason: str) -> None:
        """Count a failed attempt."""
        self.failures, self.reason = self.failures + 1, reason
        self.pause = min(2 * self.pause, LONGEST_PAUSE) if self.pause else FIRST_PAUSE
        self._next = monotonic() + self.pause

    def is_due(self) -> bool:
        """Tell whether enough time has passed since the last failure."""
        return monotonic() >= self._next


class DiskCopy:
    """The arrays of a learner in files that are gone when they are closed, or the process ends.

    Parameters
    ----------
    folder : Path, optional
        A folder on a disk with room for the policy; the system's for temporary files by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Start without files."""
        self._folder, self._opened = folder, ExitStack()
        self._files: dict[str, IO[bytes]] = {}

    def __enter__(self) -> DiskCopy:
        """Close all files afterwards."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all files."""
        self._opened.close()

    def prepare(self, look: Callable[[], AbstractContextManager[Learner]]) -> None:
        """Copy each piece as it is while `look` lets nothing change; the whole is of no single moment.

        OSError if there is no room for the copy and for as much again, which a snapshot of it may take: the
        log is on the same disk, and must not find it full.
        """
        with look() as learner:
            sizes = {name: learner.array(name).nbytes for name in learner.names()}
        needed, free = 2 * sum(sizes.values()), disk_usage(self._folder or gettempdir()).free
        if needed > free:
            raise OSError(ENOSPC, f"{needed} bytes of disk are needed, and {free} are free")
        for name in sizes:
            file, start = self._file(name), 0
            while True:  # an array may grow or move between two pieces: it is looked up for each
                with look() as learner:
                    piece = next(row_pieces(learner.array(name), start), np.empty(0)).copy()
                if not len(piece):
                    break
                file.write(piece.data)
                start += len(piece)

    def finish(self, learner: Learner) -> dict[str, FileArray]:
        """Write what has changed since; the caller sees to it that nothing changes meanwhile."""
        return {name: self._finish(name, learner.array(name)) for name in learner.names()}

    def _finish(self, name: str, array: Array) -> FileArray:
        file, place = self._file(name), 0
        for piece in row_pieces(array):
            content = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
            file.seek(place)
            if not np.array_equal(np.frombuffer(file.read(len(content)), np.uint8), content):
                file.seek(place)
                file.write(content.data)
            place += len(content)
        file.truncate(place)
        return FileArray(file, array.shape, array.dtype)

    def _file(self, name: str) -> IO[bytes]:
        if name not in self._files:
            self._files[name] = self._opened.enter_context(TemporaryFile(dir=self._folder))
        return self._files[name]


def row_pieces(array: Array, start: int = 0) -> Iterator[Array]:
    """Return the rows of an array from one on, about a megabyte at a time; views."""
    rows = max(1, PIECE // max(1, array.itemsize * prod(array.shape[1:])))
    return (array[k : k + rows] for k in range(start, len(array), rows))


class SnapshotWriter:
    """Writes the snapshots of one policy; events go on whether or not it can.

    Parameters
    ----------
    policy : str
        The policy's name.
    state : callable
        Returns its state, which may be another one after a recovery.
    requests : RequestLock
        Held for moments while the state is copied.
    lifecycle : Lifecycle
        Says whether the state may be believed.
    seq, at : int, float or None
        The last event in the latest snapshot, and when it happened.

    Attributes
    ----------
    epoch : int
        Counts the times that the log of the policy was rewritten or read again. A snapshot whose copy was
        begun in an earlier epoch may hold what is no longer in the log, and is thrown away.
    retry : Retry
        Failures since the latest snapshot.
    """

    def __init__(
        self,
        policy: str,
        state: Callable[[], PolicyState],
        requests: RequestLock,
        lifecycle: Lifecycle,
        *,
        seq: int = 0,
        at: float | None = None,
    ) -> None:
        """Write nothing yet."""
        self._policy, self._state, self._requests = policy, state, requests
        self._lifecycle = lifecycle
        self._journal, self._store = requests.journal, requests.journal.store
        self._taking = Lock()
        self.seq, self.at = seq, at
        self.epoch = 0
        self.retry = Retry()

    def take_due(self, every: int) -> None:
        """Take a snapshot after `every` new events, unless one has failed just now; never raises."""
        if self._store.durable and self._state().seq - self.seq >= every and self.retry.is_due():
            with suppress(StoreError):
                self.take()

    def take(self) -> None:
        """Write a snapshot; requests go on meanwhile.

        Raises
        ------
        StoreError
            If it cannot be written. The log says why, and `retry` when to try again.
        """
        # One at a time: removing unreferenced chunks would remove those of another snapshot under way.
        with self._taking:
            try:
                with DiskCopy(self._store.folder) as copy:
                    self._write(copy)
            except Exception as error:  # whatever it was, timers and the next attempt must go on
                self._fail(error)
                raise StoreError(f"no snapshot of policy {self._policy!r}: {one_line(error)}") from error
            if self.retry.failures:
                logger.info(
                    "snapshot of policy %s: written, after %d failures", self._policy, self.retry.failures
                )
                self.retry = Retry()

    def _fail(self, error: Exception) -> None:
        """Say so, and give back the room that chunks have taken."""
        self.retry.fail(one_line(error))
        logger.warning(
            "snapshot of policy %s failed, nothing is lost, and it is tried again in %.0f s: %s",
            self._policy,
            self.retry.pause,
            self.retry.reason,
            exc_info=None if isinstance(error, OSError) else error,
        )
        with suppress(StoreError):
            # Removing rows writes as much as adding them did, for which a full disk has no room.
            self._journal.attempt(self._store.reuse_log)
            self._remove_unreferenced()

    def _write(self, copy: DiskCopy) -> None:
        copy.prepare(self._look)
        with self._requests.held(Holder.COPY):
            self._lifecycle.check()  # what is in doubt must not outlive its recovery
            state, epoch, at = self._state(), self.epoch, self._journal.now()
            with state.policy.lock:
                captured = state_snapshots.capture(state, copy.finish(state.policy.learner))
        arrays = state_snapshots.arrays_of(captured)
        manifest = state_snapshots.write_chunks(
            arrays, self._store.chunk_digests(self._policy), self._put(epoch)
        )

        def complete() -> None:
            if self.epoch == epoch:
                self._store.put_manifest(self._policy, captured.seq, manifest.encode())
                self.seq, self.at = captured.seq, at

        self._journal.attempt(complete)
        with suppress(StoreError):  # the snapshot is written; the next one removes what is left
            self._remove_unreferenced()

    @contextmanager
    def _look(self) -> Iterator[Learner]:
        """Lend the learner while nothing changes."""
        self._journal.lifecycle.check()  # the thread that copies is the one that recovers
        with self._requests.lock:
            policy = self._state().policy
            with policy.lock:
                yield policy.learner

    def _put(self, epoch: int) -> Callable[[Sequence[tuple[bytes, bytes]]], None]:
        """Return what writes chunks, and logs how far it is where that takes long."""
        logged, written = monotonic(), 0

        def put_now(chunks: Sequence[tuple[bytes, bytes]]) -> None:
            if self.epoch != epoch:  # a removed user may be in this copy, and must not come back
                raise StoreError("the log was changed meanwhile")
            self._store.put_chunks(self._policy, chunks)

        def put(chunks: Sequence[tuple[bytes, bytes]]) -> None:
            nonlocal logged, written
            self._journal.attempt(partial(put_now, chunks))
            written += sum(len(content) for _, content in chunks)
            if monotonic() - logged > LOG_AFTER:
                logged = monotonic()
                logger.info("snapshot of policy %s: %d MB are written", self._policy, written // 10**6)

        return put

    def _remove_unreferenced(self) -> None:
        for digests in state_snapshots.unreferenced_chunks(self._store, self._policy):
            self._journal.attempt(partial(self._store.remove_chunks, self._policy, digests))
