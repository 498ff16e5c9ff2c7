from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from coterie.datasets import load
from coterie.errors import ArgumentError, DataError, MissingData
from datasets import generated, naive
from inspection import read_blocks_of

TABLE = generated.rows()
EXPECTED = naive.gather([(user, item, rating > 3) for user, item, rating in TABLE], 20, 40)


def as_csv(folder: Path) -> Path:
    return generated.write(folder / "ratings.csv", generated.movielens_csv(TABLE))


def as_windows_csv(folder: Path) -> Path:
    return generated.write(folder / "ratings.csv", generated.movielens_csv(TABLE, end="\r\n"))


def as_renamed_csv(folder: Path) -> Path:
    return generated.write(folder / "mine.csv", generated.movielens_csv(TABLE))


def as_dat(folder: Path) -> Path:
    return generated.write(folder / "ratings.dat", generated.movielens_dat(TABLE))


def as_u_data(folder: Path) -> Path:
    return generated.write(folder / "u.data", generated.movielens_data(TABLE))


def as_folder(folder: Path) -> Path:
    return as_csv(folder / "ml-25m").parent


def as_folder_of_folders(folder: Path) -> Path:
    return as_dat(folder / "data" / "ml-1m").parent.parent


def as_zip(folder: Path) -> Path:
    members = [
        ("ml-25m/", b""),
        ("ml-25m/tags.csv", b"userId,movieId,tag,timestamp\n"),
        ("__MACOSX/ml-25m/ratings.csv", b"rubbish"),
        ("ml-25m/ratings.csv", generated.movielens_csv(TABLE).encode()),
    ]
    return generated.write_zip(folder / "ml-25m.zip", members)


def as_zip_of_dat(folder: Path) -> Path:
    members = [("ml-10M100K/ratings.dat", generated.movielens_dat(TABLE).encode())]
    return generated.write_zip(folder / "ml-10m.zip", members)


def as_zip_of_u_data(folder: Path) -> Path:
    members = [("ml-100k/u.data", generated.movielens_data(TABLE).encode())]
    return generated.write_zip(folder / "ml-100k.zip", members)


RELEASES = [
    as_csv,
    as_windows_csv,
    as_renamed_csv,
    as_dat,
    as_u_data,
    as_folder,
    as_folder_of_folders,
    as_zip,
    as_zip_of_dat,
    as_zip_of_u_data,
]


