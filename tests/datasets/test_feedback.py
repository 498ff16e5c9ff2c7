from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.datasets.prepare import busiest, gather
from datasets import naive

NUMBERS = st.integers(min_value=-3, max_value=12)
WORDS = st.sampled_from(["1", "10", "2", "B", "a", "é", "z"])
COUNTS = st.integers(min_value=1, max_value=8)


def frame(table: list[tuple[naive.Id, naive.Id, bool]], ids: type[pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(table, schema={"user": ids, "item": ids, "liked": pl.Boolean}, orient="row")


def check(table: list[tuple[naive.Id, naive.Id, bool]], ids: type[pl.DataType], n: int, m: int) -> None:
    ours, expected = gather(frame(table, ids), n, m), naive.gather(table, n, m)
    assert ours.users.as_array().tolist() == expected.users
    assert ours.items.as_array().tolist() == expected.items
    assert ours.items.tied == expected.tied_items
    np.testing.assert_array_equal(ours.matrix, expected.matrix)


@given(table=st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans()), min_size=1), n=COUNTS, m=COUNTS)
def test_numbers_are_chosen_as_plain_python_chooses_them(
    table: list[tuple[naive.Id, naive.Id, bool]], n: int, m: int
) -> None:
    check(table, pl.Int64, n, m)


@given(table=st.lists(st.tuples(WORDS, WORDS, st.booleans()), min_size=1), n=COUNTS, m=COUNTS)
def test_words_are_chosen_as_plain_python_chooses_them(
    table: list[tuple[naive.Id, naive.Id, bool]], n: int, m: int
) -> None:
    check(table, pl.String, n, m)


def test_ties_go_to_the_lower_number_and_numbers_are_not_compared_as_text() -> None:
    rows = pl.DataFrame({"item": [10, 9, 100, 2, 2]})
    assert busiest(rows, "item", 3).as_array().tolist() == [2, 9, 10]


def test_text_is_compared_as_text() -> None:
    rows = pl.DataFrame({"item": ["10", "9", "100", "2", "2"]})
    assert busiest(rows, "item", 3).as_array().tolist() == ["2", "10", "100"]


@pytest.mark.parametrize(("count", "tied"), [(1, 0), (2, 3), (3, 3), (4, 0), (9, 0)])
def test_ties_are_counted_where_the_cut_goes_through_them(count: int, tied: int) -> None:
    rows = pl.DataFrame({"item": [1, 1, 1, 2, 2, 3, 3, 4, 4]})
    assert busiest(rows, "item", count).tied == tied


def test_users_are_counted_over_all_rows_not_only_those_of_kept_items() -> None:
    table: list[tuple[naive.Id, naive.Id, bool]] = [(1, 5, True), (2, 5, True), (3, 5, True)]
    table += [(3, 6, True), (1, 7, True), (1, 8, True)]
    ours = gather(frame(table, pl.Int64), 2, 1)
    assert ours.users.as_array().tolist() == [1, 3]
    assert ours.items.as_array().tolist() == [5]


def test_a_pair_is_feedback_if_any_of_its_rows_is() -> None:
    ours = gather(frame([(1, 1, False), (1, 1, True), (1, 1, False)], pl.Int64), 1, 1)
    assert ours.matrix.tolist() == [[1.0]]
    assert ours.rows == 3


def test_large_unsigned_ids_keep_their_value() -> None:
    rows = pl.DataFrame({"item": pl.Series([2**64 - 1, 5], dtype=pl.UInt64)})
    assert busiest(rows, "item", 2).as_array().tolist() == [5, 2**64 - 1]
