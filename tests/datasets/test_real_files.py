"""The facts of the real files, where these are: in $COTERIE_DATA, or in shared/data beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from coterie.datasets import load, load_payoffs

HERE = Path(__file__).resolve()
DATA = Path(os.environ.get("COTERIE_DATA") or HERE.parents[2].parent / "shared" / "data")


class Facts(NamedTuple):
    name: str
    file: str
    sha256: str
    rows: int
    users: int
    items: int
    density: float
    zero_items: int
    tied_items: int
    singular: tuple[str, ...]  # no. 1, 2, 10, 50 and 200, to the digits that are known


FACTS = [
    Facts(
        "lastfm",
        "hetrec2011-lastfm-2k/user_taggedartists.dat",
        "c4a9ffae9ab47a9f9b2f0678ab1f7e5c1db4ca818837d8cddd1f5699c5bbf048",
        186_479,
        1_892,
        12_523,
        0.034,
        184,
        451,
        ("64", "35", "21", "13.8", "3.1"),
    ),
    Facts(
        "yelp",
        "yelp/yelp_academic_dataset_review.json",
        "4c0a1e2619adba383d6d9b3f0af2dd61286c29d4ef5b8a2d5ce85cdb700f396b",
        198_397,
        16_239,
        14_284,
        0.022,
        731,
        412,
        ("43", "22", "15", "11.1", "5.5"),
    ),
    Facts(
        "movielens",
        "ml-latest-small/ratings.csv",
        "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646",
        100_836,
        610,
        9_724,
        0.044,
        523,
        1_298,
        ("99", "44", "23", "14.2", "4.1"),
    ),
    Facts(
        "movielens",
        "ml-latest-head/ratings.csv",
        "c40cbe0d7b17241bf06da8c8cdf477e3aa54a7ce36dd332252acaf20d6cae957",
        206_584,
        2_149,
        13_049,
        0.059,
        216,
        485,
        ("113", "54", "25", "16.1", "3.7"),
    ),
]


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts.file)
def test_the_papers_preprocessing_gives_the_known_figures(facts: Facts) -> None:
    path = DATA / facts.file
    if not path.exists():
        pytest.skip(f"{facts.file} is not here: set COTERIE_DATA to the folder of the real files")
    data = load(facts.name, path)
    found = data.provenance
    assert (found.sha256, found.rows) == (facts.sha256, facts.rows)
    assert (found.users_found, found.items_found) == (facts.users, facts.items)
    assert round(found.density, 3) == facts.density
    assert (found.dropped_users, found.dropped_items) == (0, facts.zero_items)
    assert found.tied_items == facts.tied_items
    at = [found.singular_values[k - 1] for k in (1, 2, 10, 50, 200)]
    digits = [len(text.partition(".")[2]) for text in facts.singular]
    assert tuple(f"{value:.{d}f}" for value, d in zip(at, digits, strict=True)) == facts.singular
    assert data.users.shape == (200, 50)
    assert data.items.shape == (5000 - facts.zero_items, 50)
    np.testing.assert_allclose(np.linalg.norm(data.items, axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("facts", [f for f in FACTS if f.name == "movielens"], ids=lambda facts: facts.file)
def test_ones_own_table_of_the_same_rows_gives_the_same_vectors(facts: Facts) -> None:
    path = DATA / facts.file
    if not path.exists():
        pytest.skip(f"{facts.file} is not here: set COTERIE_DATA to the folder of the real files")
    ours, own = load(facts.name, path), load("interactions", path, threshold=3)
    np.testing.assert_array_equal(ours.items, own.items)
    np.testing.assert_array_equal(ours.item_ids, own.item_ids)


def test_lastfm_2014_has_the_items_and_listens_that_are_known() -> None:
    folder = DATA / "hetrec2011-lastfm-2k"
    if not (folder / "user_artists.dat").exists():
        pytest.skip("user_artists.dat is not here: set COTERIE_DATA to the folder of the real files")
    table = load_payoffs("lastfm", folder, setting="lastfm-2014")
    assert (len(table.items), len(table.payoffs), table.n_users) == (12_133, 86_608, 1_892)
    assert int((table.payoffs.counts >= 5).sum()) == 1_876
    assert table.friends is not None
    assert len(table.friends) == 25_434


class Shape(NamedTuple):
    name: str
    folder: str
    options: dict[str, Any]
    users: int
    items: int
    payoffs: int


SHAPES = [
    Shape("jester", "jester5k", {"setting": "complete"}, 1_473, 100, 147_300),
    Shape("jester", "jester5k", {"vectors": "text"}, 5_000, 100, 363_209),
    Shape("polis", "polis", {"vectors": "text"}, 3_684, 1_581, 173_942),
    Shape("polis", "polis", {"vectors": "text", "conversation": "vtaiwan.uberx"}, 1_219, 197, 47_839),
    Shape("coat", "coat", {"vectors": "features"}, 290, 300, 4_640),
    Shape("movietweetings", "movietweetings-100k", {"setting": "stream"}, 8_277, 5_000, 43_957),
    Shape("sushi", "sushi", {}, 2_500, 10, 25_000),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.name}-{len(shape.options)}")
def test_payoffs_of_the_real_files_are_as_many_as_are_known(shape: Shape) -> None:
    folder = DATA / shape.folder
    if not folder.exists():
        pytest.skip(f"{shape.folder} is not here: set COTERIE_DATA to the folder of the real files")
    table = load_payoffs(shape.name, folder, dim=8, **shape.options)
    assert (table.n_users, len(table.items), len(table.payoffs)) == shape[3:]
    assert 0 <= table.payoffs.values.min() < table.payoffs.values.max() <= 1 or table.events is not None
