"""Segments: a few groups of users whose preferences are alike, with differences inside a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies.base import LinearBandit, by_appearance
from coterie.policies.user_map import Known, SimilarUsers, draw_clusters, moment_root, most_similar
from coterie.seeding import stream
from coterie.types import Floats, Ints
from coterie.validation import arms_matrix, user_index, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SEGMENTS = 16
"""Numbers of segments up to this one are compared when none is given."""
SAMPLE = 4096
"""Users that segments are learnt from; if there are more, about as many of them at equal distances."""
STARTS, FIRST_STEPS, MOST_STEPS = 8, 10, 100  # the best of several short climbs is followed to the top
CHANGED = 1e-4  # steps end when no proportion changes by more than this
TINY = 1e-12  # the variance inside segments is at least this part of the whole variance
BETTER = 0.05  # the number of segments changes from the last time only for so much more silhouette


@dataclass(frozen=True, slots=True)
class Segments:
    """What `segments` returns: who belongs together, and what each segment likes.

    Parameters
    ----------
    labels : array of int, shape (n_users,)
        Segment of each user, from 0 on.
    sizes : array of int, shape (k,)
        Number of users in each segment.
    preferences : array of float, shape (k, dim)
        Mean preference of each segment.
    levels : array of float, shape (k,)
        Mean reward of each segment for an arm of zeros.
    silhouette : float
        How well segments are apart, from 0 to 1: the mean of 1 − a/b, where a user is a away from the centre
        of its segment and b from the nearest other one. It is 0 if there is one segment.

    Examples
    --------
    >>> import coterie
    >>> policy = coterie.HierUCB(n_users=4, dim=1)
    >>> policy.update_many([0, 1, 2, 3] * 3, [[1.0]] * 12, [1.0, 0.9, 0.1, 0.0] * 3)
    >>> found = policy.segments(k=2)
    >>> found.labels.tolist(), found.sizes.tolist()
    ([0, 0, 1, 1], [2, 2])
    >>> bool(found.lift([[1.0]])[0, 0] > 0)
    True
    """

    labels: Ints
    sizes: Ints
    preferences: Floats
    levels: Floats
    silhouette: float

    def lift(self, arms: ArrayLike) -> Floats:
        """How much more each segment is expected to reward each arm than all other users.

        Parameters
        ----------
        arms : array_like of shape (K, dim)
            Vectors of the arms.

        Returns
        -------
        array of float, shape (k, K)
            Expected reward of the segment minus that of the users in other segments; 0 if there are none.
        """
        matrix = arms_matrix(arms, self.preferences.shape[1])
        expected = self.levels[:, None] + self.preferences @ matrix.T
        total = self.sizes @ expected
        others = self.sizes.sum() - self.sizes
        rest = (total - self.sizes[:, None] * expected) / np.maximum(others, 1)[:, None]
        return np.where(others[:, None] > 0, expected - rest, 0.0)


class Segmented(LinearBandit):
    """A policy that knows enough of its users to divide them into segments."""

    def segments(self, k: int | None = None, *, previous: Segments | None = None) -> Segments:
        """Divide users into a few segments by what is known of their preferences.

        Unlike users of a cluster, those of a segment may differ. A segment is a part of a mixture of
        Gaussians with a common spherical variance. The distance of two users is the root mean square of the
        difference of the rewards expected of them, over the arms that were rewarded so far. A user with T
        rewards has the weight T/(T + d + 1). Users without rewards are in the likeliest segment.

        Parameters
        ----------
        k : int, optional
            Number of segments, at least 1; fewer are found if fewer users differ. By default the number up to
            16 with the largest silhouette.
        previous : Segments, optional
            What this method returned before. Segments then keep their numbers and start from where they were;
            if k is not given, their number changes only if the silhouette is better by 0.05.

        Returns
        -------
        Segments
            Segment of each user, and sizes and preferences of the segments.
        """
        return divide(self._known(), k, previous)

    def similar(self, user: int, k: int = 10) -> SimilarUsers:
        """Find the users whose expected rewards differ least from those of a user.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        k : int, default 10
            How many users to find, at least 1; fewer are found if fewer have given rewards.

        Returns
        -------
        SimilarUsers
            Their `users`, the most alike first, and `distances`: the root mean square of the difference of
            expected rewards, over the arms that were rewarded so far.

        Examples
        --------
        >>> import coterie
        >>> policy = coterie.HierUCB(n_users=4, dim=1)
        >>> _ = policy.fit([0, 1, 2, 3] * 3, [[1.0]] * 12, [1.0, 0.9, 0.1, 0.0] * 3)
        >>> policy.similar(0, k=2).users.tolist()
        [1, 2]
        """
        return most_similar(self._known(), user_index(user, self._n_users), whole("k", k, 1))

    def plot_clusters(self, *, ax: Axes | None = None) -> Axes:
        """Draw users as points, coloured by cluster; where a policy forms none, by segment.

        The distance of two points is that of `similar`, in the plane in which users differ most. Users
        without rewards are left out. It needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a figure of its own by default.

        Returns
        -------
        matplotlib.axes.Axes
            Where it was drawn.
        """
        known = self._known()
        if self.declared.clusters:
            return draw_clusters(known, self.labels(), "cluster", self.name, ax)
        return draw_clusters(known, divide(known, None, None).labels, "segment", self.name, ax)

    def _known(self) -> Known:
        with self._lock:
            learner: Any = self._learner
            return Known(*learner.known_preferences())


class Mixture(NamedTuple):
    """Centres and proportions of segments, and the variance of a coordinate inside them."""

    centres: Floats
    proportions: Floats
    variance: float


def divide(known: Known, k: int | None, previous: Segments | None) -> Segments:
    """The segments of users; see `Segmented.segments`."""
    root = moment_root(known.moment)
    points = known.estimates @ root
    weights = known.pulls / (known.pulls + known.estimates.shape[1])
    seen = np.flatnonzero(known.pulls)
    chosen = seen[:: -(-len(seen) // SAMPLE)] if len(seen) else seen
    sample, by = points[chosen], weights[chosen]
    if k is not None:
        k = whole("k", k, 1, max(1, known.estimates.shape[0]))
    start = None
    if previous is not None:
        if previous.preferences.shape[1] != known.estimates.shape[1] - 1:
            raise ArgumentError("previous must be segments of the same policy")
        start = np.column_stack([previous.levels, previous.preferences]) @ root
    found = _best(sample, by, k, start)
    labels = _assigned(points, found)
    if previous is None:
        labels = by_appearance(labels)
    return _described(known.estimates, labels, len(found.centres), _silhouette(sample, by, found))


def _best(points: Floats, weights: Floats, k: int | None, start: Floats | None) -> Mixture:
    """The mixture of k parts, or of as many as have the largest silhouette."""
    if k is not None:
        return _fitted(points, weights, k, start)
    most = min(MOST_SEGMENTS, max(1, len(points)))
    options = [_fitted(points, weights, n, start) for n in range(1, most + 1)]
    scores = [_silhouette(points, weights, found) for found in options]
    best = int(np.argmax(scores))
    if start is not None and len(start) <= len(options) and scores[best] < scores[len(start) - 1] + BETTER:
        best = len(start) - 1
    return options[best]


def _fitted(points: Floats, weights: Floats, k: int, start: Floats | None) -> Mixture:
    """The likeliest of several mixtures; from the last centres alone, if there are k of them."""
    if len(points) == 0:
        return Mixture(np.zeros((1, points.shape[1])), np.ones(1), 1.0)
    total = weights @ ((points - weights @ points / weights.sum()) ** 2).sum(1)
    least = max(TINY * total / weights.sum() / points.shape[1], 1e-300)
    if start is None or len(start) != k:
        rng = stream(0, f"segments {k}")
        starts = [_spread(points, weights, k, rng) for _ in range(STARTS)]
        found = [_climb(points, weights, centres, least, FIRST_STEPS) for centres in starts]
        start = max(found, key=lambda pair: pair[0])[1].centres
    return _climb(points, weights, start, least, MOST_STEPS)[1]


def _spread(points: Floats, weights: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Centres far from each other, as k-means++ draws them; fewer than k if fewer points differ."""
    centres = points[[rng.choice(len(points), p=weights / weights.sum())]]
    while len(centres) < k:
        away = weights * _distances2(points, centres).min(1)
        if not away.sum() > TINY * weights.sum() * float((points**2).sum(1).max()):
            break
        centres = np.vstack([centres, points[rng.choice(len(points), p=away / away.sum())]])
    return centres


