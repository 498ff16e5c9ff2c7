from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from coterie.datasets import Dataset, load
from coterie.errors import ArgumentError, DataError, MissingData, MissingExtra
from datasets import generated, naive

TABLE = generated.rows()
EXPECTED = naive.gather([(user, item, rating > 3) for user, item, rating in TABLE], 20, 40)
COLUMNS = {
    "user": [row.user for row in TABLE],
    "item": [row.item for row in TABLE],
    "value": [row.rating for row in TABLE],
}

MISSING = "is missing; leave out such rows with missing='drop' (--missing drop)"


def as_pandas(folder: Path) -> Any:
    return pd.DataFrame(COLUMNS)


def as_filtered_pandas(folder: Path) -> Any:
    frame = pd.concat([pd.DataFrame({"user": [0], "item": [0], "value": [0.0]}), pd.DataFrame(COLUMNS)])
    return frame[frame["user"] > 0]  # its index is no plain range any more


def as_polars(folder: Path) -> Any:
    return pl.DataFrame(COLUMNS)


def as_pyarrow(folder: Path) -> Any:
    return pytest.importorskip("pyarrow").table(COLUMNS)


def as_csv(folder: Path) -> Any:
    pl.DataFrame(COLUMNS).write_csv(folder / "mine.csv")
    return folder / "mine.csv"


def as_tsv(folder: Path) -> Any:
    pl.DataFrame(COLUMNS).write_csv(folder / "mine.tsv", separator="\t")
    return str(folder / "mine.tsv")


def as_parquet(folder: Path) -> Any:
    pl.DataFrame(COLUMNS).write_parquet(folder / "mine.parquet")
    return folder / "mine.parquet"


FORMS = [as_pandas, as_filtered_pandas, as_polars, as_pyarrow, as_csv, as_tsv, as_parquet]


def small(place: Any, **options: Any) -> Dataset:
    return load("interactions", place, dim=1, n_users=2, n_items=2, **options)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same_matrix_as_plain_python(
    form: Callable[[Path], Any], tmp_path: Path
) -> None:
    data = load("interactions", form(tmp_path), threshold=3, dim=5, n_users=20, n_items=40)
    assert data.user_ids.tolist() == EXPECTED.users
    assert data.provenance.density == EXPECTED.matrix.mean()
    assert data.provenance.rows == len(TABLE)
    singular = np.linalg.svd(EXPECTED.matrix, compute_uv=False)
    np.testing.assert_allclose(data.provenance.singular_values, singular, atol=1e-10)


def test_frames_of_the_same_content_have_the_same_hash(tmp_path: Path) -> None:
    frames = [as_pandas(tmp_path), as_filtered_pandas(tmp_path), as_polars(tmp_path), as_pyarrow(tmp_path)]
    facts = [
        load("interactions", frame, threshold=3, dim=5, n_users=9, n_items=9).provenance for frame in frames
    ]
    assert len(set(facts)) == 1
    assert facts[0].file == "data frame"


def test_without_a_threshold_every_row_is_feedback() -> None:
    data = small(pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "value": [0.0, 0.0, 0.0]}))
    assert data.provenance.density == 0.75
    assert data.provenance.feedback == "1 for every row, whatever its value"


def test_columns_are_chosen_by_name() -> None:
    frame = pl.DataFrame({"when": [1, 2, 3], "score": [9, 1, 9], "film": [1, 2, 1], "who": ["a", "a", "b"]})
    data = small(frame, threshold=5, columns=("who", "film", "score"))
    assert data.user_ids.tolist() == ["a", "b"]
    assert data.item_ids.tolist() == [1]
    assert data.provenance.feedback == "1 if the value of who, film, score is above 5"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": ("user", "film")}, "columns must name two or three of user, item, value"),
        ({"columns": ("user", "item", "value")}, "the value column 'value' needs a threshold"),
        ({"columns": ("user", "item"), "threshold": 3}, "a threshold needs a value column"),
    ],
)
def test_columns_that_do_not_fit_are_refused(options: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    for form in (as_polars, as_csv, as_parquet):
        with pytest.raises(ArgumentError, match=sentence):
            small(form(tmp_path), **options)


def test_a_table_of_one_column_is_refused() -> None:
    with pytest.raises(ArgumentError, match="columns must name two or three of user, got"):
        small(pl.DataFrame({"user": [1]}))


def test_numbers_in_a_csv_are_numbers_and_anything_else_is_text(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "mine.csv", "user,item\n10,007\n9,7\n10,7\n9,007\n9,8\n")
    data = load("interactions", path, dim=1, n_users=2, n_items=3)
    assert data.user_ids.tolist() == [9, 10]
    assert data.item_ids.tolist() == ["007", "7", "8"]


@pytest.mark.parametrize("kind", [pl.Int32, pl.UInt8, pl.Float64])
def test_whole_numbers_of_any_width_become_int64(kind: type[pl.DataType]) -> None:
    frame = pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 5]}).cast(kind)
    data = small(frame)
    assert data.item_ids.tolist() == [5, 6]
    assert data.item_ids.dtype == np.int64


