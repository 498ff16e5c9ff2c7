from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.evaluation import read_log
from evaluation.worlds import assert_same_log, example, logged, offered_ids, world

ITEMS: dict[str, list[Any]] = {"id": ["x", "y", "z"], "first": [1.0, 0.0, 1.0], "second": [0, 1, 1]}
OFFERS = [["x", "y", "z"], ["x", "y", "z"], ["x", "y"], ["x", "y", "z"]]


def frame(**changes: Any) -> pl.DataFrame:
    return pl.DataFrame(example(**changes), strict=False)


def test_a_table_is_read_by_time_with_its_users() -> None:
    log = read_log(frame())
    assert log.user_ids == ("a", "b", "c")
    assert log.users.tolist() == [0, 1, 2, 1]
    assert log.propensities.tolist() == [0.5, 0.25, 0.3, 0.5]
    assert log.arms(1).tolist() == [[1, 0], [0, 1]]


def test_polars_pandas_parquet_csv_and_json_lines_give_the_same_log(tmp_path: Path) -> None:
    table, log = frame(), read_log(frame())
    table.write_parquet(tmp_path / "log.parquet")
    table.write_ndjson(tmp_path / "log.jsonl")
    text = [json.dumps(arms) for arms in table["arms"].to_list()]
    written = table.with_columns(arms=pl.Series(text))
    written.write_csv(tmp_path / "log.csv")
    written.write_csv(tmp_path / "log.tsv", separator="\t")
    pandas: Any = table.to_pandas()
    for source in (pandas, *(tmp_path / f"log.{kind}" for kind in ("parquet", "csv", "tsv", "jsonl"))):
        assert_same_log(read_log(source), log)


def test_a_saved_log_is_read_again(tmp_path: Path) -> None:
    for log in (read_log(frame()), logged(world(), 300, 0.3)):
        log.save(tmp_path / "log.parquet")
        assert_same_log(read_log(tmp_path / "log.parquet"), log)
        assert_same_log(read_log(log.to_frame()), log)


def test_ids_beside_vectors_are_read_from_every_kind_of_table(tmp_path: Path) -> None:
    every: list[list[list[Any]]] = [[[7, 8, 9], [7, 8, 9], [9, 7], [7, None, 8]], OFFERS]
    for ids in every:
        table = frame(ids=ids)
        log = read_log(table)
        assert offered_ids(log)[:2] == ids[1][:2]  # the second row is the earliest
        assert_same_log(read_log(log.to_frame()), log)
        lists = {
            name: pl.Series([json.dumps(one) for one in table[name].to_list()]) for name in ("arms", "ids")
        }
        table.with_columns(**lists).write_csv(tmp_path / "log.csv")
        assert_same_log(read_log(tmp_path / "log.csv"), log)
        log.save(tmp_path / "log.parquet")
        assert_same_log(read_log(tmp_path / "log.parquet"), log)


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        (
            [[7, 8, 9], [7, 8], [9, 7], [7, 8, 9]],
            r"event 1 \(from 0\): ids must be a list of 3, one for each arm",
        ),
        ([7, 8, 9, 7], "event 0 .*: ids must be a list of 3, one for each arm, got 7"),
        ([[1.5, 2.5, 3.5]] * 2 + [[1.5, 2.5]] + [[1.5, 2.5, 3.5]], "ids must be whole numbers, or text"),
        ([[7, 8, 7], [7, 8, 9], [9, 7], [7, 8, 9]], "item 7 is offered twice"),
    ],
)
def test_ids_that_fit_no_arms_are_refused(ids: Any, sentence: str) -> None:
    with pytest.raises(coterie.errors.DataError, match=sentence):
        read_log(frame(ids=ids))


def test_a_column_of_ids_is_refused_where_arms_are_ids() -> None:
    table = frame(arms=OFFERS, name=OFFERS)
    with pytest.raises(coterie.errors.ArgumentError, match="leave out the column ids"):
        read_log(table, items=pl.DataFrame(ITEMS), columns={"ids": "name"})


