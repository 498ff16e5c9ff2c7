"""The one module of tests that reaches inside the library: a rename there changes this file alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event as Signal
from time import sleep
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import coterie.datasets.lines
import coterie.datasets.prepare
import coterie.datasets.sources
import coterie.environments.population
import coterie.environments.stochastic
import coterie.experiments.fingerprint
import coterie.experiments.run_store
import coterie.simulation.rand_index
import coterie.simulation.simulator
from coterie import AutoCLUB, LinearBandit, Recommender
from coterie.datasets import Dataset
from coterie.policies.autoclub.autoclub_learner import AutoClubLearner
from coterie.policies.kernel.learner import Learner
from coterie.service.core import decisions, live_policy, recovery
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import LivePolicy
from coterie.service.http import decision_routes
from coterie.service.storage import event_store, postgresql, snapshot_writer
from coterie.service.storage.event_store import EventStore
from coterie.service.storage.journal import Holder, PendingResult
from coterie.service.storage.snapshot_writer import DiskCopy
from coterie.service.storage.sqlite import SQLiteStore


def read_blocks_of(size: int, patch: pytest.MonkeyPatch) -> list[int]:
    """Read files of lines in blocks of so many bytes; the list fills with the sizes of those taken apart."""
    taken: list[int] = []
    block = coterie.datasets.lines.LineBlock
    numbered = block.numbered

    def noted(self: coterie.datasets.lines.LineBlock) -> object:
        taken.append(len(self.data))
        return numbered(self)

    patch.setattr(coterie.datasets.lines, "BLOCK", size)
    patch.setattr(block, "numbered", noted)
    return taken


def hash_chunks_of(size: int, patch: pytest.MonkeyPatch) -> None:
    """Hash files in chunks of so many bytes."""
    patch.setattr(coterie.datasets.sources, "CHUNK", size)


def forbid_making_datasets(patch: pytest.MonkeyPatch) -> None:
    """Fail where a dataset is made that could have come from the cache."""

    def build(*_: object) -> Dataset:
        raise AssertionError("made again")

    patch.setattr(coterie.datasets.prepare, "build", build)


def without_table_of_means(patch: pytest.MonkeyPatch) -> None:
    """Let no table of users and items be made: means are computed round by round."""
    for module in (coterie.environments.population, coterie.environments.stochastic):
        patch.setattr(module, "MOST_ENTRIES", 50)


def remember_widths_of(size: int, patch: pytest.MonkeyPatch) -> None:
    """Remember widths of lasting items in at most so many bytes."""
    patch.setattr(coterie.simulation.simulator, "MOST_REMEMBERED", size)


def count_labels_in(room: int, patch: pytest.MonkeyPatch) -> None:
    """Count pairs of labels in a table of at most so many entries for each user."""
    patch.setattr(coterie.simulation.rand_index, "ROOM", room)


def judge_clusters_for(seconds: float, patch: pytest.MonkeyPatch) -> None:
    """Let the comparison of clusters with the truth take so many seconds."""

    def judged(*_: object) -> tuple[int, float]:
        sleep(seconds)
        return 1, 1.0

    patch.setattr(coterie.simulation.simulator, "judged", judged)


def change_all_code(patch: pytest.MonkeyPatch) -> None:
    """Let every run be one of another version of the code."""
    patch.setattr(coterie.experiments.run_store, "fingerprint", lambda *about: "another")


def change_our_code(patch: pytest.MonkeyPatch) -> None:
    """Let the code of this library be another, but not that of policies from outside."""
    patch.setattr(coterie.experiments.fingerprint, "_ours", lambda *about: "changed")


# The service.


def engine_of(recommender: Recommender) -> PolicyEngine:
    """The engine of a recommender."""
    return recommender._engine


def live_of(recommender: Recommender) -> LivePolicy:
    """The policy of a recommender while it serves."""
    return recommender._live


def let_searches_take_a_thread(patch: pytest.MonkeyPatch) -> None:
    """Let the service search catalogues of any size in its thread for that."""
    patch.setattr(decision_routes, "MANY_NUMBERS", 1)


def wait_in_searches(patch: pytest.MonkeyPatch, begun: Signal, go_on: Signal) -> None:
    """Let a search of a catalogue say that it has begun, and then wait."""
    recommend = decisions.CatalogueOffer.recommend

    def waiting(*arguments: Any) -> list[int]:
        begun.set()
        assert go_on.wait(120)
        return recommend(*arguments)

    patch.setattr(decisions.CatalogueOffer, "recommend", waiting)


def read_pages_of(size: int, patch: pytest.MonkeyPatch) -> None:
    """Read the log in pages of about so many bytes."""
    patch.setattr(event_store, "PAGE_BYTES", size)


def answers_of(store: EventStore, patch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of vectors in each answer of the store from now on."""
    sizes: list[int] = []
    query = store.query

    def noted(*arguments: Any) -> list[tuple[Any, ...]]:
        found = query(*arguments)
        sizes.append(sum(len(value) for row in found for value in row if isinstance(value, bytes)))
        return found

    patch.setattr(store, "query", noted)
    return sizes