def test_categories_are_text() -> None:
    frame = pl.DataFrame({"user": ["x", "x", "y"], "item": ["b", "a", "b"]}).cast(pl.Categorical)
    assert small(frame).item_ids.tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"user": [1, None, 2], "item": [1, 2, 1]}, f"user {MISSING}"),
        ({"user": ["a", "b", "c"], "item": ["x", None, "y"]}, f"item {MISSING}"),
        ({"user": [1, 2, 3], "item": [1.0, 2.5, 3.0]}, "item must be a whole number, got 2.5"),
        ({"user": [1, 2, 3], "item": [1.0, float("nan"), 3.0]}, f"item {MISSING}"),
    ],
)
@pytest.mark.parametrize("as_file", [False, True])
def test_a_row_without_its_ids_says_its_number(
    columns: dict[str, list[object]], fault: str, as_file: bool, tmp_path: Path
) -> None:
    frame, name = pl.DataFrame(columns), "the data frame"
    if as_file:
        name = "mine.parquet"
        frame.write_parquet(tmp_path / name)
    with pytest.raises(DataError) as caught:
        small(tmp_path / name if as_file else frame)
    assert str(caught.value) == f"row 1 of {name} (from 0): {fault}"


@pytest.mark.parametrize("bad", [float("inf"), "many"])
def test_a_value_that_is_no_number_says_its_row(bad: object) -> None:
    values = ["4", bad] if isinstance(bad, str) else [4.0, bad]
    with pytest.raises(DataError, match=r"row 1 of the data frame \(from 0\): value must be a finite number"):
        small(pl.DataFrame({"user": [1, 2], "item": [1, 2], "value": values}), threshold=3)


@pytest.mark.parametrize("bad", [None, float("nan")])
def test_a_value_that_is_missing_is_refused_or_dropped(bad: float | None) -> None:
    frame = pl.DataFrame({"user": [1, 2, 1], "item": [1, 2, 2], "value": [4.0, bad, 4.0]})
    with pytest.raises(DataError, match=r"row 1 of the data frame \(from 0\): value is missing"):
        small(frame, threshold=3)
    assert small(frame, threshold=3, missing="drop").provenance.rows == 2


@pytest.mark.parametrize("option", [{"separator": ";"}, {"encoding": "cp1252"}])
def test_separator_and_encoding_are_for_csv_files_only(option: dict[str, str], tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 2]})
    frame.write_parquet(tmp_path / "mine.parquet")
    for source in (frame, tmp_path / "mine.parquet"):
        with pytest.raises(ArgumentError, match="separator and encoding are for CSV files"):
            small(source, **option)


@pytest.mark.parametrize(("user", "kind"), [([1], "List"), (b"1", "Binary")])
def test_ids_that_are_neither_numbers_nor_text_are_refused(user: object, kind: str) -> None:
    with pytest.raises(ArgumentError, match=f"must hold numbers or text, and its column 'user' holds {kind}"):
        small(pl.DataFrame({"user": [user], "item": [1]}))


def test_a_frame_of_mixed_objects_is_refused() -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ArgumentError, match="the data frame cannot be read"):
        small(pd.DataFrame({"user": [1, "a", {}], "item": [1, 2, 3]}, dtype=object))


def test_a_table_without_rows_is_an_error(tmp_path: Path) -> None:
    for place in (pl.DataFrame({"user": [], "item": []}), generated.write(tmp_path / "x.csv", "user,item\n")):
        with pytest.raises(DataError, match="the table has no rows"):
            small(place)


def test_a_file_that_is_not_there_is_missing_data() -> None:
    with pytest.raises(MissingData, match=r"no file at 'mine.csv'; 'interactions' reads a data frame, a CSV"):
        small("mine.csv")


def test_no_path_at_all_is_refused() -> None:
    with pytest.raises(ArgumentError, match="path must be your own table"):
        small(None)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ArgumentError, match=r"ends in .csv, .tsv, .csv.gz, .tsv.gz or .parquet, got 'mine.xlsx'"
    ):
        small(generated.write(tmp_path / "mine.xlsx", "rubbish"))


def test_a_parquet_file_that_is_none_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"mine.parquet cannot be read as Parquet"):
        small(generated.write(tmp_path / "mine.parquet", "rubbish"))


@pytest.mark.parametrize("form", [as_polars, as_csv])
def test_without_polars_the_error_says_what_to_install(
    form: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = form(tmp_path)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        MissingExtra, match=r"reading a table needs polars, which is not installed: pip install"
    ):
        small(place)
