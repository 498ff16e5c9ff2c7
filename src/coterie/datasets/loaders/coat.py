"""Coat: ratings of coats that shoppers chose, and of coats drawn at random (Schnabel et al. 2016)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coterie.datasets.dataset import Dataset, Ids
from coterie.datasets.event_table import Events, EventSource, events_of
from coterie.datasets.item_vectors import from_features
from coterie.datasets.lines import blocks
from coterie.datasets.prepare import Material, liked_rows, prepare
from coterie.datasets.request import Request, Source
from coterie.datasets.sources import About, FileStream, beside, digest, find_file, opened
from coterie.errors import DataError
from coterie.extras import need
from coterie.types import Bools, Floats

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

SPAN = (1.0, 5.0)
TEST, TRAIN, PROPENSITIES = "test.ascii", "train.ascii", "propensities.ascii"
FEATURES, ITEM_FEATURES, USER_FEATURES = "user_item_features", "item_features.ascii", "user_features.ascii"

ABOUT = About(
    name="coat",
    summary="ratings of 300 coats by 290 shoppers: chosen ones, and 16 each drawn at random",
    feedback="1 if the rating is above 3",
    files=(TEST,),
    archive="coat.zip",
    url="https://www.cs.cornell.edu/~schnabts/mnar/",
    licence="research use, cite Schnabel, Swaminathan, Singh, Chandak and Joachims (2016, ICML)",
)


class CoatTables(NamedTuple):
    """The matrices of Coat, a row for each shopper, a column for each coat.

    Parameters
    ----------
    chosen : array of float, shape (n_users, n_items)
        Ratings from 1 to 5 of the coats that shoppers chose, 0 where there is none (`train.ascii`).
    random : array of float, shape (n_users, n_items)
        Ratings of the coats that were drawn at random for them, 0 where there is none (`test.ascii`).
    propensities : array of float, shape (n_users, n_items)
        Estimated probability that a shopper chose a coat (`propensities.ascii`).
    """

    chosen: Floats
    random: Floats
    propensities: Floats


def make(request: Request) -> Dataset:
    """Coats as items, feedback 1 if the rating is above 3, chosen and random ones together."""
    request.refuse_table_options(ABOUT.name)
    path = find_file(ABOUT, request.path)
    files = [beside(ABOUT, path, name)[1] for name in (TEST, TRAIN)]
    hashed = digest(path) if files[0] == files[1] else _joint(files)
    material = Material(ABOUT.name, ABOUT.feedback, path.name, hashed)
    return prepare(material, request, lambda: liked_rows(_all_rows(path)))


def events(place: Source) -> Events:
    """The ratings of the coats that were drawn at random; there are no times."""
    need("polars", "reading a table")
    path = find_file(ABOUT, place)
    source = EventSource(ABOUT.name, TEST, digest(path))
    return events_of(source, _rows(_ratings(path, TEST)), span=SPAN)


def tables(place: Source = None) -> CoatTables:
    """Read all ratings and the propensities, for evaluation on logs.

    Parameters
    ----------
    place : path, optional
        File, archive or folder; by default the folder `$COTERIE_DATA` is searched.

    Returns
    -------
    CoatTables
        The matrices.
    """
    path = find_file(ABOUT, place)
    chosen, random = _ratings(path, TRAIN), _ratings(path, TEST)
    propensities = _matrix(path, PROPENSITIES)
    _check(
        PROPENSITIES, propensities, (propensities > 0) & (propensities <= 1), "a number above 0, at most 1"
    )
    for name, matrix in ((TRAIN, chosen), (PROPENSITIES, propensities)):
        if matrix.shape != random.shape:
            raise DataError(f"{name} has the shape {matrix.shape}, {TEST} has {random.shape}")
    return CoatTables(chosen, random, propensities)


def feature_vectors(place: Source, coats: Ids, dim: int) -> tuple[Floats, str]:
    """Vectors of these coats made of their features, and a hash of the file of features."""
    features, hashed = _features(find_file(ABOUT, place), ITEM_FEATURES, coats)
    return from_features(features, dim), hashed


def user_features(place: Source, shoppers: Ids) -> tuple[Floats, str]:
    """The features of these shoppers, a row each, and a hash of the file."""
    return _features(find_file(ABOUT, place), USER_FEATURES, shoppers)


def _features(path: Path, name: str, ids: Ids) -> tuple[Floats, str]:
    """The rows of these ids, counted from 1, in a file of features."""
    about, place = beside(ABOUT, path, name, FEATURES)
    with opened(about, place) as stream:
        features = _numbers(stream)
    if int(ids.max()) > len(features):
        raise DataError(f"{name} has {len(features)} rows, {TEST} has ratings of no. {int(ids.max())}")
    return features[ids.astype(np.int64) - 1], digest(place)


def _ratings(path: Path, name: str) -> Floats:
    """A matrix of ratings, 0 for none."""
    matrix = _matrix(path, name)
    _check(name, matrix, np.isin(matrix, np.arange(6)), "a whole number from 0 to 5")
    if not matrix.any():
        raise DataError(f"{name} has no ratings")
    return matrix


def _matrix(path: Path, name: str) -> Floats:
    about, place = beside(ABOUT, path, name)
    with opened(about, place) as stream:
        return _numbers(stream)


def _numbers(stream: FileStream) -> Floats:
    """Numbers separated by blanks, equally many in each line."""
    rows: list[Floats] = []
    for block in blocks(stream):
        for number, line in block.numbered():
            try:
                row = np.array(line.split(), np.float64)
            except ValueError as error:
                raise block.malformed(number, str(error)) from None
            if rows and len(row) != len(rows[0]):
                raise block.malformed(number, f"expected {len(rows[0])} numbers, got {len(row)}")
            rows.append(row)
    if not rows:
        raise DataError(f"{stream.name} has no rows")
    return np.array(rows)


def _check(name: str, matrix: Floats, right: Bools, wanted: str) -> None:
    """Refuse the first entry that is wrong, if there is one."""
    if not right.all():
        row, column = (int(part[0]) for part in np.nonzero(~right))
        value = matrix[row, column]
        raise DataError(f"row {row + 1} of {name}: entry {column + 1} must be {wanted}, got {value:g}")


def _rows(ratings: Floats) -> pl.DataFrame:
    """The ratings as (user, item, value), with ids from 1 in the order of rows and columns."""
    import polars as pl

    users, items = np.nonzero(ratings)
    return pl.DataFrame({"user": users + 1, "item": items + 1, "value": ratings[users, items]})


def _all_rows(path: Path) -> pl.DataFrame:
    """Chosen and random ratings together; of a coat that a shopper rated twice, both."""
    import polars as pl

    return pl.concat([_rows(_ratings(path, name)) for name in (TRAIN, TEST)])


def _joint(files: list[Path]) -> str:
    """One hash of several files."""
    return sha256(" ".join(map(digest, files)).encode()).hexdigest()
