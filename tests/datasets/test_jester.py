"""Jester, read beside a naive reading of the same files."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie.datasets import load, load_payoffs
from coterie.environments import Payoffs
from coterie.types import Floats
from datasets import generated

ROWS = generated.jester_ratings()
FULL = [user for user in range(1, 41) if sum(row.user == user for row in ROWS) == 12]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generated.write(tmp_path / "jester5k" / "ratings.csv", generated.jester_csv(ROWS))
    generated.write(tmp_path / "jester5k" / "jokes.csv", generated.jokes_csv())
    return tmp_path


def test_those_who_rated_everything_are_served_with_their_own_ratings(folder: Path) -> None:
    table = load_payoffs("jester", folder, setting="complete", dim=5)
    assert 10 < len(FULL) < 40
    assert table.user_ids.tolist() == FULL
    assert table.item_ids.tolist() == list(range(1, 13))
    ratings = {(row.user, row.item): row.rating for row in ROWS}
    expected = [[(ratings[user, joke] + 10) / 20 for joke in range(1, 13)] for user in FULL]
    np.testing.assert_allclose(table.payoffs.dense(), expected, rtol=1e-12)
    assert table.offers == "known"
    assert len(table.payoffs) == 12 * len(FULL)
    world = Payoffs(table, n_arms=12)
    assert world.n_users == len(FULL)
    np.testing.assert_allclose(
        np.sort(world.block(0).means[0]), np.sort(expected[world.members[world.block(0).users[0]]])
    )


def test_no_rating_of_a_served_user_reaches_the_vectors(folder: Path) -> None:
    before = load_payoffs("jester", folder, setting="complete", dim=5)
    own = [row._replace(rating=-row.rating) if row.user in FULL else row for row in ROWS]
    generated.write(folder / "jester5k" / "ratings.csv", generated.jester_csv(own))
    after = load_payoffs("jester", folder, setting="complete", dim=5)
    np.testing.assert_array_equal(before.items, after.items)
    np.testing.assert_allclose(before.payoffs.values, 1 - after.payoffs.values)
    others = [row._replace(rating=-row.rating) if row.user not in FULL else row for row in ROWS]
    generated.write(folder / "jester5k" / "ratings.csv", generated.jester_csv(others))
    assert not np.allclose(before.items, load_payoffs("jester", folder, setting="complete", dim=5).items)


def naive_word_vectors(texts: list[str], dim: int) -> Floats:
    """tf·ln(N/(1 + df)) of the words of two texts or more, rows of length 1, and its strongest directions."""
    bags = [Counter(re.findall(r"[a-z]+", text.lower())) for text in texts]
    words = sorted(word for word in set().union(*bags) if sum(word in bag for bag in bags) > 1)
    weights = np.array([[bag[word] for word in words] for bag in bags], float)
    weights *= np.log(len(texts) / (1 + (weights > 0).sum(axis=0)))
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    left, singular, _ = np.linalg.svd(weights / np.where(lengths > 0, lengths, 1), full_matrices=False)
    directions = left[:, : dim - 1] * singular[: dim - 1]
    return np.asarray(directions / np.sqrt((directions**2).sum(axis=1).mean()))


def test_the_words_of_the_jokes_make_vectors_without_any_rating(folder: Path) -> None:
    table = load_payoffs("jester", folder, setting="complete", vectors="text", dim=4)
    rows = list(csv.reader(io.StringIO(generated.jokes_csv())))[1:]
    expected = naive_word_vectors([text for _, text in rows], 4)
    assert set(table.items[:, 0].tolist()) == {5.0}
    np.testing.assert_allclose(np.abs(table.items[:, 1:]), np.abs(expected), atol=1e-9)
    assert not table.items[4, 1:].any()  # the joke that shares no word
    assert "27 of 40 users, who did not rate every item" in table.provenance.left_out
    assert load_payoffs("jester", folder, vectors="text", dim=4).n_users == 40
    generated.write(folder / "jester5k" / "jokes.csv", generated.jokes_csv().replace("then", "than"))
    other = load_payoffs("jester", folder, setting="complete", vectors="text", dim=4)
    assert other.provenance.sha256 != table.provenance.sha256


def test_likes_make_vectors_of_users_and_items_as_for_other_datasets(folder: Path) -> None:
    data = load("jester", folder, dim=4, n_users=30)
    assert data.provenance.rows == len(ROWS)
    kept = set(data.user_ids.tolist())
    liked = sum(row.rating > 0 for row in ROWS if row.user in kept)
    assert data.provenance.density == pytest.approx(liked / (30 * 12))


def test_an_archive_of_both_files_will_do(folder: Path) -> None:
    members = [
        (f"jester5k/{name}", (folder / "jester5k" / name).read_bytes())
        for name in ("ratings.csv", "jokes.csv")
    ]
    path = generated.write_zip(folder / "jester5k.zip", members)
    zipped = load_payoffs("jester", path, setting="complete", vectors="text", dim=4)
    plain = load_payoffs("jester", folder / "jester5k", setting="complete", vectors="text", dim=4)
    np.testing.assert_array_equal(zipped.items, plain.items)


def test_the_ratings_of_another_dataset_are_passed_over(folder: Path) -> None:
    generated.write(folder / "ml-small" / "ratings.csv", generated.movielens_csv(generated.rows()))
    assert load_payoffs("jester", folder, setting="complete", dim=4).provenance.name == "jester"
    assert load_payoffs("movielens", folder, dim=4).provenance.name == "movielens"
    (folder / "jester5k" / "ratings.csv").unlink()
    says = r"no jester file in .* \(ml-small/ratings.csv is of another dataset, by its first line\); download"
    with pytest.raises(coterie.MissingData, match=says):
        load_payoffs("jester", folder)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1,2", "line 3 of ratings.csv: expected 3 fields separated by ',', got 2"),
        ("1,two,3.5", "line 3 of ratings.csv: joke 'two' is not a whole number"),
        ("1,2,10.5", "line 3 of ratings.csv: rating '10.5' is not a number from -10 to 10"),
        ("1,2,-11", "line 3 of ratings.csv: rating '-11' is not a number from -10 to 10"),
        ("1,2,funny", "line 3 of ratings.csv: rating 'funny' is not a number"),
    ],
)
def test_a_malformed_line_says_its_number(tmp_path: Path, line: str, says: str) -> None:
    path = generated.write(tmp_path / "ratings.csv", f"user,joke,rating\n1,1,-3.50\n{line}\n")
    with pytest.raises(coterie.DataError, match=says):
        load_payoffs("jester", path)


def test_what_is_missing_gets_a_sentence(folder: Path) -> None:
    (folder / "jester5k" / "jokes.csv").unlink()
    with pytest.raises(coterie.MissingData, match=r"no jester file beside .*its jokes.csv"):
        load_payoffs("jester", folder, vectors="text")
    generated.write(folder / "jester5k" / "jokes.csv", "joke,text\n1,short\n")
    with pytest.raises(coterie.DataError, match=r"jokes.csv has no text of the joke 2"):
        load_payoffs("jester", folder, vectors="text")
    generated.write(folder / "jester5k" / "jokes.csv", "joke,body\n1,short\n")
    with pytest.raises(coterie.DataError, match=r"line 1 of jokes.csv: no column 'text' in 'joke,body'"):
        load_payoffs("jester", folder, vectors="text")
    with pytest.raises(coterie.ArgumentError, match=r"vectors='text' is for jester, .*not for 'movielens'"):
        load_payoffs("movielens", folder, vectors="text")
    with pytest.raises(coterie.UnknownName, match="no kind of vectors 'txt'; did you mean 'text'"):
        load_payoffs("jester", folder, vectors="txt")
    half = [row for row in ROWS if row.user not in FULL]
    path = generated.write(folder / "half" / "ratings.csv", generated.jester_csv(half))
    with pytest.raises(coterie.DataError, match=r"no user of ratings.csv rated all 12 items"):
        load_payoffs("jester", path, setting="complete")
