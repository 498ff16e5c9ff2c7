"""Whether what is in memory may be believed: the one place that knows, for a store and for each policy.

    SERVING ──doubt──▶ SUSPECT ──begin──▶ RECOVERING ──serve──▶ SERVING
                          ▲                   │
                          └──────doubt────────┘        fail: from any of them ──▶ FAILED, until a restart

    SERVING ──occupy──▶ IMPORTING ──serve──▶ SERVING    doubt, begin: as from SERVING and SUSPECT

Nothing is acknowledged outside SERVING, and SERVING is entered only when everything in memory was read from
the store after the last doubt.
"""

from __future__ import annotations

from enum import Enum
from threading import Lock

from coterie.errors import StoreError


class Phase(Enum):
    """Whether memory is a function of the store."""

    SERVING = "serving"
    """Memory is what the log says, plus events that are on their way to it in order."""
    SUSPECT = "suspect"
    """A commit failed or a change broke off: memory may hold what is not in the log."""
    RECOVERING = "recovering"
    """The log is being read again."""
    IMPORTING = "importing"
    """A policy learns from an imported log, piece by piece, and takes no other requests until it is done."""
    FAILED = "failed"
    """Reading again does not help, and an operator must decide: events are gone, or another owner writes."""


class Lifecycle:
    """The phase of a store's engine, or of one policy, and the reason if it is not SERVING."""

    def __init__(self) -> None:
        """Start as SERVING: whoever makes one has just read the store."""
        self._changing = Lock()
        self.phase = Phase.SERVING
        self.reason: StoreError | None = None

    @property
    def serving(self) -> bool:
        """Whether requests may be answered."""
        return self.phase is Phase.SERVING

    def check(self) -> None:
        """Raise the reason unless requests may be answered."""
        if self.phase is not Phase.SERVING:
            raise self.error()

    def error(self) -> StoreError:
        """Return the reason as an error of its own: raised by many threads, one would gather tracebacks."""
        why = self.reason
        return StoreError(str(why) if why is not None else "the state is being read from the store again")

    def doubt(self, reason: StoreError) -> None:
        """Stop answering until everything was read again."""
        with self._changing:
            if self.phase is not Phase.FAILED:
                self.phase, self.reason = Phase.SUSPECT, reason

    def begin(self) -> None:
        """Begin to read again; StoreError if that does not help."""
        with self._changing:
            if self.phase is not Phase.FAILED:
                self.phase = Phase.RECOVERING
                return
        raise self.error()

    def occupy(self, reason: StoreError) -> None:
        """Stop answering for an import; StoreError unless requests may be answered."""
        with self._changing:
            if self.phase is Phase.SERVING:
                self.phase, self.reason = Phase.IMPORTING, reason
                return
        raise self.error()

    def check_unoccupied(self) -> None:
        """Raise the reason during an import."""
        if self.phase is Phase.IMPORTING:
            raise self.error()

    def serve(self) -> None:
        """Answer again, if nothing has gone wrong since `begin` or `occupy`; StoreError otherwise."""
        with self._changing:
            if self.phase in (Phase.RECOVERING, Phase.IMPORTING):
                self.phase, self.reason = Phase.SERVING, None
                return
        raise self.error()

    def fail(self, reason: StoreError) -> None:
        """Stop answering until the process starts again."""
        with self._changing:
            self.phase, self.reason = Phase.FAILED, reason

    def end_in_child(self) -> None:
        """Fail in a forked process, which has the memory of its parent but not the threads that commit.

        The lock is made anew: a thread that is not in the child may have held it.
        """
        self._changing = Lock()
        self.fail(
            StoreError("this process was forked, and its parent has the store: open a store of your own")
        )
