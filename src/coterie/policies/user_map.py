"""Users as points whose distances are differences of expected rewards: who is near whom, and a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coterie.extras import need
from coterie.types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DRAWN = 5_000
"""Users that a picture shows at most; if there are more, about as many of them at equal distances."""
MOST_NAMED = 10
"""Clusters that have a colour and a line in the legend, the largest ones."""
OTHERS = "#BBBBBB"


class Known(NamedTuple):
    """What is known of all users: estimates, a constant first, Σxxᵀ/n of all rewards, and rewards by user."""

    estimates: Floats
    moment: Floats
    pulls: Ints

    def points(self) -> Floats:
        """Users as points: their distances are those of expected rewards, over the rewarded arms."""
        return self.estimates @ moment_root(self.moment)


class SimilarUsers(NamedTuple):
    """What `similar` returns: users, the most alike first, and how far each is from the one asked for.

    Parameters
    ----------
    users : array of int, shape (k,)
        Numbers of the users.
    distances : array of float, shape (k,)
        Root mean square of the difference of expected rewards, over the arms that were rewarded so far.
    """

    users: Ints
    distances: Floats


def moment_root(moment: Floats) -> Floats:
    """R with RRᵀ = Σxxᵀ/n: distances of θR are those of expected rewards, over the rewarded arms."""
    values, vectors = np.linalg.eigh(moment)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def most_similar(known: Known, user: int, k: int) -> SimilarUsers:
    """The k users nearest to one; users without rewards are left out, since nothing is known of them."""
    points = known.points()
    distances = np.sqrt(((points - points[user]) ** 2).sum(axis=1))
    others = np.flatnonzero(known.pulls)
    others = others[others != user]
    order = others[np.argsort(distances[others], kind="stable")[:k]]
    return SimilarUsers(order, distances[order])


def draw_clusters(known: Known, labels: Ints, kind: str, title: str, axes: Axes | None) -> Axes:
    """Draw users in the plane in which they differ most, a colour for each of the largest clusters.

    `kind` is what the legend calls these.
    """
    need("matplotlib", "a picture of clusters")
    from matplotlib import colormaps
    from matplotlib import pyplot as plt

    shown = np.flatnonzero(known.pulls)
    shown = shown[:: -(-len(shown) // MOST_DRAWN)] if len(shown) else shown
    flat, shares = _plane(known.points()[shown])
    if axes is None:
        axes = plt.subplots(figsize=(5.2, 4.2), layout="constrained")[1]
    names, sizes = np.unique(labels[shown], return_counts=True)
    largest = names[np.argsort(-sizes, kind="stable")[:MOST_NAMED]]
    rest = ~np.isin(labels[shown], largest)
    if rest.any():
        axes.scatter(
            flat[rest, 0], flat[rest, 1], s=14, color=OTHERS, label=f"{len(names) - len(largest)} more"
        )
    for number, name in enumerate(largest):
        here = labels[shown] == name
        colour = colormaps["tab10"](number)
        label = f"{name} ({np.count_nonzero(here):,} users)"
        axes.scatter(flat[here, 0], flat[here, 1], s=18, color=colour, label=label)
    axes.set(
        title=title,
        xlabel=f"first direction ({shares[0]:.0%} of the differences)",
        ylabel=f"second direction ({shares[1]:.0%})",
    )
    if len(names):
        axes.legend(fontsize="small", title=kind, framealpha=0.8)
    return axes


def _plane(points: Floats) -> tuple[Floats, Floats]:
    """The two principal coordinates of points, and the share of the variance of each; signs are fixed."""
    if not len(points):
        return np.zeros((0, 2)), np.zeros(2)
    apart = points - points.mean(axis=0)
    values, vectors = np.linalg.eigh(apart.T @ apart)
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    flat, shares = apart @ axes, values[::-1][:2] / max(float(values.sum()), 1e-300)
    missing = 2 - flat.shape[1]
    return np.pad(flat, ((0, 0), (0, missing))), np.pad(shares, (0, missing))
