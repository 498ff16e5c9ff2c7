"""Estimates of a policy's mean reward from what it chose on a log: replay, IPS, SNIPS, doubly robust."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from coterie.evaluation.log import Log
from coterie.evaluation.passes import Passage
from coterie.types import Bools, Floats

MODEL = "model"
"""The estimator that needs no propensities, and measures nothing."""

CENTRED = 0.1
"""Standard deviations by which the mean reward of uniform play may be away from 0."""


class Terms(NamedTuple):
    """An estimate as Σ terms / Σ weights over events, or Σ terms / n without weights.

    `effective` is the size of an equivalent sample of the policy's own events: the matches that
    replay counts, or (Σw)² / Σw² of importance weights w.
    """

    terms: Floats
    weights: Floats | None
    effective: float

    @property
    def value(self) -> float:
        """The estimate; NaN without any effective event."""
        below = float(len(self.terms)) if self.weights is None else float(self.weights.sum())
        return float(self.terms.sum()) / below if below > 0 and self.effective > 0 else float("nan")


def replay(log: Log, counted: Bools) -> Terms:
    """The mean reward of the events in which the policy chose the logged arm (Li et al. 2011, Alg. 2).

    Examples
    --------
    >>> log = Log(["a"], [0, 0], np.eye(2), [0, 1, 0, 1], [0, 2, 4], [1, 0], [0.5, 0.5], [1.0, 0.0], [1, 2])
    >>> replay(log, np.array([True, False])).value
    1.0
    """
    return Terms(log.rewards * counted, counted.astype(np.float64), float(np.count_nonzero(counted)))


def importance_weights(log: Log, passage: Passage) -> Floats:
    """w = 1{the policy chose the logged arm} / propensity, for each event."""
    return np.asarray((passage.arms == log.chosen) / log.propensities, np.float64)


def ips(log: Log, passage: Passage) -> Terms:
    """Inverse propensity scoring: (1/n) Σ w r. Unbiased; adding a constant to rewards adds noise.

    Examples
    --------
    >>> log = Log(["a"], [0, 0], np.eye(2), [0, 1, 0, 1], [0, 2, 4], [1, 0], [0.5, 0.5], [1.0, 0.0], [1, 2])
    >>> ips(log, Passage(np.array([1, 1]), np.zeros(2), np.zeros(2))).value
    1.0
    """
    weights = importance_weights(log, passage)
    return Terms(weights * log.rewards, None, effective_size(weights))


def snips(log: Log, passage: Passage) -> Terms:
    """Self-normalised IPS: Σ w r / Σ w. A bias of order 1/n, and less noise where rewards are not centred."""
    weights = importance_weights(log, passage)
    return Terms(weights * log.rewards, weights, effective_size(weights))


def doubly_robust(log: Log, passage: Passage) -> Terms:
    """(1/n) Σ [q(π) + w (r − q(a))] with predictions q that depend on the past only (Dudík et al. 2011).

    Unbiased whatever the model, because propensities are known; a good model makes it less noisy.
    """
    weights = importance_weights(log, passage)
    rest = log.rewards - passage.expected_logged
    return Terms(passage.expected + weights * rest, None, effective_size(weights))


def uniform_play(log: Log) -> Terms:
    """The mean reward of uniform play: SNIPS with w = 1 / (K p)."""
    weights = 1.0 / (log.sizes * log.propensities)
    return Terms(weights * log.rewards, weights, effective_size(weights))


def as_logged(log: Log) -> Terms:
    """The mean reward of the log, which is that of the logging policy."""
    return Terms(log.rewards, None, float(len(log)))


def is_off_centre(log: Log) -> bool:
    """Whether the mean reward of uniform play is clearly more than a tenth of a standard deviation from 0.

    Without an intercept, a policy then learns the common level of rewards before it learns preferences.
    """
    found = uniform_play(log) if log.has_propensities else as_logged(log)
    margin = CENTRED + 3.0 / max(found.effective, 1.0) ** 0.5
    return bool(abs(found.value) > margin * float(log.rewards.std()))


def effective_size(weights: Floats) -> float:
    """Kish's effective sample size (Σw)² / Σw²; 0 where all weights are 0.

    >>> effective_size(np.array([2.0, 2.0, 0.0]))
    2.0
    """
    squares = float(np.sum(weights**2))
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


PROGRESSIVE: Mapping[str, Callable[[Log, Passage], Terms]] = MappingProxyType(
    {"ips": ips, "snips": snips, "dr": doubly_robust}
)
"""Estimators for a policy that learns from every event of the log."""

MEASURED = ("replay", *PROGRESSIVE)
"""Estimators that need propensities, and no model of rewards."""

ESTIMATORS = (*MEASURED, MODEL)


def possible_estimators(log: Log) -> tuple[str, ...]:
    """The estimators that a log allows without a model of rewards; with unknown propensities, the model.

    Replay keeps the events of the smallest propensity, and an estimate of that one is worth little.
    """
    if not log.has_propensities:
        return (MODEL,)
    return tuple(PROGRESSIVE) if log.estimated else MEASURED
