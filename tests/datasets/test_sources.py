from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from coterie.datasets import load, sources
from coterie.errors import ArgumentError, DataError, MissingData
from datasets import generated
from inspection import hash_chunks_of

TABLE = generated.rows()


def test_the_hash_of_a_file_larger_than_a_chunk_is_its_sha256(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hash_chunks_of(10, monkeypatch)
    path = generated.write(tmp_path / "x", 33 * "abc")
    assert sources.digest(path) == sha256(path.read_bytes()).hexdigest()


def test_several_candidates_in_a_folder_are_named_and_none_is_guessed(tmp_path: Path) -> None:
    for release in ("ml-1", "ml-2"):
        generated.write(tmp_path / release / "ratings.csv", generated.movielens_csv(TABLE))
    with pytest.raises(ArgumentError, match=r"holds several ratings.csv, name one: ml-1.ratings.csv, ml-2"):
        load("movielens", tmp_path)


def test_the_file_in_the_folder_itself_goes_before_those_in_subfolders(tmp_path: Path) -> None:
    generated.write(tmp_path / "ml-1" / "ratings.csv", "rubbish")
    generated.write(tmp_path / "u.data", generated.movielens_data(TABLE))
    facts = load("movielens", tmp_path, dim=5, n_users=20, n_items=40).provenance
    assert facts.file == "u.data"


def test_a_folder_with_the_download_as_it_came_will_do(tmp_path: Path) -> None:
    content = generated.lastfm(TABLE).encode()
    generated.write_zip(tmp_path / "hetrec2011-lastfm-2k.zip", [("user_taggedartists.dat", content)])
    facts = load("lastfm", tmp_path, dim=5, n_users=20, n_items=40).provenance
    assert facts.file == "hetrec2011-lastfm-2k.zip"


def test_an_empty_folder_is_missing_data(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="no lastfm file in '"):
        load("lastfm", tmp_path)


def test_a_home_folder_may_be_written_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    generated.write(tmp_path / "u.data", generated.movielens_data(TABLE))
    assert load("movielens", "~/u.data", dim=5, n_users=20, n_items=40).provenance.file == "u.data"


@pytest.mark.parametrize("name", ["ml.zip", "ml.tar", "ml.tgz"])
def test_an_archive_that_is_none_is_a_data_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"^{name} cannot be unpacked: "):
        load("movielens", generated.write(tmp_path / name, 100 * "rubbish"))


def test_a_damaged_zip_member_is_a_data_error(tmp_path: Path) -> None:
    path = generated.write_zip(tmp_path / "ml.zip", [("u.data", generated.movielens_data(TABLE).encode())])
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"^u.data is damaged: "):
        load("movielens", path)


def test_a_truncated_tgz_is_a_data_error(tmp_path: Path) -> None:
    path = tmp_path / "ml.tgz"
    content = generated.tar([("u.data", generated.movielens_data(TABLE).encode())], gzipped=True)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"is damaged|cannot be unpacked"):
        load("movielens", path)


def test_a_frame_is_only_for_interactions() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(ArgumentError, match="'lastfm' reads a file; for a data frame use 'interactions'"):
        load("lastfm", polars.DataFrame({"user": [1], "item": [2]}))
