"""`coterie data`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Call

SIZE = ("--dim", "2", "--users", "5", "--items", "8")


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    """Twelve users who each like some of ten items."""
    rows = [f"u{u},i{i},{1 + (u * i) % 5}" for u in range(12) for i in range(10) if (u + i) % 3]
    path = tmp_path / "clicks.csv"
    path.write_text("\n".join(["who,what,stars", *rows]))
    return path


def test_list_says_what_is_ready_and_what_is_missing(coterie: Call) -> None:
    told = {one["name"]: one for one in json.loads(coterie("data", "list", "--json").stdout)}
    assert told["synthetic"]["ready"]
    assert not told["movielens"]["ready"]
    assert told["movielens"]["url"].startswith("https://")
    page = coterie("data", "list").output
    assert "missing: ml-25m.zip" in page


def ratings(folder: Path) -> None:
    folder.mkdir()
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\n1,1,5,0\n")


def test_list_finds_files_in_a_folder_and_does_not_guess_between_two(coterie: Call, tmp_path: Path) -> None:
    def state() -> str:
        told = json.loads(coterie("data", "list", "--data", tmp_path, "--json").stdout)
        return next(str(one["state"]) for one in told if one["name"] == "movielens")

    ratings(tmp_path / "ml-25m")
    assert state() == f"ready: {tmp_path / 'ml-25m' / 'ratings.csv'}"
    ratings(tmp_path / "ml-latest-small")
    assert "holds several ratings.csv, name one: ml-25m" in state()


def test_describe_without_a_file_says_where_to_get_it(coterie: Call) -> None:
    result = coterie("data", "describe", "lastfm")
    assert result.exit_code == 0
    assert "hetrec2011-lastfm-2k.zip" in result.stdout
    assert "licence" in result.stdout
    assert "--data" in result.stdout


def test_describe_shows_the_provenance(coterie: Call, clicks: Path) -> None:
    own = ("--columns", "user=who,item=what,value=stars", "--threshold", "2")
    page = coterie("data", "describe", "interactions", "--data", clicks, *own, *SIZE).stdout
    assert "of 2 dimensions" in page
    assert "above 2" in page
    told = json.loads(coterie("data", "describe", "synthetic", *SIZE, "--json").stdout)
    assert told["provenance"]["dim"] == 2


def test_prepare_keeps_vectors_in_the_cache(coterie: Call, clicks: Path, tmp_path: Path) -> None:
    result = coterie("data", "prepare", "interactions", "--data", clicks, *SIZE)
    assert result.exit_code == 0
    assert str(tmp_path / "cache") in result.stdout
    assert len(list((tmp_path / "cache" / "datasets").glob("*.npz"))) == 1


def test_prepare_does_what_it_can_and_tells_the_rest(coterie: Call) -> None:
    result = coterie("data", "prepare", "synthetic", "yelp", *SIZE, "--json")
    assert result.exit_code == 3
    told = json.loads(result.stdout)
    assert [one["name"] for one in told["made"]] == ["synthetic"]
    assert told["missing"] == ["yelp"]


def test_a_malformed_file_is_exit_code_1_and_names_the_line(coterie: Call, tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("userId,movieId,rating,timestamp\n1,1,5,0\n1,x,5,0\n")
    result = coterie("data", "prepare", "movielens", "--data", file)
    assert result.exit_code == 1
    assert "line 3 of ratings.csv" in result.stderr
