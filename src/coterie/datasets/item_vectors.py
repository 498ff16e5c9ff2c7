"""Vectors of items: from the ratings of users who are never served, or from tags, words or features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from coterie.datasets.event_table import Events
from coterie.datasets.factorise import signs_of
from coterie.datasets.payoff_table import SparseTable
from coterie.errors import ArgumentError
from coterie.types import Floats

INTERCEPT = 5.0
"""The coordinate that all items share; it is larger than 1 so that a ridge of 1 hardly shrinks an offset."""

PRIOR = 5.0
"""An item's mean is that of its ratings and of this many more, of average size."""


def from_ratings(history: Events, values: Floats, n_items: int, dim: int) -> Floats:
    """An intercept, the mean rating of the item, and dim − 2 directions of a singular value decomposition.

    Means are drawn towards the overall mean, as if every item had 5 more ratings of that size. What is
    decomposed is the rating less the item's mean and less the user's mean deviation from it, 0 where there
    is no rating; directions are weighted by their singular values. Means are standardised, and they and the
    directions have a root mean square length of 1/√2 each; the intercept is 5, so that the ridge hardly
    shrinks it.

    Parameters
    ----------
    history : Events
        Rows of users who will not be served, one a pair, with items numbered from 0 to n_items − 1.
    values : array of shape (n_rows,)
        What each row is worth.
    n_items, dim : int
        Items, and the length of their vectors.

    Returns
    -------
    array of shape (n_items, dim)
    """
    overall = float(values.mean())
    counts = np.bincount(history.items, minlength=n_items)
    sums = np.bincount(history.items, weights=values, minlength=n_items)
    means = (sums + PRIOR * overall) / (counts + PRIOR)
    left = values - means[history.items]
    rated = np.bincount(history.users, minlength=history.n_users)
    bias = np.bincount(history.users, weights=left, minlength=history.n_users) / np.maximum(rated, 1)
    return joined(means, _directions(history, left - bias[history.users], n_items, dim - 2))


def from_events(history: Events, n_items: int, dim: int) -> Floats:
    """An intercept, ln(1 + events of the item), and dim − 2 directions of who met what; as `from_ratings`."""
    counts = np.bincount(history.items, minlength=n_items).astype(np.float64)
    pairs = history.last_of_each()
    return joined(np.log1p(counts), _directions(pairs, np.ones(len(pairs.users)), n_items, dim - 2))


def joined(level: Floats, directions: Floats) -> Floats:
    """The intercept, the standardised level and the directions, the last two of mean square 1/2 each."""
    deviation = float(level.std()) or 1.0
    size = float(np.sqrt((directions**2).sum(axis=1).mean())) or 1.0
    tastes = np.column_stack([(level - level.mean()) / deviation, directions / size]) / np.sqrt(2.0)
    return np.column_stack([np.full(len(level), INTERCEPT), tastes])


def _directions(history: Events, values: Floats, n_items: int, dim: int) -> Floats:
    busy, users = np.unique(history.users, return_inverse=True)
    return strongest(SparseTable(history.items, users, values, (n_items, len(busy))), dim)


def from_tags(counts: SparseTable, dim: int, *, unit: bool = False) -> Floats:
    """The strongest directions of tf·ln(N/(1 + df)), the rows of which are made 1 long before.

    Parameters
    ----------
    counts : SparseTable of shape (n_items, n_tags)
        How many users gave the tag to the item.
    dim : int
        Dimension of the vectors.
    unit : bool
        Make the vectors 1 long as well?
    """
    n, frequency = counts.shape[0], np.bincount(counts.columns, minlength=counts.shape[1])
    weights = counts.values * np.log(n / (1.0 + frequency))[counts.columns]
    lengths = np.sqrt(np.bincount(counts.rows, weights=weights**2, minlength=n))
    weights = weights / np.where(lengths > 0, lengths, 1.0)[counts.rows]
    vectors = strongest(SparseTable(counts.rows, counts.columns, weights, counts.shape), dim)
    if not unit:
        return vectors
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(sizes > 0, sizes, 1.0))


WORDS = re.compile(r"[^\W\d_]+")
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
"""Letters of languages that are written without spaces: Chinese and Japanese."""


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; where words are not spaced, every pair of neighbouring letters.

    >>> words_of("Who's there? 2 ducks"), words_of("計程車 Uber")
    (['who', 's', 'there', 'ducks'], ['計程', '程車', 'uber'])
    """
    found = []
    for word in WORDS.findall(text.lower()):
        place = 0
        for run in UNSPACED.finditer(word):
            found += [word[place : run.start()], *(run[0][k : k + 2] for k in range(max(1, len(run[0]) - 1)))]
            place = run.end()
        found.append(word[place:])
    return [word for word in found if word]


def from_texts(texts: Sequence[str], dim: int) -> Floats:
    """An intercept and the dim − 1 strongest directions of the words, weighted as `from_tags` does.

    Words of a single text are left out: they tell nothing about other items. The intercept is 5, and the
    directions have a root mean square length of 1.
    """
    counts = [Counter(words_of(text)) for text in texts]
    frequency = Counter(word for one in counts for word in one)
    vocabulary = {word: k for k, word in enumerate(sorted(w for w, n in frequency.items() if n > 1))}
    entries = [
        (row, vocabulary[word], times)
        for row, one in enumerate(counts)
        for word, times in one.items()
        if word in vocabulary
    ]
    rows, columns, times = np.array(entries, np.int64).reshape(-1, 3).T
    table = SparseTable(rows, columns, times.astype(np.float64), (len(texts), max(1, len(vocabulary))))
    return with_intercept(from_tags(table, dim - 1))


def from_features(features: Floats, dim: int) -> Floats:
    """An intercept and the dim − 1 strongest directions of features less their means; as `from_texts`."""
    centred = features - features.mean(axis=0)
    rows, columns = np.indices(centred.shape)
    table = SparseTable(rows.ravel(), columns.ravel(), centred.ravel(), centred.shape)
    return with_intercept(strongest(table, dim - 1))


def with_intercept(directions: Floats) -> Floats:
    """The intercept, and the directions with a root mean square length of 1."""
    size = float(np.sqrt((directions**2).sum(axis=1).mean())) or 1.0
    return np.column_stack([np.full(len(directions), INTERCEPT), directions / size])


def strongest(matrix: SparseTable, dim: int) -> Floats:
    """U·S of the `dim` largest singular values, with signs that do not depend on the machine."""
    if dim == 0:
        return np.zeros((matrix.shape[0], 0))
    most = min(matrix.shape) - 1
    if dim > most:
        raise ArgumentError(f"dim must be smaller: the data has {most} directions at most, got {dim}")
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    start = np.ones(min(matrix.shape)) / np.sqrt(min(matrix.shape))
    entries = csr_array((matrix.values, (matrix.rows, matrix.columns)), shape=matrix.shape)
    left, singular, _ = svds(entries, k=dim, v0=start)
    order = np.argsort(-singular, kind="stable")
    vectors: Floats = np.asarray(left[:, order] * singular[order], np.float64)
    return np.ascontiguousarray(vectors * signs_of(vectors))
