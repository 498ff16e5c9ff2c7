"""The state of a policy from its store: the latest snapshot that can be read, then the log since."""

from __future__ import annotations

import logging
from time import monotonic
from typing import NamedTuple

from coterie.errors import SnapshotError, StoreError
from coterie.service.core.state import PolicyState
from coterie.service.settings import PolicySettings
from coterie.service.storage import state_snapshots
from coterie.service.storage.event_store import CREATED, DamagedEvent, Event, EventStore, one_line
from coterie.service.storage.snapshot_writer import LOG_AFTER

logger = logging.getLogger(__name__)


class Recovered(NamedTuple):
    """A state, and the last event in the snapshot that it was read from, with its time."""

    state: PolicyState
    snapshot_seq: int = 0
    snapshot_at: float | None = None


class DamagedPolicy(Exception):
    """Raised when the log of a policy cannot be replayed, while the store itself can be read."""


def recover_policy(store: EventStore, name: str) -> Recovered:
    """Return the state of a policy.

    Raises
    ------
    StoreError
        If the store cannot be read now; trying again later may help.
    DamagedPolicy
        If what was read makes no sense. Other policies of the store are not concerned.
    MemoryError
        If there is no room for the policy; there may be later.
    """
    state: PolicyState | None = None
    event: Event | None = None
    try:
        seq, at = 0, None
        if (found := _latest_snapshot(store, name)) is not None:
            state, seq, at = found
        for event in store.read(name, after=seq):
            if state is None:  # the first event of a policy holds its settings
                state = _created(event)
            state.apply(event)
    except DamagedEvent as error:
        raise DamagedPolicy(f"policy {name!r} is out of service: {error}") from error
    except (StoreError, MemoryError):
        raise
    except Exception as error:
        where = "" if event is None else f" at event {event.seq} ({event.kind})"
        raise DamagedPolicy(
            f"policy {name!r} is out of service: its log cannot be replayed{where}: {one_line(error)}"
        ) from error
    if state is None:
        raise DamagedPolicy(f"policy {name!r} is out of service: its log is empty")
    return Recovered(state, seq, at)


def _created(event: Event) -> PolicyState:
    if event.kind != CREATED:
        raise ValueError("the first event of a policy must hold its settings")
    return PolicyState(PolicySettings.from_json(event.detail or "{}"))


def _latest_snapshot(store: EventStore, name: str) -> Recovered | None:
    """Return the state of the latest snapshot that is whole; None if there is none."""
    began = monotonic()
    for number, manifest in store.manifests(name):
        try:
            state = state_snapshots.load(store, name, manifest)
        except SnapshotError as error:
            logger.warning("snapshot %s of policy %s is left aside: %s", number, name, error)
            continue
        if monotonic() - began > LOG_AFTER:
            logger.info("snapshot of policy %s: read in %.0f s", name, monotonic() - began)
        return Recovered(state, state.seq, state.at)
    return None
