"""Policies on a log: their mean reward by several estimators, with intervals and warnings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from coterie.errors import ArgumentError, unknown
from coterie.evaluation.bootstrap import bca_interval
from coterie.evaluation.estimators import ESTIMATORS, PROGRESSIVE, Terms, as_logged, replay, uniform_play
from coterie.evaluation.log import Log
from coterie.evaluation.passes import Advance, RewardModel, progressive_pass, replay_pass
from coterie.policies.protocols import Policy
from coterie.seeding import check_seed, stream
from coterie.validation import probability, shown, whole

if TYPE_CHECKING:
    import polars as pl

log_of_warnings = logging.getLogger("coterie.evaluation")

Maker: TypeAlias = Callable[[Log, int], Policy]
"""Makes a policy that has learnt nothing, from the log (for `n_users` and `dim`) and a seed."""

LOGGED, UNIFORM = "(as logged)", "(uniform play)"
"""Names of the two baselines."""

SMALL = 100
"""With an effective sample below this an interval is not to be trusted."""

OFF = 5.0
"""Standard errors by which the mean of 1 / (K p) may differ from 1."""

DETERMINISTIC = (
    "every arm was logged with propensity 1, so the log gives no information about other arms; choose "
    "uniformly at random with a small probability ε while logging (LoggingPolicy, `coterie run --log FILE "
    "--log-share 0.1`)"
)


class Estimate(NamedTuple):
    """The mean reward of a policy according to one estimator, with its interval and effective sample size."""

    policy: str
    estimator: str
    reward: float
    low: float
    high: float
    effective: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of `evaluate`.

    Parameters
    ----------
    estimates : tuple of Estimate
        By policy, then by estimator.
    baselines : tuple of Estimate
        The mean reward of the log, and that of uniform play.
    level : float
        The confidence of the intervals.
    events : int
        Events of the log.
    warnings : tuple of str
        Reasons to doubt an estimate; also logged.
    """

    estimates: tuple[Estimate, ...]
    baselines: tuple[Estimate, ...]
    level: float
    events: int
    warnings: tuple[str, ...]

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        """The estimate of a policy by an estimator."""
        for one in (*self.estimates, *self.baselines):
            if (one.policy, one.estimator) == key:
                return one
        raise KeyError(key)

    def to_frame(self) -> pl.DataFrame:
        """A polars table with a row for each estimate, baselines last."""
        import polars as pl

        return pl.DataFrame([*self.estimates, *self.baselines], schema=list(Estimate._fields), orient="row")


def evaluate(
    log: Log,
    policies: Mapping[str, Maker],
    *,
    estimators: Iterable[str] = ESTIMATORS,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    advance: Advance | None = None,
) -> Evaluation:
    """Estimate how much reward policies that learn would have got, from a log of another policy.

    Parameters
    ----------
    log : Log
        From `read_log` or `LoggingPolicy.log`.
    policies : mapping
        From a name to a maker that gets the log (for `n_users` and `dim`) and a seed.
    estimators : iterable of {"replay", "ips", "snips", "dr"}
        Estimators to use; by default all.
    level : float
        Confidence of the intervals.
    resamples : int
        Resamples of the bootstrap.
    seed : int
        Seed of the policies, of replay's rejections and of the bootstrap.
    advance : callable, optional
        Progress callback, called with the number of events just processed. For each policy the log is
        processed `passes(estimators)` times.

    Returns
    -------
    Evaluation
        The estimates, with two baselines: the mean reward of the log, and uniform play.

    Raises
    ------
    ArgumentError
        If every propensity is 1, or a policy does not accept the users or vectors of the log.

    Notes
    -----
    Two questions are answered. *replay*: the mean reward of a policy's first m rounds if it were used from
    now on, where m is the number of events that count; it learns from these alone. *ips*, *snips*, *dr*: the
    mean over all n events of the expected reward of the arm that the policy chooses there, having learnt from
    all earlier events of the log, whoever caused them. The second sees more data, most of it chosen by the
    logging policy. A policy's decision is treated as deterministic even if it was drawn at random: w is
    1{chosen} / p, and p is the probability of the logged arm given the past.

    Intervals are BCa bootstrap intervals over events, for the users of the log. The policies are not run
    again for each resample.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=3, n_users=20, n_items=100)
    >>> world = coterie.environments.Stochastic(data, n_users=4, n_clusters=2, n_arms=3, seed=1)
    >>> logger = coterie.evaluation.LoggingPolicy(coterie.LinUCBOne(4, 3, beta=0.1), share=0.5)
    >>> trace = coterie.simulate(logger, world, 3000)
    >>> found = evaluate(logger.log(), {"AutoCLUB": lambda log, seed: coterie.AutoCLUB(log.n_users, log.dim)})
    >>> found["AutoCLUB", "dr"].low > found["(as logged)", "mean"].high
    True
    """
    wanted = tuple(dict.fromkeys(estimators))
    _check(log, policies, wanted)
    level, resamples = probability("level", level), whole("resamples", resamples, 1)
    seed = check_seed(seed)

    def estimate(policy: str, name: str, terms: Terms) -> Estimate:
        # One stream for each estimator: adding an estimator does not change the intervals of others.
        rng = stream(seed, "bootstrap", name)
        low, high = bca_interval(terms.terms, terms.weights, level=level, resamples=resamples, rng=rng)
        return Estimate(policy, name, terms.value, low, high, terms.effective)

    estimates = tuple(
        estimate(policy, name, terms)
        for policy, make in policies.items()
        for name, terms in _terms(log, make, wanted, seed, advance).items()
    )
    baselines = (estimate(LOGGED, "mean", as_logged(log)), estimate(UNIFORM, "snips", uniform_play(log)))
    warnings = (*_doubts(log), *_small(estimates))
    for line in warnings:
        log_of_warnings.warning(line)
    return Evaluation(estimates, baselines, level, len(log), warnings)


