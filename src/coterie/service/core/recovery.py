"""The state of a policy from its store: the latest snapshot that can be read, then the log since."""

from __future__ import annotations

import logging
from time import monotonic
from typing import NamedTuple

from coterie.errors import SnapshotError, StoreError
from coterie.service.core.state import PolicyState
from coterie.service.settings import PolicySettings
from coterie.service.storage import state_snapshots
from coterie.service.storage.event_store import EventStore
from coterie.service.storage.snapshot_writer import LOG_AFTER

logger = logging.getLogger(__name__)


class Recovered(NamedTuple):
    """A state, and the last event in the snapshot that it was read from, with its time."""

    state: PolicyState
    snapshot_seq: int = 0
    snapshot_at: float | None = None


def recover_policy(store: EventStore, name: str) -> Recovered:
    """Return the state of a policy; StoreError if the store cannot be read."""
    state: PolicyState | None = None
    seq, at = 0, None
    began = monotonic()
    for number, manifest in store.manifests(name):
        try:
            state = state_snapshots.load(store, name, manifest)
            seq, at = state.seq, state.at
            if monotonic() - began > LOG_AFTER:
                logger.info("snapshot of policy %s: read in %.0f s", name, monotonic() - began)
            break
        except SnapshotError as error:
            logger.warning("snapshot %s of policy %s is left aside: %s", number, name, error)
    for event in store.read(name, after=seq):
        if state is None:  # the first event of a policy holds its settings
            state = PolicyState(PolicySettings.from_json(event.detail or "{}"))
        state.apply(event)
    if state is None:
        raise StoreError(f"the log of policy {name!r} is empty")
    return Recovered(state, seq, at)
