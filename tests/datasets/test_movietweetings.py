"""MovieTweetings, read beside a naive reading of the same files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie.datasets import load, load_payoffs
from coterie.environments import Stream
from datasets import generated

ROWS = generated.rows(n_users=40, n_items=50, count=900)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generated.write(tmp_path / "100K" / "ratings.dat", generated.tweeted(ROWS))
    generated.write(tmp_path / "100K" / "movies.dat", generated.tweeted_films())
    return tmp_path


def naive_lines(folder: Path) -> list[tuple[int, int, float, int]]:
    lines = (folder / "100K" / "ratings.dat").read_text().splitlines()
    parts = [line.split("::") for line in lines]
    return [(int(user), int(film), float(rating), int(time)) for user, film, rating, time in parts]


def test_ratings_are_read_with_their_times(folder: Path) -> None:
    table = load_payoffs("movietweetings", folder, setting="stream", vectors="text", dim=5)
    world = Stream(table, n_arms=1)
    expected = sorted(naive_lines(folder), key=lambda row: row[3])
    assert world.n_rounds == len(expected)
    assert [int(table.item_ids[item]) for item in world.events] == [film for _, film, _, _ in expected]
    assert [int(table.user_ids[world.members[u]]) for u in world.users] == [row[0] for row in expected]


def test_payoffs_are_ratings_of_ten(folder: Path) -> None:
    table = load_payoffs("movietweetings", folder, dim=5)
    ratings = {(user, film): rating for user, film, rating, _ in naive_lines(folder)}
    assert table.n_users == 20
    known = table.payoffs
    for row, column, value in zip(known.rows, known.columns, known.values, strict=True):
        assert value == pytest.approx(ratings[int(table.user_ids[row]), int(table.item_ids[column])] / 10)
    data = load("movietweetings", folder, dim=4, n_users=40, n_items=50)
    assert data.provenance.density == pytest.approx(sum(r > 6 for r in ratings.values()) / (40 * 50))


def test_titles_and_genres_make_vectors(folder: Path) -> None:
    table = load_payoffs("movietweetings", folder, vectors="text", dim=4)
    assert table.n_users == 40
    one, same, other = (table.item_ids.tolist().index(film) for film in (1, 13, 2))
    np.testing.assert_allclose(table.items[one], table.items[same])
    assert not np.allclose(table.items[one], table.items[other])


def test_movielens_files_of_the_same_name_are_passed_over(folder: Path) -> None:
    generated.write(folder / "ml-1m" / "ratings.dat", generated.movielens_dat(ROWS))
    assert load_payoffs("movietweetings", folder, dim=4).payoffs.values.max() == 1.0
    assert load_payoffs("movielens", folder, dim=4).provenance.name == "movielens"
    (folder / "100K" / "ratings.dat").unlink()
    with pytest.raises(coterie.MissingData, match="no movietweetings file in"):
        load_payoffs("movietweetings", folder)


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (
            "ratings.dat",
            "1::0000002::11::3\n",
            "rating '11' is not a number from 0 to 10",
        ),
        (
            "ratings.dat",
            "1::0000002::5\n",
            "expected 4 fields separated by '::', got 3",
        ),
        ("movies.dat", "0000001::One (1901)::\n", "movies.dat has no title of the film 0000002"),
        ("movies.dat", "One\n", "line 1 of movies.dat: expected a film's number"),
    ],
)
def test_broken_files_get_a_sentence(folder: Path, file: str, content: str, says: str) -> None:
    generated.write(folder / "100K" / file, content)
    with pytest.raises(coterie.DataError, match=says):
        load_payoffs("movietweetings", folder, vectors="text", dim=3)