def passes(estimators: Iterable[str] = ESTIMATORS) -> int:
    """The number of passes of a policy over the log: replay needs one of its own."""
    wanted = set(estimators)
    return int("replay" in wanted) + bool(wanted & set(PROGRESSIVE))


def _terms(
    log: Log, make: Maker, wanted: tuple[str, ...], seed: int, advance: Advance | None
) -> dict[str, Terms]:
    """The terms of each estimator for a policy, in the given order."""
    found: dict[str, Terms] = {}
    if "replay" in wanted:
        draws = stream(seed, "replay").random(len(log))
        found["replay"] = replay(log, replay_pass(log, make(log, seed), draws, advance=advance))
    if any(name in PROGRESSIVE for name in wanted):
        # The model costs a regression for each user, and only the doubly robust estimator needs it.
        model = RewardModel(log.n_users, log.dim) if "dr" in wanted else None
        passage = progressive_pass(log, make(log, seed), model, advance=advance)
        found.update((name, PROGRESSIVE[name](log, passage)) for name in wanted if name in PROGRESSIVE)
    return {name: found[name] for name in wanted}


def _check(log: Log, policies: Mapping[str, Maker], wanted: tuple[str, ...]) -> None:
    """Check the arguments of `evaluate`."""
    if not isinstance(log, Log):
        raise ArgumentError(f"log must come from read_log or LoggingPolicy, got {shown(log)}")
    made = policies.values() if isinstance(policies, Mapping) else ()
    if not made or not all(map(callable, made)):
        raise ArgumentError("policies must map names to makers that get the log and a seed")
    if not wanted:
        raise ArgumentError(f"estimators must name at least one of {', '.join(ESTIMATORS)}")
    for name in wanted:
        if name not in ESTIMATORS:
            raise unknown("estimator", str(name), ESTIMATORS, f"The estimators are {', '.join(ESTIMATORS)}")
    # Without randomness in the log, no estimator can say anything about other arms.
    if np.all(log.propensities == 1) and np.any(log.sizes > 1):
        raise ArgumentError(DETERMINISTIC)


def _doubts(log: Log) -> list[str]:
    """Warnings about the propensities."""
    certain = float(np.mean((log.propensities == 1) & (log.sizes > 1)))
    if certain > 0:
        return [
            f"{certain:.1%} of the events have propensity 1 although several arms were on offer: they give "
            "no information about the other arms, so all estimates are biased"
        ]
    # Under correct propensities E[1/(K p)] = 1, whatever the logging policy.
    ratios = 1.0 / (log.sizes * log.propensities)
    error = float(ratios.std()) / len(log) ** 0.5
    if abs(float(ratios.mean()) - 1.0) > max(OFF * error, 1e-6):
        return [
            f"the propensities do not fit the choices: the mean of 1/(K·propensity) is {ratios.mean():.3g} "
            "and should be near 1"
        ]
    return []


def _small(estimates: Iterable[Estimate]) -> list[str]:
    """Estimates that rest on few events, in one line."""
    few = [one for one in estimates if one.effective < SMALL]
    named = ", ".join(f"{one.policy} {one.estimator} ({one.effective:.0f})" for one in few)
    advice = "intervals may be too narrow; log more events, or a larger share of uniform play"
    return [f"effective samples below {SMALL} events: {named}; their {advice}"] if few else []
