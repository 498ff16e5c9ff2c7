"""A copy of a policy on disk, made while it serves, is the policy as it was when the copy was finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import sleep

import numpy as np
import pytest

import coterie
from coterie import LinearBandit, Recommender
from coterie.errors import StoreError
from coterie.policies.array_files import Array, FileArray
from coterie.policies.kernel.learner import Learner
from coterie.service.core.engine import PolicyEngine
from coterie.service.settings import PolicySettings
from coterie.service.storage.snapshot_writer import DiskCopy
from coterie.service.storage.sqlite import SQLiteStore
from inspection import (
    abandon,
    copy_pieces_of,
    during_copy,
    live_of,
    refuse_temporary_files,
    snapshot_seqs,
    store_of,
    take_snapshot,
)
from service.shops import arms, same_state

POLICIES: dict[str, Callable[[], LinearBandit]] = {
    "LinUCBInd": lambda: coterie.LinUCBInd(70, 3, seed=1),
    "CLUB": lambda: coterie.CLUB(70, 3, confidence=coterie.Tuned(alpha=0.2, beta=0.1), seed=1),
    "AutoCLUB": lambda: coterie.AutoCLUB(70, 3, seed=1),
}


def held(array: FileArray) -> Array:
    content = b"".join(piece.tobytes() for piece in array.pieces())
    return np.frombuffer(content, array.dtype).reshape(array.shape)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("piece", [1, 1_000, 2**20])
def test_what_changes_between_pieces_is_written_again(
    name: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users learn and join meanwhile: rows of edges become longer, and arrays move."""
    copy_pieces_of(piece, monkeypatch)
    policy, rng, looks = POLICIES[name](), np.random.default_rng(0), 0

    def learn(n: int) -> None:
        users = rng.integers(policy.n_users, size=n)
        policy.update_many(users, rng.normal(size=(n, 3)), rng.normal(size=n))

    @contextmanager
    def look() -> Iterator[Learner]:
        nonlocal looks
        looks += 1
        if looks % 5 == 0 and looks < 400:
            policy.add_users(1)
            learn(3)
        yield policy.learner

    learn(500)
    with DiskCopy(tmp_path) as copy:
        copy.prepare(look)
        learn(2)
        found = {key: held(array) for key, array in copy.finish(policy.learner).items()}
    wanted = policy.learner.arrays()
    assert list(found) == list(wanted)
    for key, array in wanted.items():
        assert found[key].dtype == array.dtype
        assert np.array_equal(found[key], array), key
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_has_become_smaller_is_copied_as_it_is(tmp_path: Path) -> None:
    """A user was removed, and it learnt anew."""
    before, after = coterie.LinUCBInd(70, 3), coterie.LinUCBInd(69, 3)

    @contextmanager
    def look() -> Iterator[Learner]:
        yield before.learner

    with DiskCopy(tmp_path) as copy:
        copy.prepare(look)
        found = {key: held(array) for key, array in copy.finish(after.learner).items()}
    assert all(np.array_equal(found[key], array) for key, array in after.learner.arrays().items())


def test_a_snapshot_holds_what_was_learnt_while_it_was_copied_and_nothing_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log goes on where the snapshot ends: a reward in both, or in neither, would show."""

    class TeachesMeanwhile(SQLiteStore):
        """Rewards come after the copy is finished, before its chunks are written."""

        def chunk_digests(self, policy: str) -> set[bytes]:
            if teaching:
                teaching.pop()
                teach(5)
            return super().chunk_digests(policy)

    teaching = [True]
    one, other = Recommender(dim=3, store=TeachesMeanwhile(tmp_path / "a.db")), Recommender(dim=3)
    rewards = iter(range(1_000))

    def teach(n: int) -> None:
        for _ in range(n):
            k = next(rewards)
            for each in (one, other):
                each.feedback(f"u{k % 7}", float(np.sin(k)), x=arms(k)[0], feedback_id=f"f{k}")

    during_copy(monkeypatch, prepared=lambda: teach(5))
    teach(20)
    take_snapshot(one)
    taken = live_of(one).snapshots.seq
    assert taken == live_of(one).state.seq - 5
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert live_of(again).snapshots.seq == taken
        assert same_state(again, other)


def test_a_service_keeps_requests_waiting_while_a_copy_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little patience it has with other requests."""
    engine = PolicyEngine(SQLiteStore(tmp_path / "a.db"), patience=0.01)
    live, begun = engine.create("shop", PolicySettings(dim=3)).result, Event()

    def finish_late() -> None:
        begun.set()
        sleep(0.2)

    during_copy(monkeypatch, finishing=finish_late)
    copying = Thread(target=engine.snapshot, args=("shop",))
    copying.start()
    begun.wait()
    live.decide("ann", arms=arms(0))
    copying.join()
    assert live.snapshots.seq == live.state.seq - 1
    with engine.requests.lock, ThreadPoolExecutor() as other:
        refused = other.submit(live.decide, "ann", arms=arms(0)).exception()
    assert str(refused) == "the policy is busy; try again soon"
    engine.close()


def test_without_room_for_a_copy_there_is_no_snapshot_and_the_service_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Recommender(dim=3, store=tmp_path / "a.db") as one:
        one.feedback("ann", 1.0, x=arms(0)[0])
        with monkeypatch.context() as patch:
            refuse_temporary_files(OSError(28, "No space left on device"), patch)
            with pytest.raises(StoreError, match="No space left"):
                take_snapshot(one)
        one.feedback("ann", 1.0, x=arms(1)[0])
        assert one.policy.rounds == 2
        take_snapshot(one)
        assert len(snapshot_seqs(store_of(one))) == 1
