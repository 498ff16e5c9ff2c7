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
from coterie.policies.catalogue.search import score_bounds
from coterie.types import Floats

DIM = 20
MAKERS: dict[str, Callable[[], LinearBandit]] = {
    "AutoCLUB": lambda: AutoCLUB(4, DIM),
    "CascadeLinUCB": lambda: CascadeLinUCB(4, DIM, beta=2.0),
    "CLUB": lambda: CLUB(4, DIM, alpha=1.0, beta=0.3, growing=True),
    "HierUCB": lambda: HierUCB(4, DIM),
    "LinUCBInd sure": lambda: LinUCBInd(4, DIM, beta=1e-4),
    "LinUCBInd": lambda: LinUCBInd(4, DIM, beta=1.0, ridge=0.01),
    "LinUCBOne items": lambda: LinUCBOne(4, DIM, beta=0.3, items=True),
}


def isotropic(rng: np.random.Generator, n: int) -> Floats:
    rows = rng.normal(size=(n, DIM))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def grouped(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(isotropic(rng, 30)[rng.integers(30, size=n)] + 0.02 * rng.normal(size=(n, DIM)))


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


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", MAKERS)
def test_no_score_is_above_its_bounds_and_sharp_ones_are_close(name: str, world: str) -> None:
    rng = np.random.default_rng(6)
    catalogue, policy = Catalogue(WORLDS[world](rng, 400)), MAKERS[name]()
    taste, effects = rng.normal(size=DIM), name.endswith("items")
    worth = effects * 3.0 * rng.normal(size=400)
    for step in range(481):
        if step % 120 == 0:
            scores = policy.scores(0, catalogue.vectors, items=catalogue.ids)
            arguments = (policy.learner, 0, catalogue.compressed, catalogue.vectors, catalogue.ids)
            rough, sharp = score_bounds(*arguments), score_bounds(*arguments, sharply=True)
            assert rough is not None
            assert sharp is not None
            assert (scores.ucb <= np.minimum(rough, sharp)).all()
            if world != "unequal":  # the small columns of such vectors are lost to compression
                size = float(np.abs(scores.mean).max() + scores.width.max())
                assert (sharp - scores.ucb).max() <= 0.2 * size
        item = int(rng.integers(80 if effects else 400))
        reward = float(catalogue.vector(item) @ taste + worth[item] + rng.normal())
        policy.update(0, catalogue, reward, item=item)
    if effects:
        assert policy.learner.items is not None
        assert policy.learner.items.variance > 0.0


@pytest.mark.parametrize("make", [LinUCBInd, HierUCB])
@pytest.mark.parametrize("ridge", [1.0, 0.25, 0.3])
def test_before_the_first_reward_bounds_are_the_scores_if_they_can_be(
    make: Callable[..., LinearBandit], ridge: float
) -> None:
    vectors = isotropic(np.random.default_rng(2), 400)
    policy, catalogue = make(2, DIM, ridge=ridge), Catalogue(vectors)
    bounds = score_bounds(policy.learner, 0, catalogue.compressed, catalogue.vectors, catalogue.ids)
    assert bounds is not None
    assert (bounds == policy.scores(0, vectors).ucb).all() == (ridge != 0.3)
    assert policy.recommend(0, catalogue, k=9).tolist() == policy.recommend_list(0, vectors, 9).tolist()


@pytest.mark.parametrize("name", MAKERS)
def test_equal_items_are_listed_in_the_order_of_rows(name: str) -> None:
    policy = MAKERS[name]()
    catalogue = Catalogue(np.ones((500, DIM)) / DIM)
    policy.update(0, np.ones(DIM), 1.0, item=9_999)
    assert policy.recommend(0, catalogue) == 0
    assert policy.recommend(0, catalogue, k=20).tolist() == list(range(20))
    catalogue.remove([0, 1, 2])  # the last three take their places
    assert policy.recommend(0, catalogue, k=4).tolist() == [497, 498, 499, 3]


def test_of_equal_scores_the_first_row_wins_though_its_bound_is_the_least() -> None:
    vectors = np.zeros((90, DIM))
    vectors[0, 1] = 5.0  # compressed almost without loss; the others, of the same length, with more
    for row in range(1, 90):
        vectors[row, [1 + row % 19, 1 + (row + 1) % 19]] = 3.0, 4.0
    policy = LinUCBOne(1, DIM, beta=1.0)
    policy.update(0, np.eye(DIM)[0], 1.0, item=999)
    bounds = score_bounds(policy.learner, 0, Catalogue(vectors).compressed, vectors, np.arange(90))
    assert bounds is not None
    assert bounds[0] < bounds[1:].min()
    assert np.ptp(policy.scores(0, vectors).ucb) == 0.0
    assert policy.recommend(0, Catalogue(vectors)) == 0
    assert policy.recommend(0, Catalogue(vectors), k=3).tolist() == [0, 1, 2]


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
