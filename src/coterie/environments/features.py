"""Functions that change the vectors of a dataset: one-hot, rescaled, low-rank, means as probabilities."""

from __future__ import annotations

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.types import Floats
from coterie.validation import positive, whole


def onehot(dataset: Dataset) -> Dataset:
    """Replace the vectors of items by unit vectors: item k has a 1 in coordinate k.

    The reward of one item then gives no information about another.

    Parameters
    ----------
    dataset : Dataset
        Dataset whose number of items equals the dimension.

    Returns
    -------
    Dataset
        The same users; their vectors are now the expected rewards of the items.

    Raises
    ------
    ArgumentError
        If the number of items is not the dimension.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=3, n_users=20, n_items=3)
    >>> onehot(data).items.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    n_items, dim = dataset.items.shape
    if n_items != dim:
        raise ArgumentError(
            f"dataset must have as many items as dimensions, got {n_items} items of dimension {dim}"
        )
    return dataset._replace(items=_sealed(np.eye(dim)))


def rescaled(dataset: Dataset, scale: float = 1.0, spread: float = 1.0) -> Dataset:
    """Change the units of the features, and the preferences so that expected rewards stay the same.

    Parameters
    ----------
    dataset : Dataset
        Vectors of users and items.
    scale : float, default 1.0
        Factor of every feature, positive.
    spread : float, default 1.0
        Columns are also multiplied by 1, √spread and spread in turn; positive.

    Returns
    -------
    Dataset
        The same users and items, with the columns of items multiplied by the factors and those of users
        divided.

    Raises
    ------
    ArgumentError
        If a factor is not positive.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=4, n_users=20, n_items=100)
    >>> (rescaled(data, spread=100.0).items / data.items)[0].round(6).tolist()
    [1.0, 10.0, 100.0, 1.0]
    """
    powers = np.arange(dataset.items.shape[1]) % 3 / 2.0
    factors = positive("scale", scale) * positive("spread", spread) ** powers
    return dataset._replace(users=_sealed(dataset.users / factors), items=_sealed(dataset.items * factors))


def low_rank(dataset: Dataset, rank: int) -> Dataset:
    """Replace the vectors of users by random unit vectors in a subspace.

    If every user is a cluster of its own, preferences vary continuously: all users have different
    preferences, but the rewards of one user still give information about the others.

    Parameters
    ----------
    dataset : Dataset
        Vectors of users and items.
    rank : int
        Dimension of the subspace, from 1 to that of the vectors.

    Returns
    -------
    Dataset
        The same items, and the same number of users.

    Raises
    ------
    ArgumentError
        If `rank` is outside its range.

    Notes
    -----
    The vector of user i is Bz_i divided by its length, with z_i ~ N(0, I) of `rank` coordinates and B a
    matrix of independent N(0, 1) entries that is the same for all users.

    Examples
    --------
    >>> import coterie
    >>> import numpy as np
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> int(np.linalg.matrix_rank(low_rank(data, 2).users))
    2
    """
    n_users, dim = dataset.users.shape
    rng = stream(0, "low rank")
    basis = rng.standard_normal((whole("rank", rank, 1, int(dim)), dim))
    places = rng.standard_normal((n_users, rank))
    users: Floats = (places[:, :, None] * basis).sum(axis=1)
    return dataset._replace(users=_sealed(users / np.linalg.norm(users, axis=1, keepdims=True)))


def _sealed(vectors: Floats) -> Floats:
    """Return the vectors as a contiguous read-only array."""
    kept: Floats = np.ascontiguousarray(vectors)
    kept.flags.writeable = False
    return kept


def lifted(dataset: Dataset, attraction: float = 1.0) -> Dataset:
    """Add a coordinate to all vectors, so that expected rewards in [−1, 1] become probabilities.

    Parameters
    ----------
    dataset : Dataset
        Vectors of length at most 1, such as those of scale "unit".
    attraction : float, default 1.0
        Factor of all probabilities, and so their largest possible value; above 0 and at most 1. Click rates
        are low in practice: with lists of several items a value such as 0.3 is more realistic than 1.

    Returns
    -------
    Dataset
        The same users and items with dim + 1 coordinates.

    Raises
    ------
    ArgumentError
        If `attraction` is outside its range.

    Notes
    -----
    Every vector is scaled by 1/√2 and gets 1/√2 as its last coordinate: xᵀθ becomes (1 + xᵀθ)/2. Vectors of
    users are multiplied by `attraction`.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> lifted(data).items.shape
    (100, 6)
    """
    if positive("attraction", attraction) > 1:
        raise ArgumentError(f"attraction must be above 0 and at most 1, got {attraction!r}")
    return dataset._replace(users=_lift(dataset.users, attraction), items=_lift(dataset.items))


def _lift(vectors: Floats, factor: float = 1.0) -> Floats:
    """Append a coordinate to each row and multiply the row by a factor."""
    raised: Floats = np.column_stack([vectors, np.ones(len(vectors))]) / np.sqrt(2.0) * factor
    raised.flags.writeable = False
    return raised
