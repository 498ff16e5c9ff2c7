"""Policies on a log: their mean reward by several estimators, with intervals and warnings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from coterie.errors import ArgumentError, unknown
from coterie.evaluation.bootstrap import bca_interval
from coterie.evaluation.estimators import (
    ESTIMATORS,
    MEASURED,
    MODEL,
    PROGRESSIVE,
    Terms,
    as_logged,
    possible_estimators,
    replay,
    uniform_play,
)
from coterie.evaluation.held_out import HeldOut
from coterie.evaluation.log import Log
from coterie.evaluation.passes import (
    Advance,
    RewardModel,
    progressive_pass,
    replay_pass,
)
from coterie.evaluation.verdict import PairedDifference, differences, verdict
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
    "uniformly at random with a small probability ε while logging (`uniform_share` of a service, "
    "LoggingPolicy, `coterie run --log FILE --log-share 0.1`), or let a model predict (the estimator model)"
)


NO_PROPENSITIES = (
    "the log has no propensities, so {names} cannot be estimated; model can, or say uniform (--uniform) if "
    "arms were drawn uniformly"
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
        What cannot be estimated from this log, and reasons to doubt an estimate; also logged.
    differences : tuple of PairedDifference
        By estimator: each policy beside the logging policy, and the first policy beside each other one.
    """

    estimates: tuple[Estimate, ...]
    baselines: tuple[Estimate, ...]
    level: float
    events: int
    warnings: tuple[str, ...]
    differences: tuple[PairedDifference, ...] = ()

    @property
    def verdict(self) -> str:
        """A sentence: whether the first policy earns more than the logging policy and the best other one."""
        return verdict(self.differences, self.level)

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
    estimators: Iterable[str] | None = None,
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
    estimators : iterable of {"replay", "ips", "snips", "dr", "model"}, optional
        Estimators to use; by default those that the log allows: with recorded propensities all but the last,
        with estimated ones *ips*, *snips* and *dr*, without propensities *model*.
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

    *model* is no measurement. Half of the events, drawn at random, teach the hierarchical model of
    `HierUCB`; the policy learns from the other half, and the estimate is the mean of what the model
    predicts for the arms that it chooses there. The interval leaves out the error of the model. The warnings
    say what share of the variance of rewards the model predicts in the half that it has not seen.

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
    wanted = tuple(dict.fromkeys(_possible(log) if estimators is None else estimators))
    _check(log, policies, wanted)
    level, resamples = probability("level", level), whole("resamples", resamples, 1)
    seed = check_seed(seed)

    def estimate(policy: str, name: str, terms: Terms) -> Estimate:
        # One stream for each estimator: adding an estimator does not change the intervals of others.
        rng = stream(seed, "bootstrap", name)
        low, high = bca_interval(terms.terms, terms.weights, level=level, resamples=resamples, rng=rng)
        return Estimate(policy, name, terms.value, low, high, terms.effective)

    judge = HeldOut.of(log, seed) if MODEL in wanted else None
    terms = {policy: _terms(log, make, wanted, seed, judge, advance) for policy, make in policies.items()}
    estimates = tuple(
        estimate(policy, name, one) for policy, found in terms.items() for name, one in found.items()
    )
    logged = dict.fromkeys(wanted, as_logged(log)) | ({} if judge is None else {MODEL: judge.logged(log)})
    compared = differences({LOGGED: logged} | terms, LOGGED, level=level, resamples=resamples, seed=seed)
    baselines = [estimate(LOGGED, "mean", as_logged(log))]
    baselines += [estimate(UNIFORM, "snips", uniform_play(log))] if log.has_propensities else []
    warnings = (*_limits(log, judge), *_doubts(log), *_small(estimates))
    for line in warnings:
        log_of_warnings.warning(line)
    return Evaluation(estimates, tuple(baselines), level, len(log), warnings, compared)


def passes(estimators: Iterable[str] = MEASURED) -> int:
    """The number of passes of a policy over the log: replay and the model need one of their own."""
    wanted = set(estimators)
    return int("replay" in wanted) + bool(wanted & set(PROGRESSIVE)) + int(MODEL in wanted)


def _possible(log: Log) -> tuple[str, ...]:
    return possible_estimators(log) if isinstance(log, Log) else ESTIMATORS


def _terms(
    log: Log,
    make: Maker,
    wanted: tuple[str, ...],
    seed: int,
    judge: HeldOut | None,
    advance: Advance | None,
) -> dict[str, Terms]:
    """The terms of each estimator for a policy, in the given order."""
    found: dict[str, Terms] = {}
    if judge is not None:
        found[MODEL] = judge.predicted(log, make(log, seed), advance=advance)
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
    measured = [name for name in wanted if name != MODEL]
    if measured and not log.has_propensities:
        raise ArgumentError(NO_PROPENSITIES.format(names=", ".join(measured)))
    # Without randomness in the log, no estimator can say anything about other arms.
    if measured and np.all(log.propensities == 1) and np.any(log.sizes > 1):
        raise ArgumentError(DETERMINISTIC)
    if np.ptp(log.rewards) == 0 and len(log) > 1:
        raise ArgumentError(
            f"every reward is {log.rewards[0]:g}, so there is nothing to compare; a log of clicks needs "
            "what was shown and not clicked too, with reward 0"
        )


def _limits(log: Log, judge: HeldOut | None) -> Iterator[str]:
    """What this log cannot tell, and what was assumed instead."""
    if log.catalogue_size:
        yield (
            f"the log does not say what was offered: a decision is taken to be among the item played and "
            f"{int(log.sizes[0]) - 1:,} others of the {log.catalogue_size:,}, drawn at random"
        )
    if log.estimated:
        yield (
            "propensities were not recorded and are estimated from what was played (a multinomial logit): "
            "ips, snips and dr are as good as that model, and their intervals leave out its error"
        )
    if not log.has_propensities:
        yield (
            "it is not known how the items were chosen, so replay, ips, snips and dr cannot be estimated; "
            "record arms and propensities, with 5 to 20 % uniform play, to measure instead of predict"
        )
    if judge is not None:
        share = judge.explained(log)
        worth = "" if share > 0 else ": it predicts no better than the mean, so its estimates tell nothing"
        yield (
            "model is a prediction, no measurement: its model explains "
            f"{max(share, 0.0):.0%} of the variance of rewards that it has not seen{worth}"
        )


def _doubts(log: Log) -> list[str]:
    """Warnings about the propensities."""
    if not log.has_propensities:
        return []
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
