"""From rows (user, item, liked) to a dataset: gather, factorise, scale, and keep the result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coterie.datasets import cache
from coterie.datasets.dataset import Dataset, Ids, Provenance, id_array, sealed
from coterie.datasets.factorise import Factors, factorise
from coterie.datasets.request import Request
from coterie.datasets.sources import About, digest, find_file
from coterie.errors import DataError
from coterie.extras import need
from coterie.types import Bools, Floats

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


class Busiest(NamedTuple):
    """The ids with the most rows, most first, ties by ascending id.

    `tied` counts those with as many rows as the last one kept, if any of them had to stay out.
    """

    ids: pl.DataFrame
    found: int
    tied: int

    def as_array(self) -> Ids:
        """The ids as numpy has them."""
        return id_array(self.ids.get_column("id"))


class Feedback(NamedTuple):
    """R, one row a user and one column an item, and how it came about."""

    matrix: Floats
    users: Busiest
    items: Busiest
    rows: int


def gather(rows: pl.DataFrame, n_users: int, n_items: int) -> Feedback:
    """R of the `n_users` users and `n_items` items with the most rows   (Sec. 6.2).

    Both are counted over all rows of the file, so that neither choice depends on the other; a pair
    that occurs several times counts each time, and is 1 in R if any of its rows is.
    """
    users, items = busiest(rows, "user", n_users), busiest(rows, "item", n_items)
    liked = (
        rows.lazy()
        .filter("liked")
        .join(users.ids.lazy(), left_on="user", right_on="id", how="inner")
        .join(items.ids.lazy(), left_on="item", right_on="id", how="inner", suffix="_item")
        .select("place", "place_item")
        .collect()
    )
    matrix = np.zeros((users.ids.height, items.ids.height))
    matrix[liked.get_column("place").to_numpy(), liked.get_column("place_item").to_numpy()] = 1.0
    return Feedback(matrix, users, items, rows.height)


def busiest(rows: pl.DataFrame, column: str, count: int) -> Busiest:
    """The `count` ids of a column with the most rows; numbers are compared as numbers."""
    import polars as pl

    counts = rows.get_column(column).alias("id").to_frame().group_by("id").len()
    ranked = counts.sort(["len", "id"], descending=[True, False])
    kept = ranked.head(count)
    at_the_cut = pl.col("len") == kept.get_column("len").min()
    left_out = ranked.slice(count).filter(at_the_cut).height
    tied = left_out + kept.filter(at_the_cut).height if left_out else 0
    return Busiest(kept.select("id").with_row_index("place"), ranked.height, tied)


LIKED_ABOVE = 3.0
"""Stars above which a rating is feedback 1 (Sec. 6.2)."""

log = logging.getLogger("coterie.datasets")


class Material(NamedTuple):
    """The name of the rows' source, and the hash of its content."""

    name: str
    feedback: str
    file: str
    sha256: str


def prepare(material: Material, request: Request, read: Callable[[], pl.DataFrame]) -> Dataset:
    """The dataset of these rows, from the cache where it has been made before.

    Notes are logged as warnings.
    """
    key = cache.key(material.name, material.sha256, request)
    dataset = cache.fetch(key)
    if dataset is None:
        need("polars", "reading a table")
        with cache.locked(key):  # so that two processes do not make the same dataset
            dataset = cache.fetch(key)
            if dataset is None:
                dataset = build(material, request, read())
                cache.store(key, dataset)
    provenance = replace(dataset.provenance, file=material.file, feedback=material.feedback)
    for note in provenance.notes:
        log.warning("%s: %s", material.name, note)
    return dataset._replace(provenance=provenance)


def prepare_file(about: About, request: Request, read: Callable[[Path], pl.DataFrame]) -> Dataset:
    """The dataset of a file that the request names, or that is found where it says."""
    request.refuse_table_options(about.name)
    path = find_file(about, request.path)
    material = Material(about.name, about.feedback, path.name, digest(path))
    return prepare(material, request, lambda: read(path))


def build(material: Material, request: Request, rows: pl.DataFrame) -> Dataset:
    """The dataset of rows (user, item, liked); rows with a missing value are left out and counted."""
    whole = rows.drop_nulls()
    if not whole.height:
        raise DataError(f"every one of the {rows.height:,} rows lacks a value")
    feedback = gather(whole, request.n_users, request.n_items)
    factors = factorise(feedback.matrix, request.dim)
    users, items, has_user, has_item = factors.scaled(request.scale)
    return sealed(
        users,
        items,
        user_ids=feedback.users.as_array()[has_user],
        item_ids=feedback.items.as_array()[has_item],
        provenance=_provenance(
            material, request, feedback, factors, (has_user, has_item), dropped=rows.height - whole.height
        ),
    )


def _provenance(
    material: Material,
    request: Request,
    feedback: Feedback,
    factors: Factors,
    has: tuple[Bools, Bools],
    *,
    dropped: int,
) -> Provenance:
    return Provenance(
        name=material.name,
        feedback=material.feedback,
        file=material.file,
        sha256=material.sha256,
        rows=feedback.rows,
        users_found=feedback.users.found,
        items_found=feedback.items.found,
        n_users=request.n_users,
        n_items=request.n_items,
        tied_users=feedback.users.tied,
        tied_items=feedback.items.tied,
        dropped_users=int((~has[0]).sum()),
        dropped_items=int((~has[1]).sum()),
        density=float(feedback.matrix.mean()),
        singular_values=tuple(factors.singular.tolist()),
        dim=request.dim,
        scale=request.scale,
        seed=None,
        notes=(*_dropped(dropped, feedback), *_shortages(request, feedback), *factors.notes()),
    )


def _dropped(dropped: int, feedback: Feedback) -> Iterator[str]:
    """A note of how many rows were left out for a missing value, if any."""
    if dropped:
        yield f"{dropped:,} of {dropped + feedback.rows:,} rows lack a value and were left out"


def _shortages(request: Request, feedback: Feedback) -> Iterator[str]:
    """A note if the data has fewer users or items than requested."""
    if feedback.users.found < request.n_users:
        yield f"{request.n_users:,} users requested, the data has {feedback.users.found:,}: all were taken"
    if feedback.items.found < request.n_items:
        yield f"{request.n_items:,} items requested, the data has {feedback.items.found:,}: all were taken"


def liked_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows (user, item, value) of stars as (user, item, liked)."""
    import polars as pl

    return rows.select("user", "item", liked=pl.col("value") > LIKED_ABOVE)
