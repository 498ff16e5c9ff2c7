"""A removed user leaves no byte in any file of the store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coterie import Recommender
from inspection import store_of, take_snapshot
from service.shops import shop

USER = "Wilhelmina-8d4f"


def found(folder: Path, *needles: bytes) -> dict[str, int]:
    """How often any of these is in each file."""
    return {file.name: sum(file.read_bytes().count(one) for one in needles) for file in folder.iterdir()}


@pytest.mark.parametrize("others", [0, 30, 300])
def test_nothing_of_a_removed_user_is_in_any_file(others: int, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    one = Recommender(dim=3, policy="LinUCBInd", store=folder / "a.db")
    rng = np.random.default_rng(others)
    shown, sums = [], np.zeros(3)
    for number in range(40 + others):
        user = USER if number % 3 == 0 else f"user-{rng.integers(others + 1)}-{'x' * int(rng.integers(200))}"
        x, reward = rng.normal(size=3), float(rng.random())
        one.feedback(user, reward, x=x)
        if user == USER:
            shown.append(x)
            sums += reward * x
        offer = {str(k): rng.normal(size=3) for k in range(5)}
        one.decide(user, arms=offer, decision_id=f"d{number}")
        shown += list(offer.values()) if user == USER else []
        if number % 25 == 7:
            take_snapshot(one)
    needles = [USER.encode(), sums.tobytes(), *(x.tobytes() for x in shown)]
    assert sum(found(folder, *needles).values()) > 40
    one.remove_user(USER)
    assert set(found(folder, *needles).values()) == {0}
    one.feedback("somebody", 1.0, x=[1.0, 0.0, 0.0])
    one.close()
    assert set(found(folder, *needles).values()) == {0}


def test_a_snapshot_under_way_does_not_bring_a_removed_user_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    one = shop(store=folder / "a.db")
    for number in range(20):
        one.feedback(USER, 1.0, item="tea", feedback_id=f"f{number}")
    one.feedback("bob", 1.0, item="tea")
    real, begun = store_of(one).chunk_digests, iter([True])

    def removed_first(policy: str) -> set[bytes]:
        if next(begun, False):
            one.remove_user(USER)
        return real(policy)

    monkeypatch.setattr(store_of(one), "chunk_digests", removed_first)
    with pytest.raises(OSError, match="the log was changed meanwhile"):
        take_snapshot(one)
    assert set(found(folder, USER.encode()).values()) == {0}
    one.close()