def known_items(recommender: Recommender) -> tuple[str, ...]:
    """All items that a recommender has heard of, in the order of their numbers."""
    return recommender._live.state.items.known.ids


def store_of(recommender: Recommender) -> EventStore:
    """The store of a recommender."""
    return recommender._engine.store


def take_snapshot(recommender: Recommender) -> None:
    """Write a snapshot now."""
    recommender._live.snapshots.take()


def snapshot_seqs(store: EventStore) -> list[int]:
    """The last event of each snapshot, the latest first."""
    return [seq for name in store.policies() for seq, _ in store.manifests(name)]


def drop_snapshots(store: EventStore) -> None:
    """Let the whole log be replayed at the next start."""
    with store.transaction():
        for name in store.policies():
            store._drop_snapshots(name)


def pass_time(recommender: Recommender, seconds: float) -> None:
    """Let the recommender's clock run ahead."""
    pass_engine_time(recommender._engine, seconds)


def pass_engine_time(engine: PolicyEngine, seconds: float) -> None:
    """Let the clock of an engine run ahead."""
    engine.journal._start += seconds


def at_time(recommender: Recommender, at: float) -> AbstractContextManager[Any]:
    """Stop the recommender's clock at a time."""
    return patch.object(recommender._engine.journal, "now", return_value=at)


def expire_one(recommender: Recommender, decision: str) -> bool:
    """Count the default of one decision if its time is over."""
    with recommender._engine.requests:
        return recommender._live._expire_one(decision)


def keep_house_every(engine: PolicyEngine, seconds: float) -> None:
    """Let the engine look after timers and snapshots more or less often."""
    engine._tick = seconds


def stop_housekeeping(engine: PolicyEngine) -> None:
    """Let nothing expire by itself any more, and let no snapshot be taken, not even a last one."""
    engine._stop.set()
    engine._keeper.join()


def never_keep_house(patching: pytest.MonkeyPatch) -> None:
    """Start engines without housekeeping."""
    patching.setattr(PolicyEngine, "_keep_house", lambda engine: None)


def abandon(recommender: Recommender) -> None:
    """Stop without a last snapshot, as after a crash between two commits."""
    recommender._closing.detach()
    recommender._engine.close(snapshot=False)


def release(recommender: Recommender) -> None:
    """Close a recommender whose housekeeping was stopped, without a last snapshot."""
    recommender._closing.detach()
    recommender._engine.journal.close()


def is_rewriting(engine: PolicyEngine) -> bool:
    """Is a policy learning anew from its log?"""
    return engine.requests.holder is Holder.REWRITE


def give_up_after(patching: pytest.MonkeyPatch, seconds: float) -> None:
    """Wait less long for a PostgreSQL that does not answer."""
    patching.setattr(postgresql, "LONGEST_STATEMENT", seconds)


def release_lock(store: Any) -> None:
    """Let another process open the store, too."""
    if isinstance(store, SQLiteStore):
        assert store._lock is not None
        store._lock.release()
    else:
        store._writer.execute("SELECT pg_advisory_unlock_all()")


def connection_of(store: Any) -> Any:
    """The connection of a store that writes."""
    return store._writer


def replace_choice(patching: pytest.MonkeyPatch, choose: Callable[..., Any]) -> None:
    """Let another function decide."""
    patching.setattr(live_policy, "choose", choose)


def before_recovery(patching: pytest.MonkeyPatch, call: Callable[[], object]) -> None:
    """Call something each time that a policy is read from its store anew."""
    real = recovery.recover_policy

    def recover(*arguments: Any) -> Any:
        call()
        return real(*arguments)

    patching.setattr(live_policy, "recover_policy", recover)


def before_pieces(patching: pytest.MonkeyPatch, call: Callable[[], object]) -> None:
    """Call something before each piece of an import, on its thread."""
    real = LivePolicy._import_some

    def call_and_import(*arguments: Any) -> None:
        call()
        real(*arguments)

    patching.setattr(LivePolicy, "_import_some", call_and_import)