@pytest.mark.parametrize("block", [100, 1 << 25])
@pytest.mark.parametrize("release", RELEASES)
def test_every_release_gives_the_same_matrix_as_plain_python(
    release: Callable[[Path], Path], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_blocks_of(block, monkeypatch)
    data = load("movielens", release(tmp_path), dim=5, n_users=20, n_items=40)
    zero = EXPECTED.matrix.sum(axis=0) == 0
    assert data.user_ids.tolist() == EXPECTED.users
    assert data.item_ids.tolist() == [i for i, none in zip(EXPECTED.items, zero, strict=True) if not none]
    facts = data.provenance
    assert facts.rows == len(TABLE)
    assert facts.density == EXPECTED.matrix.mean()
    assert facts.dropped_items == zero.sum() > 0
    assert facts.tied_items == EXPECTED.tied_items
    singular = np.linalg.svd(EXPECTED.matrix, compute_uv=False)
    np.testing.assert_allclose(facts.singular_values, singular, atol=1e-10)


def test_a_rating_of_exactly_three_is_no_feedback(tmp_path: Path) -> None:
    table = [generated.Row(1, 1, 3.0), generated.Row(1, 2, 3.5), generated.Row(2, 1, 5.0)]
    path = generated.write(tmp_path / "ratings.csv", generated.movielens_csv(table))
    assert load("movielens", path, dim=1, n_users=2, n_items=2).provenance.density == 0.5


def test_the_provenance_names_the_file_and_its_hash(tmp_path: Path) -> None:
    path = as_zip(tmp_path)
    facts = load("movielens", path, dim=5, n_users=20, n_items=40).provenance
    assert facts.file == "ml-25m.zip"
    assert facts.sha256 == sha256(path.read_bytes()).hexdigest()
    assert facts.feedback == "1 if the rating is above 3"


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    text = generated.movielens_csv(TABLE).replace("\n", "\n\n")
    path = generated.write(tmp_path / "ratings.csv", text)
    assert load("movielens", path, dim=5, n_users=20, n_items=40).provenance.rows == len(TABLE)


def test_a_byte_order_mark_does_not_disturb(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "ratings.csv", "\ufeff" + generated.movielens_csv(TABLE))
    assert load("movielens", path, dim=5, n_users=20, n_items=40).provenance.rows == len(TABLE)


BAD_FIELDS = [
    ("1{0}x{0}4{0}5", "movieId 'x' is not a whole number"),
    ("1{0}2{0}4", "expected 4 fields separated by '{0}', got 3"),
    ("1{0}2{0}4{0}5{0}6", "expected 4 fields separated by '{0}', got 5"),
    ("1{0}2{0}{0}5", "rating '' is not a number from 0 to 5"),
    ("1{0}2{0}nan{0}5", "rating 'nan' is not a number from 0 to 5"),
    ("1{0}2{0}50{0}5", "rating '50' is not a number from 0 to 5"),
    ("1{0}2.5{0}4{0}5", "movieId '2.5' is not a whole number"),
    ("1{0}2{0}4{0}99999999999999999999", "timestamp '99999999999999999999' is not a whole number"),
    ("\udcff{0}2{0}4{0}5", "userId '\ufffd' is not a whole number"),
]


@pytest.mark.parametrize("block", [100, 1 << 25])
@pytest.mark.parametrize("name", ["ratings.csv", "ratings.dat", "u.data"])
@pytest.mark.parametrize(("line", "fault"), BAD_FIELDS)
def test_a_malformed_line_says_its_number(
    line: str, fault: str, name: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_blocks_of(block, monkeypatch)
    separator = {"ratings.csv": ",", "ratings.dat": "::", "u.data": "\t"}[name]
    header = "userId,movieId,rating,timestamp\n" if name == "ratings.csv" else "9::9::1::7\n"
    good = f"7{separator}8{separator}4.0{separator}9\n"
    text = header.replace("::", separator) + 200 * good + line.format(separator) + "\n" + good
    path = tmp_path / name
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DataError) as caught:
        load("movielens", path)
    assert str(caught.value) == f"line 202 of {name}: " + fault.format(repr(separator)[1:-1])


def test_a_field_between_two_colons_is_malformed(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "ratings.dat", "1::2::5::9\n1:7:2::5::9\n")
    with pytest.raises(DataError, match=r"line 2 of ratings.dat: expected 4 fields separated by '::', got 3"):
        load("movielens", path)


def test_a_truncated_last_line_is_malformed(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "ratings.csv", generated.movielens_csv(TABLE)[:-10] + "")
    with pytest.raises(DataError, match=f"line {len(TABLE) + 1} of ratings.csv"):
        load("movielens", path)


def test_a_csv_without_its_header_is_malformed_in_line_1(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "ratings.csv", "1,2,3.5,9\n")
    with pytest.raises(
        DataError, match=r"line 1 of ratings.csv: expected the header 'userId,movieId,.*1,2,3.5,9"
    ):
        load("movielens", path)


@pytest.mark.parametrize("text", ["userId,movieId,rating,timestamp\n", "userId,movieId,rating,timestamp"])
def test_a_file_without_rows_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ratings.csv has no rows"):
        load("movielens", generated.write(tmp_path / "ratings.csv", text))


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"u.data has no rows"):
        load("movielens", generated.write(tmp_path / "u.data", ""))


def test_a_zip_without_ratings_is_missing_data(tmp_path: Path) -> None:
    path = generated.write_zip(tmp_path / "ml.zip", [("ml/movies.csv", b"movieId,title\n")])
    with pytest.raises(MissingData, match=r"no movielens file inside 'ml.zip'; download"):
        load("movielens", path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"reads ratings.csv, ratings.dat or u.data or the original zip"):
        load("movielens", generated.write(tmp_path / "ratings.xlsx", "rubbish"))
