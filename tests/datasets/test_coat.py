"""Coat, read beside a naive reading of the same files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie.datasets import load, load_payoffs
from coterie.datasets.loaders import coat
from datasets import generated


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generated.coat_folder(tmp_path / "coat")
    return tmp_path


def test_payoffs_are_the_ratings_of_coats_drawn_at_random(folder: Path) -> None:
    table = load_payoffs("coat", folder, vectors="features", dim=5)
    random = generated.coat_ratings()
    assert table.user_ids.tolist() == list(range(1, 21))
    known = table.payoffs
    found = {
        (int(table.user_ids[u]) - 1, int(table.item_ids[i]) - 1): 1 + 4 * value
        for u, i, value in zip(known.rows, known.columns, known.values, strict=True)
    }
    assert found == {(u, i): r for u, row in enumerate(random) for i, r in enumerate(row) if r}
    assert table.offers == "known"


def test_features_make_vectors_without_any_rating(folder: Path) -> None:
    table = load_payoffs("coat", folder, vectors="features", dim=5)
    features = np.array(generated.coat_features(15, (2, 4, 3)), float)[table.item_ids.astype(int) - 1]
    left, singular, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    expected = left[:, :4] * singular[:4]
    expected /= np.sqrt((expected**2).sum(axis=1).mean())
    np.testing.assert_allclose(np.abs(table.items[:, 1:]), np.abs(expected), atol=1e-9)
    assert set(table.items[:, 0].tolist()) == {5.0}
    assert table.user_features is not None
    assert table.user_features.tolist() == generated.coat_features(20, (2, 3), seed=1)
    other = [[6 - r if r else 0 for r in row] for row in generated.coat_ratings()]
    generated.write(folder / "coat" / "test.ascii", generated.ascii_matrix(other))
    np.testing.assert_array_equal(load_payoffs("coat", folder, vectors="features", dim=5).items, table.items)
    halves = load_payoffs("coat", folder, dim=4)
    assert halves.n_users == 10
    assert halves.user_features is not None
    assert len(halves.user_features) == 10


def test_an_archive_will_do(folder: Path) -> None:
    members = [
        (path.relative_to(folder).as_posix(), path.read_bytes()) for path in sorted(folder.rglob("*.ascii"))
    ]
    path = generated.write_zip(folder / "coat.zip", members)
    zipped, plain = (
        load_payoffs("coat", place, vectors="features", dim=5) for place in (path, folder / "coat")
    )
    np.testing.assert_array_equal(zipped.items, plain.items)
    np.testing.assert_array_equal(zipped.payoffs.values, plain.payoffs.values)
    assert load("coat", path, dim=3).items.tolist() == load("coat", folder / "coat", dim=3).items.tolist()


def test_both_kinds_of_ratings_are_feedback_for_vectors_of_users_and_items(folder: Path) -> None:
    data = load("coat", folder, dim=3)
    assert data.provenance.rows == 20 * (6 + 8)
    both = np.maximum(generated.coat_ratings(), generated.coat_ratings(each=8, seed=1))
    assert data.provenance.density == pytest.approx((both > 3).mean())
    tables = coat.tables(folder)
    assert tables.random.tolist() == generated.coat_ratings()
    assert tables.chosen.tolist() == generated.coat_ratings(each=8, seed=1)
    assert tables.propensities.min() == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("test.ascii", "0 1 2\n0 1\n", "line 2 of test.ascii: expected 3 numbers, got 2"),
        ("test.ascii", "0 1 x\n", "line 1 of test.ascii: could not convert string to float"),
        ("test.ascii", "0 1 7\n", "row 1 of test.ascii: entry 3 must be a whole number from 0 to 5, got 7"),
        ("test.ascii", "0 0 0\n", "test.ascii has no ratings"),
        ("test.ascii", "", "test.ascii has no rows"),
        (
            "user_item_features/item_features.ascii",
            "0 1\n1 0\n",
            "item_features.ascii has 2 rows",
        ),
    ],
)
def test_broken_files_get_a_sentence(folder: Path, file: str, content: str, says: str) -> None:
    generated.write(folder / "coat" / file, content)
    with pytest.raises(coterie.DataError, match=says):
        load_payoffs("coat", folder, vectors="features", dim=3)


def test_missing_files_are_named(folder: Path) -> None:
    (folder / "coat" / "user_item_features" / "item_features.ascii").unlink()
    with pytest.raises(coterie.MissingData, match=r"no coat file beside .*its item_features.ascii"):
        load_payoffs("coat", folder, vectors="features", dim=3)
    generated.write(folder / "coat" / "propensities.ascii", "0.5 0.5\n")
    with pytest.raises(coterie.DataError, match=r"propensities.ascii has the shape \(1, 2\), test.ascii has"):
        coat.tables(folder)
    with pytest.raises(coterie.MissingData, match=r"no coat file at .*download coat.zip"):
        load_payoffs("coat", folder / "nowhere")
