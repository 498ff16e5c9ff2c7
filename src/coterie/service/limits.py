"""Limits on what requests can make a service hold, and for how long: they bound its memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields

from coterie.errors import StoreError
from coterie.validation import whole

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a service, which are settings of `coterie serve`; what goes beyond is refused.

    Parameters
    ----------
    policy_limit : int
        Policies of a store.
    experiment_limit : int
        Experiments of a store, with those that have ended.
    user_limit, item_limit : int
        Users of a policy, and items of its catalogue. A user may take 30 kB (AutoCLUB, d = 25).
    waiting_limit : int
        Bytes of the decisions of a policy that wait for their reward, with their timers.
    queue_limit : int
        Bytes of events that are not durable yet; they gather while the store is slow.
    known_item_limit : int
        Items that a policy knows, with those that were removed and ids of inline arms.
    arms_limit : int
        Items or arms that a request for a decision may list, and that a decision may rank; more get 422. The
        catalogue may have more.
    batch_limit : int
        Rewards of one request; more get 422.
    body_limit : int
        Bytes of the body of one request; more get 413.
    bodies_limit : int
        Bytes of the bodies of all requests that are being answered.
    head_limit : int
        Bytes of the first line and the headers of a request, and of the trailers of a chunked body; more get
        431.
    in_flight_limit : int
        Requests that are being answered.
    stream_limit : int
        Web pages that are open.
    export_limit : int
        Exports that are under way.
    connection_limit : int
        Connections, besides a few for health checks. Beyond it the connection that has been idle the longest
        is closed. There are fewer if the process may not open as many files.
    idle_timeout : int
        Seconds after which a connection without requests is closed.
    request_timeout : int
        Seconds in which a whole request must have arrived, and in which a client must read on.
    commit_timeout : int
        Seconds after which a request gets 503 whose event the store has not confirmed.
    """

    policy_limit: int = 100
    experiment_limit: int = 1_000
    user_limit: int = 100_000
    item_limit: int = 1_000_000
    known_item_limit: int = 4_000_000
    waiting_limit: int = 256 * MEBIBYTE
    queue_limit: int = 64 * MEBIBYTE
    arms_limit: int = 1_000
    batch_limit: int = 1_000
    body_limit: int = 4 * MEBIBYTE
    bodies_limit: int = 128 * MEBIBYTE
    head_limit: int = 65_536
    in_flight_limit: int = 1_024
    stream_limit: int = 100
    export_limit: int = 4
    connection_limit: int = 1_000
    idle_timeout: int = 5
    request_timeout: int = 30
    commit_timeout: int = 15

    def __post_init__(self) -> None:
        """Check every limit."""
        bytes_of = ("waiting_limit", "queue_limit", "body_limit", "bodies_limit", "head_limit")
        for one in fields(self):
            most = 86_400 if one.name.endswith("_timeout") else None
            whole(one.name, getattr(self, one.name), 1_024 if one.name in bytes_of else 1, most)


LIMITED = {
    "policy": "policies",
    "experiment": "experiments",
    "user": "users of a policy",
    "item": "items of a catalogue",
    "known_item": "items that a policy knows, removed ones included",
    "waiting": "bytes of decisions that wait for a reward",
    "queue": "bytes of events that the store has not confirmed",
    "arms": "arms of a request",
    "batch": "rewards of a request",
    "body": "bytes of a body",
    "bodies": "bytes of bodies of requests in flight",
    "head": "bytes of headers",
    "in_flight": "requests in flight",
    "stream": "open pages",
    "export": "exports under way",
    "connection": "connections",
}
"""What each limit counts, by its name without `_limit`, which is its label in the metrics."""


class LimitReached(StoreError):
    """Raised when a request would go beyond a limit, named as in `LIMITED`; nothing has changed."""

    def __init__(self, limit: str, most: int) -> None:
        """Say which limit it is."""
        super().__init__(f"the limit of {most} {LIMITED[limit]} is reached ({limit}_limit)")
        self.limit = limit


class Limiter:
    """Limits, and how often each of them was reached.

    Attributes
    ----------
    refusals : Counter
        Requests that were refused, by the limit's name in `LIMITED`.
    """

    def __init__(self, limits: Limits) -> None:
        """Start without refusals."""
        self.limits = limits
        self.refusals: Counter[str] = Counter()
        self._most = {name: int(getattr(limits, f"{name}_limit")) for name in LIMITED}

    def most(self, name: str) -> int:
        """Return a limit."""
        return self._most[name]

    def check(self, name: str, held: int, adding: int = 1) -> None:
        """Refuse to add to what is held if that is more than the limit."""
        if held + adding > self._most[name]:
            raise self.reached(name)

    def reached(self, name: str) -> LimitReached:
        """Count a refusal; return its error."""
        self.refusals[name] += 1
        return LimitReached(name, self._most[name])