def during_copy(
    patching: pytest.MonkeyPatch,
    *,
    prepared: Callable[[], object] = lambda: None,
    finishing: Callable[[], object] = lambda: None,
) -> None:
    """Call something when most of a policy is copied for a snapshot, and while the copy is finished."""
    prepare, finish = DiskCopy.prepare, DiskCopy.finish

    def prepare_and_call(self: DiskCopy, look: Callable[[], AbstractContextManager[Learner]]) -> None:
        prepare(self, look)
        prepared()

    def call_and_finish(self: DiskCopy, learner: Learner) -> Any:
        finishing()
        return finish(self, learner)

    patching.setattr(DiskCopy, "prepare", prepare_and_call)
    patching.setattr(DiskCopy, "finish", call_and_finish)


@contextmanager
def broken_change(recommender: Recommender) -> Iterator[None]:
    """Break off a change of the state halfway."""
    try:
        with recommender._live._change:
            yield
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass


def copy_pieces_of(size: int, patching: pytest.MonkeyPatch) -> None:
    """Copy a policy for a snapshot in pieces of so many bytes."""
    patching.setattr(snapshot_writer, "PIECE", size)


def pause_between_snapshots(first: float, longest: float, patching: pytest.MonkeyPatch) -> None:
    """Try a snapshot that failed again after other pauses."""
    patching.setattr(snapshot_writer, "FIRST_PAUSE", first)
    patching.setattr(snapshot_writer, "LONGEST_PAUSE", longest)


def free_disk_space(size: int, patching: pytest.MonkeyPatch) -> None:
    """Let the disk for copies have so many bytes free."""
    patching.setattr(snapshot_writer, "disk_usage", lambda folder: SimpleNamespace(free=size))


def refuse_temporary_files(error: OSError, patching: pytest.MonkeyPatch) -> None:
    """Let no temporary file be made for a copy."""

    def refuse(**_: object) -> None:
        raise error

    patching.setattr(snapshot_writer, "TemporaryFile", refuse)


def break_expiry_once(patching: pytest.MonkeyPatch) -> None:
    """Let the first look at timers fail as nobody expects it to."""
    expire, broken = LivePolicy.expire, iter([True])

    def expire_later(self: LivePolicy) -> PendingResult[int]:
        if next(broken, False):
            raise RuntimeError("broken")
        return expire(self)

    patching.setattr(LivePolicy, "expire", expire_later)


def before_commits(engine: PolicyEngine, call: Callable[[], object]) -> None:
    """Call something on the journal's thread before each commit."""
    append = engine.store.append

    def call_and_append(events: Any) -> None:
        call()
        append(events)

    patch.object(engine.store, "append", call_and_append).start()


def age_commit(engine: PolicyEngine, seconds: float) -> None:
    """Let the commit under way have waited longer."""
    since = engine.journal._committing_since
    assert since is not None
    engine.journal._committing_since = since - seconds


def learner_of(policy: LinearBandit) -> Any:
    """The compiled learner of a policy."""
    return policy.learner


def replace_learner(policy: LinearBandit, learner: Learner) -> None:
    """Let a policy decide and learn by another learner."""
    policy._learner = learner


def keep_posteriors_of(policy: AutoCLUB, users: int) -> Any:
    """Let a new AutoCLUB keep the posteriors of only so many users; its learner."""
    learner = AutoClubLearner(
        policy.n_users,
        policy.dim,
        ridge=policy.arguments["ridge"],
        schedule=policy.exploration,
        generator=policy.generator,
        slots=users,
    )
    learner.know_items()
    replace_learner(policy, learner)
    return learner


def array_names(policy: LinearBandit) -> list[str]:
    """The names of the arrays of a policy's state."""
    return list(policy.learner.names())


def state_array(policy: LinearBandit, name: str) -> np.ndarray[Any, Any]:
    """One array of a policy's state, in the policy's own memory."""
    return policy.learner.array(name)


def state_arrays(policy: LinearBandit) -> dict[str, np.ndarray[Any, Any]]:
    """Copies of all arrays of a policy's state."""
    return policy.learner.arrays()


def state_numbers(policy: LinearBandit) -> dict[str, float]:
    """The single numbers of a policy's state."""
    return policy.learner.numbers()


def allocated_bytes(policy: LinearBandit) -> dict[str, int]:
    """Bytes of each array of a policy's state, spare capacity included."""
    return policy.learner.held()


def set_rounds(policy: LinearBandit, rounds: int) -> None:
    """Let a policy have absorbed so many rewards."""
    policy.learner.rounds = rounds