def _climb(
    points: Floats, weights: Floats, centres: Floats, least: float, steps: int
) -> tuple[float, Mixture]:
    """Expectation–maximisation for parts of one spherical variance and any proportion; the log likelihood.

    Proportions are what k-means lacks: it cuts a large group in two rather than find a small one beside it.
    """
    d = points.shape[1]
    proportions = np.full(len(centres), 1.0 / len(centres))
    variance = max(weights @ _distances2(points, centres).min(1) / weights.sum() / d, least)
    for _ in range(steps):
        shares, likelihood = _shares(points, Mixture(centres, proportions, variance))
        counted = shares * weights[:, None]
        sizes = np.maximum(counted.sum(0), 1e-300)
        centres = counted.T @ points / sizes[:, None]
        before, proportions = proportions, sizes / sizes.sum()
        variance = max(float((counted * _distances2(points, centres)).sum()) / weights.sum() / d, least)
        if np.abs(proportions - before).max() < CHANGED:
            break
    return float(weights @ likelihood), Mixture(centres, proportions, variance)


def _shares(points: Floats, mixture: Mixture) -> tuple[Floats, Floats]:
    """The posterior probability of each part for each point, and the log density of each point."""
    d = points.shape[1]
    logs = np.log(np.maximum(mixture.proportions, 1e-300)) - 0.5 * (
        _distances2(points, mixture.centres) / mixture.variance + d * np.log(mixture.variance)
    )
    top = logs.max(1)
    shares = np.exp(logs - top[:, None])
    total = shares.sum(1)
    return shares / total[:, None], top + np.log(total)