def test_a_saved_log_holds_each_vector_once(tmp_path: Path) -> None:
    """2 bytes for a number among 60 items and 32 for a vector, not 32 for each arm of each event."""
    log = logged(world(), 2000, 0.3)
    log.save(tmp_path / "log.parquet")
    table = pl.read_parquet(tmp_path / "log.parquet")
    assert table["vectors"].drop_nulls().list.len().sum() == len(log.items) == 60
    assert (tmp_path / "log.parquet").stat().st_size < 0.3 * 2000 * 4 * 32


def test_whole_numbers_stay_numbers() -> None:
    assert read_log(frame(user=[70, 5, 70, 5])).user_ids == (5, 70)
    assert read_log(frame(user=[70.0, 5.0, 70.0, 5.0])).user_ids == (5, 70)
    assert read_log(frame(user=["07", "5", "07", "5"])).user_ids == ("5", "07")


def test_columns_can_have_other_names() -> None:
    named = frame().rename({"user": "customer", "reward": "click"})
    log = read_log(named, columns={"user": "customer", "reward": "click"})
    assert_same_log(log, read_log(frame()))


def test_without_times_rows_are_in_order() -> None:
    assert read_log(frame().drop("time")).rewards.tolist() == [1, 0, 0.5, 0]


@pytest.mark.parametrize("kind", [datetime.fromisoformat, str])
def test_timestamps_are_times(kind: Any) -> None:
    times = [kind(f"2024-05-0{day} 12:00:00") for day in (4, 1, 2, 3)]
    log = read_log(frame(time=times))
    assert np.diff(log.times).tolist() == [86400] * 3
    assert_same_log(log.__class__(**{**vars_of(log), "times": np.arange(1, 5)}), read_log(frame()))


def vars_of(log: Any) -> dict[str, Any]:
    return {name: getattr(log, name) for name in log.__slots__}


def test_uniform_logs_need_no_propensities() -> None:
    log = read_log(frame().drop("propensity"), uniform=True)
    assert np.allclose(log.propensities, 1 / log.sizes)


def test_items_by_id_give_the_same_log(tmp_path: Path) -> None:
    pl.DataFrame(ITEMS).write_csv(tmp_path / "items.csv")
    by_id = frame(arms=OFFERS)
    for items in (pl.DataFrame(ITEMS), tmp_path / "items.csv"):
        assert_same_log(read_log(by_id, items=items), read_log(frame(ids=OFFERS)))
    numbers = [[ITEMS["id"].index(one) for one in offer] for offer in OFFERS]
    array = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert_same_log(read_log(frame(arms=numbers), items=array), read_log(frame(ids=numbers)))
    text = by_id.with_columns(arms=pl.Series([json.dumps(offer) for offer in OFFERS]))
    assert_same_log(read_log(text, items=pl.DataFrame(ITEMS)), read_log(frame(ids=OFFERS)))


V = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"propensity": [0.5, 1.2, 1, 1]}, r"the data frame: event 1 \(from 0\): propensity must be above 0"),
        (
            {"propensity": [0.5, None, 1, 1]},
            r"event 1 \(from 0\): propensity must be a finite number",
        ),
        ({"reward": [1, None, 1, 1]}, r"event 1 \(from 0\): reward must be a finite number, got None"),
        ({"reward": [1, float("nan"), 1, 1]}, r"event 1 \(from 0\): reward must be a finite number, got nan"),
        (
            {"reward": ["1", "yes", "1", "1"]},
            r"event 1 \(from 0\): reward must be .* number, got 'yes'",
        ),
        ({"reward": [[1], [1], [1], [1]]}, "reward must hold numbers, got List"),
        ({"user": ["a", None, "b", "c"]}, r"event 1 \(from 0\): user must be a whole number or text"),
        ({"arm": [1, 0, 2, 2]}, r"event 2 \(from 0\): arm must be from 0 to 1, got 2"),
        ({"arm": [1, 0.5, 1, 2]}, r"event 1 \(from 0\): arm must be a whole number, got 0.5"),
        ({"arm": [1, float("inf"), 1, 2]}, r"event 1 \(from 0\): arm must be a whole number, got inf"),
        (
            {"arms": [V, V, [[1.0]], V]},
            r"event 2 \(from 0\): arms must be vectors of one length",
        ),
        ({"arms": [V, V, [], V]}, r"event 2 \(from 0\): arms must hold at least one arm, got none"),
        ({"arms": [V, V, None, V]}, r"event 2 \(from 0\): arms must hold at least one arm, got none"),
        (
            {"arms": [V, V, [[1.0, None], [1.0, 2.0]], V]},
            r"event 2 \(from 0\): arms must hold finite numbers",
        ),
        ({"arms": OFFERS}, "arms must be a list of vectors for each event, got List.*give their vectors too"),
        ({"arms": [1.0, 2.0, 3.0, 4.0]}, "arms must be a list of vectors for each event, got Float64"),
        ({"arms": ["[1, 2]"] * 4}, r"event 0 \(from 0\): arms must be JSON such as \[\[0.1"),
        ({"arms": ["[[1, 2], [1, 2]]", "[[", "", ""]}, r"event 2 \(from 0\): arms must be JSON"),
        ({"time": [1, 2, None, 4]}, r"event 2 \(from 0\): time must be a finite number, got None"),
        ({"time": ["now", "then", "soon", "never"]}, "time must hold numbers or timestamps such as"),
    ],
)
def test_a_bad_value_is_refused_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(coterie.DataError, match=sentence):
        read_log(frame(**changes))


