from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from coterie import datasets
from coterie.errors import ArgumentError, MissingData, UnknownName

FILES = [name for name in datasets.names() if datasets.about(name).files]


def test_the_datasets_are_listed() -> None:
    ratings = ("movielens", "lastfm", "yelp", "jester", "polis", "coat", "movietweetings", "sushi")
    assert datasets.names() == ("synthetic", *ratings, "interactions")


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="no dataset 'movielense'; did you mean 'movielens'"):
        datasets.load("movielense")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_says_where_to_get_it_what_it_is_called_and_what_the_licence_asks(name: str) -> None:
    about = datasets.about(name)
    assert about.files
    assert about.url.startswith("https://")
    with pytest.raises(MissingData) as caught:
        datasets.load(name, "nowhere/at/all")
    for part in ("nowhere/at/all", about.url, about.archive, about.files[0], about.licence):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_no_path_and_no_data_folder_says_the_same(name: str) -> None:
    with pytest.raises(MissingData, match=r"\$COTERIE_DATA is not set; download"):
        datasets.load(name)


@pytest.mark.parametrize("name", ["synthetic", "interactions"])
def test_what_needs_no_download_says_so(name: str) -> None:
    assert datasets.about(name).hint() == f"{name}: nothing to download"


@pytest.mark.parametrize("name", ["synthetic", *FILES])
@pytest.mark.parametrize(
    "option",
    [
        {"threshold": 3.0},
        {"columns": ("user", "item")},
        {"missing": "drop"},
        {"separator": ";"},
        {"encoding": "cp1252"},
    ],
)
def test_how_an_own_table_is_read_is_for_interactions_only(name: str, option: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=f"^{next(iter(option))}: for 'interactions', your own table"):
        datasets.load(name, **option)


def test_importing_datasets_imports_no_columnar_library() -> None:
    code = """
import sys, coterie.datasets
coterie.datasets.load("synthetic", dim=2, n_users=2, n_items=2)
heavy = {"polars", "pyarrow", "pandas", "scipy", "tqdm"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)
