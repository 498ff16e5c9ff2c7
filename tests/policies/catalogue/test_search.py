"""The search finds what scoring every item would find, whichever bounds it needs for that."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import CLUB, AutoCLUB, CascadeLinUCB, Catalogue, HierUCB, LinearBandit, LinUCBInd, LinUCBOne
from coterie.policies.catalogue.compressed_rows import CompressedRows
from coterie.policies.catalogue.row_table import RowTable
from coterie.types import Floats

DIM = 20
MAKERS: dict[str, Callable[[], LinearBandit]] = {
    "AutoCLUB": lambda: AutoCLUB(4, DIM),
    "CascadeLinUCB": lambda: CascadeLinUCB(4, DIM, beta=2.0),
    "CLUB": lambda: CLUB(4, DIM, alpha=1.0, beta=0.3, growing=True),
    "HierUCB": lambda: HierUCB(4, DIM),
    "LinUCBInd": lambda: LinUCBInd(4, DIM, beta=1.0, ridge=0.01),
    "LinUCBOne items": lambda: LinUCBOne(4, DIM, beta=0.3, items=True),
}


def isotropic(rng: np.random.Generator, n: int) -> Floats:
    rows = rng.normal(size=(n, DIM))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def grouped(rng: np.random.Generator, n: int) -> Floats:
    return isotropic(rng, 30)[rng.integers(30, size=n)] + 0.1 * rng.normal(size=(n, DIM)) / DIM**0.5


def unequal(rng: np.random.Generator, n: int) -> Floats:
    """Columns in different units, which AutoCLUB levels; lengths of vectors differ, too."""
    return isotropic(rng, n) * 10.0 ** -np.linspace(0, 4, DIM) * rng.lognormal(size=(n, 1))


def integers(rng: np.random.Generator, n: int) -> Floats:
    """Vectors that are compressed without loss, so that bounds are as sharp as they can be."""
    return rng.integers(-1, 2, size=(n, DIM)).astype(float)


WORLDS = {"isotropic": isotropic, "grouped": grouped, "unequal": unequal, "integers": integers}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_found_is_the_best_of_all_scores(name: str, world: str) -> None:
    rng = np.random.default_rng(5)
    vectors = WORLDS[world](rng, 3_000)
    catalogue, policy = Catalogue(vectors, ids=rng.permutation(9_000)[:3_000]), MAKERS[name]()
    taste, worth = rng.normal(size=(4, DIM)), rng.normal(size=9_000)
    for step in range(241):
        user = step % 3  # the last one stays without data
        if step % 40 == 0:
            for asked in (0, 3):
                ids, arms = catalogue.arms()
                best = policy.recommend_list(asked, arms, 12, items=ids)
                assert policy.recommend(asked, catalogue) == ids[policy.recommend(asked, arms, items=ids)]
                assert policy.recommend(asked, catalogue, k=12).tolist() == ids[best].tolist()
                left = policy.recommend(asked, catalogue, k=5, exclude=ids[best[:7]])
                assert left.tolist() == ids[best[7:]].tolist()
        item = policy.recommend(user, catalogue) if step % 2 else int(rng.choice(catalogue.ids))
        x = catalogue.vector(item)
        policy.update(user, x, float(x @ taste[user] + worth[item] + 0.1 * rng.normal()), item=item)


@pytest.mark.parametrize("name", MAKERS)
def test_equal_items_are_listed_in_the_order_of_rows(name: str) -> None:
    policy = MAKERS[name]()
    catalogue = Catalogue(np.ones((500, DIM)) / DIM)
    policy.update(0, np.ones(DIM), 1.0, item=9_999)
    assert policy.recommend(0, catalogue) == 0
    assert policy.recommend(0, catalogue, k=20).tolist() == list(range(20))
    catalogue.remove([0, 1, 2])  # the last three take their places
    assert policy.recommend(0, catalogue, k=4).tolist() == [497, 498, 499, 3]


@pytest.mark.parametrize("scale", [1e-200, 1e-40, 1e-6, 1.0, 1e5, 1e40, 1e90])
def test_vectors_of_any_length_are_found_or_refused_alike(scale: float) -> None:
    rng = np.random.default_rng(1)
    vectors = isotropic(rng, 300) * scale
    policy, catalogue = (
        LinUCBOne(1, DIM, beta=0.5, ridge=max(scale, 1e-3) ** 2 if scale < 1e40 else 1.0),
        Catalogue(vectors),
    )
    if scale < 1e40:
        policy.update(0, catalogue, 1.0, item=7)
        assert policy.recommend(0, catalogue) == policy.recommend(0, vectors)
    else:
        with pytest.raises(ValueError, match="shorter than"):
            policy.recommend(0, catalogue)


def test_no_work_space_of_the_size_of_the_catalogue_but_for_one_bound_an_item() -> None:
    catalogue, policy = Catalogue(isotropic(np.random.default_rng(0), 20_000)), HierUCB(3, DIM)
    before = policy.memory().total
    policy.update(0, catalogue, 1.0, item=0)
    policy.recommend(0, catalogue)
    assert policy.memory().total - before < 20_000 * 8 + 200_000


@given(
    rows=st.lists(
        st.lists(st.floats(-1e9, 1e9), min_size=5, max_size=5)
        | st.lists(st.sampled_from([0.0, -0.0, 1e-310, 1e-35, 1e-30, 1.0, 127.0]), min_size=5, max_size=5),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=200, deadline=None)
def test_a_compressed_row_says_how_far_it_is_off(rows: list[list[float]]) -> None:
    vectors, compressed = np.array(rows), CompressedRows(5)
    compressed.reserve(len(rows))
    compressed.put(np.arange(len(rows)), vectors)
    arrays = compressed.arrays()
    near = arrays["codes"][:, :5] * arrays["steps"].astype(float)[:, None]
    assert (np.linalg.norm(vectors - near, axis=1) <= arrays["errors"]).all()
    assert (np.linalg.norm(vectors, axis=1) <= arrays["norms"]).all()
    assert compressed.most_norm >= np.linalg.norm(vectors, axis=1).max()


@given(changes=st.lists(st.sets(st.integers(0, 40), max_size=20), max_size=20))
@settings(max_examples=100, deadline=None)
def test_a_table_finds_the_rows_that_are_in_it(changes: list[set[int]]) -> None:
    ids = np.arange(41) * (2**40 + 1)
    table, there = RowTable(), set[int]()
    for some in changes:
        new, gone = np.array(sorted(some - there), np.int64), np.array(sorted(some & there), np.int64)
        table.add(ids, new)
        table.discard(ids, gone)
        there ^= some
        wanted = [row if row in there else -1 for row in range(41)]
        assert table.rows(ids, ids).tolist() == wanted
        assert [table.row(ids, int(item)) for item in ids] == wanted