def test_a_missing_column_is_named() -> None:
    for name in ("user", "arms", "arm", "reward"):
        with pytest.raises(coterie.ArgumentError, match=f"the log has no column '{name}'; it has"):
            read_log(frame().drop(name))
    with pytest.raises(coterie.ArgumentError, match="no column 'when'"):
        read_log(frame(), columns={"time": "when"})
    with pytest.raises(coterie.UnknownName, match="no column of a log 'goods'"):
        read_log(frame(), columns={"goods": "product"})


def test_a_wrong_table_of_items_is_named(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("id,x\nx,1.0\ny,wide\n")
    with pytest.raises(coterie.DataError, match=r"^line 3 of items\.csv: x must be a finite number"):
        read_log(frame(), items=tmp_path / "items.csv")


def test_items_that_do_not_fit_are_refused() -> None:
    by_id = frame(arms=OFFERS)
    with pytest.raises(coterie.DataError, match=r"event 0 \(from 0\): item 'z' is offered but has no vector"):
        read_log(by_id, items=pl.DataFrame(ITEMS)[:2])
    with pytest.raises(coterie.DataError, match="items must have different ids, got 'x' twice"):
        read_log(by_id, items=pl.DataFrame({**ITEMS, "id": ["x", "x", "z"]}))
    with pytest.raises(coterie.DataError, match="needs a column for the item and further ones"):
        read_log(by_id, items=pl.DataFrame({"id": ["x"]}))
    with pytest.raises(coterie.ArgumentError, match=r"items must have shape \(n_items, dim\)"):
        read_log(by_id, items=np.ones(3))


def test_files_that_are_no_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(coterie.MissingData, match=r"no file at .*run --log FILE"):
        read_log(tmp_path / "log.parquet")
    (tmp_path / "log.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(coterie.DataError, match=r"log\.parquet: it cannot be read as Parquet"):
        read_log(tmp_path / "log.parquet")
    (tmp_path / "log.xlsx").write_bytes(b"x")
    with pytest.raises(
        coterie.ArgumentError, match=r"a \.csv, \.tsv, \.parquet, \.jsonl or \.dsjson file, got 'log\.xlsx'"
    ):
        read_log(tmp_path / "log.xlsx")
    frame()[:0].write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(coterie.DataError, match=r"empty\.parquet: the log has no events"):
        read_log(tmp_path / "empty.parquet")
    frame().write_parquet(tmp_path / "newer.parquet", metadata={"coterie-log": "9"})
    with pytest.raises(coterie.DataError, match="its format has version 9, this release reads 1"):
        read_log(tmp_path / "newer.parquet")
    frame().write_parquet(tmp_path / "cut.parquet", metadata={"coterie-log": "1"})
    with pytest.raises(coterie.DataError, match="it lacks the column 'items' of a log"):
        read_log(tmp_path / "cut.parquet")


def test_matrices_in_cells_are_answered_with_what_to_do() -> None:
    table: Any = frame().to_pandas()
    table["arms"] = [np.array(arms) for arms in frame()["arms"].to_list()]
    with pytest.raises(coterie.DataError, match=r"arms must be lists of lists \(array.tolist\(\)\)"):
        read_log(table)