def _distances2(points: Floats, centres: Floats) -> Floats:
    """Squared distances between all points and all centres."""
    out: Floats = (points**2).sum(1)[:, None] - 2.0 * points @ centres.T + (centres**2).sum(1)
    return np.maximum(out, 0.0, out=out)


def _silhouette(points: Floats, weights: Floats, mixture: Mixture) -> float:
    """The weighted mean of 1 − a/b, with distances to centres in the place of mean distances to users."""
    if len(mixture.centres) < 2 or len(points) == 0:
        return 0.0
    away = np.sort(np.sqrt(_distances2(points, mixture.centres)), axis=1)
    return float(weights @ (1.0 - away[:, 0] / np.maximum(away[:, 1], 1e-300)) / weights.sum())


def _assigned(points: Floats, mixture: Mixture) -> Ints:
    """The likeliest part of each point, a block of points at a time."""
    return np.concatenate(
        [
            np.argmax(_shares(points[k : k + SAMPLE], mixture)[0], axis=1)
            for k in range(0, len(points), SAMPLE)
        ]
    )


def _described(estimates: Floats, labels: Ints, k: int, silhouette: float) -> Segments:
    """Sizes and mean preferences of segments."""
    k = max(k, int(labels.max()) + 1)
    sizes = np.bincount(labels, minlength=k)
    sums = np.stack([np.bincount(labels, column, minlength=k) for column in estimates.T], axis=1)
    means = sums / np.maximum(sizes, 1)[:, None]
    return Segments(labels, sizes, means[:, 1:], means[:, 0], silhouette)
