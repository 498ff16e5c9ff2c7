"""A catalogue holds its items through all changes, and refuses what is wrong."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.examples import changed, is_one_sentence
from coterie import ArgumentError, AutoCLUB, Catalogue, LinUCBOne
from coterie.types import Floats

SQUARE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])


def small() -> Catalogue:
    return Catalogue(SQUARE, ids=[10, 20, 30, 40], tags=["red", ["red", "big"], [], "blue"])


def content(catalogue: Catalogue) -> dict[int, tuple[list[float], frozenset[str]]]:
    return {
        int(item): (catalogue.vector(int(item)).tolist(), catalogue.tags_of(int(item)))
        for item in catalogue.ids
    }


def test_ids_are_row_numbers_unless_given() -> None:
    catalogue = Catalogue(SQUARE)
    assert catalogue.ids.tolist() == [0, 1, 2, 3]
    assert (len(catalogue), catalogue.dim, catalogue.version) == (4, 2, 0)
    assert small().ids.tolist() == [10, 20, 30, 40]
    assert len(Catalogue(dim=3)) == 0


def test_views_are_not_copied_and_cannot_be_written() -> None:
    catalogue = small()
    assert np.shares_memory(catalogue.vectors, catalogue.vectors)
    assert np.shares_memory(catalogue.arms().vectors, catalogue.vectors)
    with pytest.raises(ValueError, match="read-only"):
        catalogue.vectors[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        catalogue.ids[0] = 1
    before = SQUARE.copy()
    catalogue.put([10], [[9.0, 9.0]])
    assert SQUARE.tolist() == before.tolist()


def test_the_last_rows_take_the_places_of_removed_ones() -> None:
    catalogue = small()
    catalogue.remove([20, 10])
    assert catalogue.ids.tolist() == [30, 40]
    assert [catalogue.row_of(30), catalogue.row_of(40)] == [0, 1]
    assert catalogue.rows_of([40, 41, 30]).tolist() == [1, -1, 0]
    assert catalogue.vectors.tolist() == [[-1.0, 0.0], [0.0, -1.0]]
    assert 10 not in catalogue
    assert 30 in catalogue


@pytest.mark.parametrize(
    ("exclude", "only", "wanted"),
    [
        (None, None, [10, 20, 30, 40]),
        ([20, 99], None, [10, 30, 40]),
        (None, "red", [10, 20]),
        (None, ["big", "blue"], [20, 40]),
        (None, {"big", "blue"}, [20, 40]),
        (None, [40, 10], [10, 40]),
        (np.array([10]), ("red",), [20]),
        ([], np.array([30]), [30]),
    ],
)
def test_eligible_items_come_in_the_order_of_rows(exclude: Any, only: Any, wanted: list[int]) -> None:
    ids, vectors = small().arms(exclude=exclude, only=only)
    assert ids.tolist() == wanted
    assert vectors.tolist() == [small().vector(item).tolist() for item in wanted]


WRONG: dict[str, Callable[[Any], object]] = {
    "no length": lambda c: Catalogue(),
    "another length at once": lambda c: Catalogue(SQUARE, dim=3),
    "a vector instead of rows": lambda c: Catalogue([1.0, 2.0]),
    "too few ids": lambda c: Catalogue(SQUARE, ids=[1]),
    "another length": lambda c: c.put([1], [[1.0]]),
    "one id twice": lambda c: c.put([1, 1], SQUARE[:2]),
    "a negative id": lambda c: c.put([-1], SQUARE[:1]),
    "an id that is no number": lambda c: c.put(["a"], SQUARE[:1]),
    "not finite": lambda c: c.put([10, 1], [[0.0, 0.0], [np.nan, 0.0]]),
    "infinite": lambda c: c.put([1], [[np.inf, 0.0]]),
    "too few tags": lambda c: c.put([1, 2], SQUARE[:2], ["red"]),
    "one string as tags": lambda c: c.put([1, 2, 3], SQUARE[:3], "red"),
    "a tag that is no string": lambda c: c.put([1], SQUARE[:1], [[3]]),
    "an empty tag": lambda c: c.put([1], SQUARE[:1], [""]),
    "tags of an item that are none": lambda c: c.put([1], SQUARE[:1], [7]),
    "removing what is not there": lambda c: c.remove([10, 11]),
    "removing twice": lambda c: c.remove([10, 10]),
    "the row of nothing": lambda c: c.row_of(11),
    "the vector of nothing": lambda c: c.vector(11),
    "the tags of nothing": lambda c: c.tags_of(11),
    "only what is not there": lambda c: c.arms(only=[11]),
    "an unknown tag": lambda c: c.arms(only="green"),
    "no tags at all": lambda c: c.arms(only=[]),
    "all excluded": lambda c: c.arms(exclude=[10, 20, 30, 40]),
    "excluding names": lambda c: c.arms(exclude=["a"]),
    "excluding a truth value": lambda c: c.arms(exclude=[10, True]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_refused_by_one_sentence_and_nothing_changes(wrong: str) -> None:
    catalogue = small()
    before = content(catalogue)
    with pytest.raises(ArgumentError) as caught:
        WRONG[wrong](catalogue)
    assert is_one_sentence(caught.value)
    assert content(catalogue) == before
    assert catalogue.version == 0


CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "remove"]), st.lists(st.integers(0, 30), max_size=8, unique=True)),
    max_size=30,
)


@given(changes=CHANGES, tagged=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_catalogue_holds_what_a_dict_would(changes: list[tuple[str, list[int]]], tagged: bool) -> None:
    catalogue, wanted = Catalogue(dim=2), dict[int, tuple[list[float], frozenset[str]]]()
    for step, (kind, ids) in enumerate(changes):
        if kind == "put":
            rows = [[float(item), float(step)] for item in ids]
            tags = [[f"tag {item % 3}", "all"] for item in ids] if tagged else None
            catalogue.put(ids, np.reshape(rows, (-1, 2)), tags)
            for item, row in zip(ids, rows, strict=True):
                wanted[item] = (row, frozenset([f"tag {item % 3}", "all"] if tagged else ()))
        else:
            there = [item for item in ids if item in wanted]
            catalogue.remove(there)
            for item in there:
                del wanted[item]
        assert content(catalogue) == wanted
        assert [catalogue.row_of(int(item)) for item in catalogue.ids] == list(range(len(wanted)))
        assert catalogue.version == step + 1


def test_growing_one_by_one_keeps_room_within_twice_the_items() -> None:
    catalogue = Catalogue(dim=4)
    for item in range(1000):
        catalogue.put([item], np.ones((1, 4)))
    assert 1000 * 32 < catalogue.memory < 4 * 1000 * 32


def test_a_reward_of_an_item_is_one_of_its_vector() -> None:
    one, other, catalogue = AutoCLUB(3, 2), AutoCLUB(3, 2), small()
    one.update(1, catalogue, 0.7, item=30)
    other.update(1, catalogue.vector(30), 0.7, item=30)
    assert changed(one, other) == []


MISUSED: dict[str, Callable[[Any, Any], object]] = {
    "ids beside": lambda p, c: p.recommend(0, c, items=[1, 2, 3, 4]),
    "too many": lambda p, c: p.recommend(0, c, k=5),
    "none": lambda p, c: p.recommend(0, c, k=0),
    "nothing left": lambda p, c: p.recommend(0, c, only="green"),
    "another length": lambda p, c: p.recommend(0, Catalogue(dim=3)),
    "an unknown user": lambda p, c: p.recommend(9, c),
    "a list of a matrix": lambda p, c: p.recommend(0, SQUARE, k=2),
    "no item": lambda p, c: p.update(0, c, 1.0),
    "an unknown item": lambda p, c: p.update(0, c, 1.0, item=11),
    "a reward of another length": lambda p, c: p.update(0, Catalogue(dim=3), 1.0, item=1),
}


@pytest.mark.parametrize("wrong", MISUSED)
def test_misuse_is_refused_by_one_sentence(wrong: str) -> None:
    policy = LinUCBOne(3, 2, beta=0.5)
    with pytest.raises(ArgumentError) as caught:
        MISUSED[wrong](policy, small())
    assert is_one_sentence(caught.value)
    assert policy.rounds == 0


def row_for(item: int) -> Floats:
    return np.full((1, 2), 0.01 * item)


def test_items_come_and_go_while_policies_decide() -> None:
    catalogue = Catalogue(np.concatenate([row_for(item) for item in range(50)]))
    wrong: list[BaseException] = []

    def decide(seed: int) -> None:
        policy = LinUCBOne(1, 2, beta=0.5, seed=seed)
        try:
            for _ in range(200):
                item = policy.recommend(0, catalogue, exclude=[3])
                assert item != 3
                policy.update(0, row_for(item)[0], 0.1, item=item)
        except BaseException as error:
            wrong.append(error)

    threads = [Thread(target=decide, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for step in range(200):
        catalogue.put([100 + step], row_for(step))
        catalogue.remove([100 + step] if step % 2 else [step % 50 // 2 + 10])
        catalogue.put([step % 50 // 2 + 10], row_for(5))
    for thread in threads:
        thread.join()
    assert wrong == []


def test_tags_that_no_item_has_any_more_are_forgotten() -> None:
    catalogue = Catalogue(np.eye(3), tags=["stays", (), ("a", "b")])
    tracemalloc.start()
    try:
        for change in range(4_000):
            catalogue.put([1], np.eye(3)[[1]], [[f"{change}-{tag}" for tag in range(20)]])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 10 * 2**20  # 4,000 sets would take 20 MB
    assert catalogue.tags_of(0) == {"stays"}
    assert catalogue.tags_of(1) == {f"3999-{tag}" for tag in range(20)}
    assert catalogue.tags_of(2) == {"a", "b"}
    assert catalogue.arms(only="b").ids.tolist() == [2]
    assert catalogue.arms(only=["stays", "3999-7"]).ids.tolist() == [0, 1]


def test_tags_beside_ids_and_rows_of_no_ids_are_refused() -> None:
    catalogue = Catalogue(np.eye(3), ids=[1, 2, 3], tags=["red", "red", "blue"])
    both: Any = ["red", 3]
    with pytest.raises(ArgumentError, match="only must be tags, or ids of items, not both"):
        catalogue.arms(only=both)
    for wrong in (["a"], [1.5], [True], [-1]):
        with pytest.raises(ArgumentError, match="items must be"):
            catalogue.rows_of(wrong)
    assert catalogue.rows_of([3, 7]).tolist() == [2, -1]
