from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coterie import datasets
from coterie.errors import ArgumentError


@pytest.mark.parametrize("name", ["dim", "n_users", "n_items"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, "7", None])
def test_a_count_that_is_no_positive_whole_number_is_refused(name: str, value: object) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(ArgumentError, match=f"{name} must be a whole number of at least 1, got"):
        datasets.load("synthetic", **wrong)


def test_numpy_integers_are_whole_numbers() -> None:
    counts: Any = np.int64(3)
    data = datasets.load("synthetic", dim=counts, n_users=counts, n_items=counts)
    assert type(data.provenance.dim) is int


def test_an_unknown_scale_lists_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match="scale must be one of unit, raw, sqrt-s, got 'log'"):
        datasets.load("synthetic", scale="log")


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ArgumentError, match="seed"):
        datasets.load("synthetic", seed=-1)


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), "3", True])
def test_a_threshold_that_is_no_finite_number_is_refused(threshold: Any) -> None:
    with pytest.raises(ArgumentError, match="threshold must be a finite number, got"):
        datasets.load("interactions", "x.csv", threshold=threshold)


@pytest.mark.parametrize("columns", [("user",), ("a", "a"), ("a", "b", "c", "d"), "ab"])
def test_columns_that_name_no_user_and_item_are_refused(columns: Any) -> None:
    with pytest.raises(ArgumentError, match="columns must name a user, an item"):
        datasets.load("interactions", "x.csv", columns=columns)


def test_a_path_that_is_neither_a_file_nor_a_frame_is_refused() -> None:
    rows: Any = [(1, 2, 3.0)]
    with pytest.raises(ArgumentError, match="path must be a file, a folder or a data frame, got list"):
        datasets.load("interactions", rows)


@pytest.mark.parametrize("separator", ["::", "", "\n", '"', "→", 3])
def test_a_separator_that_is_not_one_character_is_refused(separator: Any) -> None:
    with pytest.raises(ArgumentError, match="separator must be one character such as ';', got"):
        datasets.load("interactions", "x.csv", separator=separator)


@pytest.mark.parametrize("encoding", ["latin-12", "base64", "a\0b", 8])
def test_an_encoding_that_python_does_not_know_is_refused(encoding: Any) -> None:
    with pytest.raises(ArgumentError, match="encoding must be one that Python knows, such as utf-8"):
        datasets.load("interactions", "x.csv", encoding=encoding)


def test_what_becomes_of_missing_values_is_refuse_or_drop() -> None:
    with pytest.raises(ArgumentError, match="missing must be 'refuse' or 'drop', got 'fill'"):
        datasets.load("interactions", "x.csv", missing="fill")
