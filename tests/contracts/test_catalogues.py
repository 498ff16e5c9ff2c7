"""Among a catalogue every policy chooses what it would choose among the same arms in a matrix."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie
from contracts.examples import ALL, changed, make
from coterie import Catalogue, LinearBandit
from coterie.types import Floats

WISHES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "items": st.sampled_from([1, 5, 64, 65, 150, 400]),
        "distinct": st.sampled_from([1, 3, 20, 400]),
        "rounds": st.integers(0, 40),
        "scale": st.sampled_from([1e-3, 1.0, 30.0]),
    }
)


def twin_of(policy: LinearBandit) -> LinearBandit:
    """A copy with the same random numbers to come: whoever is asked first must not change the other."""
    twin: LinearBandit = pickle.loads(pickle.dumps(policy))
    return twin


def vectors(rng: np.random.Generator, n: int, distinct: int, scale: float) -> Floats:
    """Rows of which many are equal, so that scores are tied."""
    rows = rng.normal(size=(distinct, 3)) * scale
    rows[rng.random(distinct) < 0.2] = 0.0
    return rows[rng.integers(distinct, size=n)]


def expect_same(policy: LinearBandit, catalogue: Catalogue, user: int, **wish: Any) -> int:
    """Ask for one item and for lists; all must be as of the same arms in a matrix."""
    ids, arms = catalogue.arms(**wish)
    twin = twin_of(policy)
    item = int(policy.recommend(user, catalogue, **wish))
    assert item == ids[twin.recommend(user, arms, items=ids)]
    assert changed(twin, policy) == []
    for k in {1, 2, 9, len(ids) // 2 or 1, len(ids)}:
        if k <= len(ids):
            listed = policy.recommend(user, catalogue, k=k, **wish)
            assert listed.tolist() == ids[twin.recommend_list(user, arms, k, items=ids)].tolist()
    careful = policy.recommend(user, catalogue, cautious=True, **wish)
    assert careful == ids[twin.recommend(user, arms, items=ids, cautious=True)]
    assert changed(twin, policy) == []
    return item


def change(catalogue: Catalogue, rng: np.random.Generator, rows: Floats) -> int:
    """Some items go, some get another vector, some come; the id of one that has tags."""
    there = catalogue.ids.tolist()
    gone = rng.permutation(there)[: rng.integers(len(there))]
    catalogue.remove(gone)
    new = rng.permutation(3 * len(rows))[: len(rows)] + 100
    catalogue.put(new, rows, [["odd" if item % 2 else "even", f"{item % 5}"] for item in new])
    return int(new[0])


@pytest.mark.parametrize("example", ALL)
@given(wishes=WISHES)
@settings(max_examples=8, deadline=None)
def test_a_choice_among_a_catalogue_is_one_among_its_arms(example: str, wishes: dict[str, Any]) -> None:
    rng = np.random.default_rng(wishes["seed"])
    policy = make(example, seed=wishes["seed"])
    catalogue = Catalogue(vectors(rng, wishes["items"], wishes["distinct"], wishes["scale"]))
    for step in range(wishes["rounds"]):
        user = int(rng.integers(policy.n_users))
        item = expect_same(policy, catalogue, user) if step % 8 == 0 else int(rng.choice(catalogue.ids))
        policy.update(user, catalogue, float(rng.random() + item % 3), item=item)
        if step % 10 == 9:
            item = change(catalogue, rng, vectors(rng, 120, wishes["distinct"], wishes["scale"]))
            tag = min(catalogue.tags_of(item))
            expect_same(policy, catalogue, user, only=tag)
            expect_same(policy, catalogue, user, only=[tag, "3"])
            expect_same(policy, catalogue, user, exclude=catalogue.ids[1:].tolist())
            expect_same(policy, catalogue, user, exclude=catalogue.ids[::3], only=catalogue.ids[1::2])
    expect_same(policy, catalogue, 0)


@pytest.mark.parametrize("example", ALL)
def test_a_snapshot_decides_alike_among_any_catalogue(example: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    policy, catalogue = make(example), Catalogue(vectors(rng, 150, 90, 1.0))
    for item in range(40):
        policy.update(item % 6, catalogue, float(rng.random()), item=item)
    policy.recommend(0, catalogue)
    policy.save(tmp_path / "policy")
    loaded, same = coterie.load(tmp_path / "policy"), Catalogue(catalogue.vectors, ids=catalogue.ids)
    assert loaded.recommend(0, same, k=3).tolist() == policy.recommend(0, catalogue, k=3).tolist()
    assert changed(policy, loaded) == []
