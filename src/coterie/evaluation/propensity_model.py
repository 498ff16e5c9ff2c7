"""Propensities of a log that did not record them: a multinomial logit of what was played among the arms."""

from __future__ import annotations

import numpy as np

from coterie.errors import DataError
from coterie.evaluation.log import Log
from coterie.types import Floats, Ints

FITTED = 20_000
"""Events that the model is fitted to at most, evenly spaced."""
POSITIONS = 20
"""Places of an offer, from the first, that have a coefficient of their own."""
AT_ONCE = 4_096
"""Events whose propensities are computed together."""
RIDGE = 1.0
SMALLEST = 1e-6
ITERATIONS = 25


def estimate_propensities(log: Log) -> Floats:
    """Estimate the probability with which each arm of a log was played, from what was played.

    Parameters
    ----------
    log : Log
        A log whose arms are known.

    Returns
    -------
    array, shape (n,)
        The estimates, at least 10⁻⁶.

    Raises
    ------
    DataError
        If no event offers a choice.

    Notes
    -----
    An arm with features z is played with probability exp(zᵀw) / Σ exp(z′ᵀw) over the arms of its event. z has
    the arm's vector, its place in the offer, and xᵀ(mean of what this user's earlier events played, less the
    mean of what they offered), which is how a logging policy follows a user. w is fitted by Newton's method
    with a ridge of 1 on columns of unit deviation.

    Examples
    --------
    >>> arms = np.tile([0, 1], 400)
    >>> chosen = np.random.default_rng(1).random(400) < 0.25  # the second arm in a quarter of the events
    >>> shape = {"items": np.eye(2), "offers": arms, "starts": np.arange(401) * 2, "rewards": np.zeros(400)}
    >>> log = Log(["ann"], np.zeros(400), chosen=chosen, propensities=[], times=np.arange(400), **shape)
    >>> [round(float(p), 1) for p in estimate_propensities(log)[~chosen][-4:]]
    [0.8, 0.8, 0.8, 0.8]
    """
    choices = np.flatnonzero(log.sizes > 1)
    if not len(choices):
        raise DataError("every event offers one arm: there is no choice to learn propensities from")
    followed = _followed(log)
    some = choices[:: -(-len(choices) // FITTED)]
    centre, scale = _units(_features(log, some, followed))
    weights = _fit(log, some, (_features(log, some, followed) - centre) / scale)
    found = np.empty(len(log))
    for first in range(0, len(log), AT_ONCE):
        events = np.arange(first, min(first + AT_ONCE, len(log)))
        scaled = (_features(log, events, followed) - centre) / scale
        starts = _starts(log, events)
        found[events] = _probabilities(scaled @ weights, starts)[starts + log.chosen[events]]
    return np.maximum(found, SMALLEST)


def _starts(log: Log, events: Ints) -> Ints:
    """Where the arms of each of these events begin, one event after another."""
    return np.concatenate([[0], np.cumsum(log.sizes[events])[:-1]]).astype(np.int64)


def _followed(log: Log) -> Floats:
    """What each event's user was played before, less what it was offered, in the mean, (n, dim)."""
    offered = np.add.reduceat(log.items[log.offers], log.starts[:-1]) / log.sizes[:, None]
    apart = log.items[log.offers[log.starts[:-1] + log.chosen]] - offered
    order = np.argsort(log.users, kind="stable")
    before = np.cumsum(apart[order], axis=0) - apart[order]
    users = log.users[order]
    first = np.searchsorted(users, users)  # where the events of the same user begin
    found: Floats = np.empty(apart.shape)
    found[order] = (before - before[first]) / (np.arange(len(users)) - first + 1)[:, None]
    return found


def _features(log: Log, events: Ints, followed: Floats) -> Floats:
    """The features of every arm of these events, one event after another."""
    sizes, starts = log.sizes[events], _starts(log, events)
    inside = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    x = log.items[log.offers[np.repeat(log.starts[events], sizes) + inside]]
    place = (inside[:, None] == np.arange(min(POSITIONS, int(log.sizes.max())))).astype(np.float64)
    personal = np.einsum("ij,ij->i", x, np.repeat(followed[events], sizes, axis=0))
    return np.column_stack([x, place, personal])


def _units(features: Floats) -> tuple[Floats, Floats]:
    """The mean and the deviation of each column; a column that is constant keeps its unit."""
    deviation = features.std(axis=0)
    return features.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


def _probabilities(scores: Floats, starts: Ints) -> Floats:
    """Softmax within each event."""
    sizes = np.diff(np.append(starts, len(scores)))
    grown = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes))
    return np.asarray(grown / np.repeat(np.add.reduceat(grown, starts), sizes), np.float64)


def _fit(log: Log, events: Ints, features: Floats) -> Floats:
    """The coefficients of largest penalised likelihood."""
    starts = _starts(log, events)
    sizes = log.sizes[events]
    played = features[starts + log.chosen[events]].sum(axis=0)
    weights = np.zeros(features.shape[1])
    for _ in range(ITERATIONS):
        chances = _probabilities(features @ weights, starts)
        means = np.add.reduceat(features * chances[:, None], starts)
        apart = features - np.repeat(means, sizes, axis=0)
        gradient = played - means.sum(axis=0) - RIDGE * weights
        curvature = (apart * chances[:, None]).T @ apart + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        # The penalised likelihood is concave; a step of bounded length cannot overshoot far.
        weights += step * min(1.0, 5.0 / max(float(np.linalg.norm(step)), 1e-12))
        if float(np.linalg.norm(step)) < 1e-8:
            break
    return weights
