"""The difference of two policies on one log, event by event, and what it says in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from coterie.evaluation.bootstrap import bca_interval
from coterie.evaluation.estimators import MODEL, Terms
from coterie.seeding import stream
from coterie.types import Floats

BY = ("dr", "snips", "ips", "replay", MODEL)
"""Estimators in the order in which a verdict relies on them."""


class PairedDifference(NamedTuple):
    """How much more a policy earns an event than another one, with its interval, by one estimator."""

    policy: str
    versus: str
    estimator: str
    difference: float
    low: float
    high: float


def difference(
    one: Terms, two: Terms, *, level: float, resamples: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return the difference of two estimates from the same events, and the ends of its interval.

    Each event counts with what it adds to both, so that what they share cancels. A ratio of sums is
    linearised: an event adds (term − ratio · weight) / mean weight to it, which for a plain mean is exact.
    """
    gap = one.value - two.value
    if gap != gap:
        return gap, gap, gap
    low, high = bca_interval(_pseudo(one) - _pseudo(two), None, level=level, resamples=resamples, rng=rng)
    return gap, *((gap, gap) if low != low else (low, high))


def differences(
    terms: Mapping[str, Mapping[str, Terms]], logged: str, *, level: float, resamples: int, seed: int
) -> tuple[PairedDifference, ...]:
    """Compare policies, by estimator: each with the logging policy, and the first with each other one."""
    policies = [name for name in terms if name != logged]
    pairs = [(one, logged) for one in policies] + [(policies[0], one) for one in policies[1:]]
    found = []
    for name in terms[logged]:
        for policy, versus in pairs:
            rng = stream(seed, "differences", name)
            one, two = terms[policy][name], terms[versus][name]
            gap = difference(one, two, level=level, resamples=resamples, rng=rng)
            found.append(PairedDifference(policy, versus, name, *gap))
    return tuple(found)


def _pseudo(of: Terms) -> Floats:
    """Values whose mean is the estimate, one for each event."""
    if of.weights is None:
        return of.terms
    return np.asarray(of.value + (of.terms - of.value * of.weights) / of.weights.mean(), np.float64)


def verdict(differences: Iterable[PairedDifference], level: float) -> str:
    """Say whether the first policy earns more than the logging policy, and than the best other one.

    >>> logged = PairedDifference("CLUB", "(as logged)", "dr", 0.25, 0.125, 0.5)
    >>> verdict([logged, PairedDifference("CLUB", "LinUCBOne", "dr", 0.0625, -0.25, 0.125)], 0.95)
    'Verdict (dr): CLUB earns 0.25 more a decision than the logging policy (95% interval 0.125 to 0.5), and \
cannot be told apart from LinUCBOne (0.0625 more, 95% interval -0.25 to 0.125).'
    """
    every = list(differences)
    by = next((name for name in BY if any(one.estimator == name for one in every)), None)
    if by is None:
        return ""
    first = every[0].policy
    own = [one for one in every if one.estimator == by and one.policy == first]
    logged, others = own[0], [one for one in own[1:] if one.difference == one.difference]
    clauses = [_clause(logged, "the logging policy", "", level)]
    if others:
        best = min(others, key=lambda one: one.difference)
        clauses.append(
            _clause(best, best.versus, ", the best of the others" if len(others) > 1 else "", level)
        )
    kind = "model, a prediction and no measurement" if by == MODEL else by
    return f"Verdict ({kind}): {first} {', and '.join(clauses)}."


def _clause(of: PairedDifference, versus: str, rank: str, level: float) -> str:
    """One comparison, as the end of a sentence that begins with the policy."""
    if of.difference != of.difference:
        return f"has too few events to be compared with {versus}"
    interval = f"{level:.0%} interval {of.low:.3g} to {of.high:.3g}"
    size = f"{abs(of.difference):.3g} {'more' if of.difference >= 0 else 'less'}"
    if of.low <= 0 <= of.high:
        return f"cannot be told apart from {versus}{rank} ({size}, {interval})"
    return f"earns {size} a decision than {versus}{rank} ({interval})"
