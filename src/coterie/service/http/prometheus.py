"""Metrics of the service, in the text format of Prometheus."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from math import tanh

from coterie.errors import StoreError
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import LivePolicy
from coterie.service.core.outcomes import Counts
from coterie.service.core.queries import summary
from coterie.service.core.watching import ALERTS
from coterie.service.limits import LIMITED

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper ends of the buckets of latencies, in seconds."""


class Histogram:
    """A histogram of latencies: counts in buckets, and the sum."""

    def __init__(self) -> None:
        """Start empty."""
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Add one latency."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def quantile(self, share: float) -> float | None:
        """Return the upper end of the bucket that contains this quantile; None if there is none."""
        wanted, seen = share * sum(self.counts), 0
        if not wanted:
            return None
        for count, bound in zip(self.counts, BOUNDS, strict=False):
            seen += count
            if seen >= wanted:
                return bound
        return BOUNDS[-1]

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """Yield the histogram as Prometheus reads it."""
        seen = 0
        for count, bound in zip(self.counts, (*BOUNDS, "+Inf"), strict=True):
            seen += count
            yield f'{name}_bucket{{{labels}le="{bound}"}} {seen}'
        yield f"{name}_sum {self.total:.6f}"
        yield f"{name}_count {seen}"


class Metrics:
    """Counts and latencies of one service."""

    def __init__(self) -> None:
        """Start at zero."""
        self.started = time.time()
        self.decision_seconds = Histogram()
        self.reward_seconds = Histogram()
        self.routes = {"decisions": self.decision_seconds, "rewards": self.reward_seconds}
        self.responses: Counter[int] = Counter()
        self.in_flight = self.body_bytes = self.connections = 0
        self.streams = self.exports = 0
        self._shown: dict[str, tuple[float, float]] = {}

    def rising(self, series: str, value: float) -> float:
        """Return a count that never falls while the process runs.

        Counts of a policy are those of its log, and removing a user removes some of them. Prometheus would
        take that for a restart from 0, and all counts for new ones.
        """
        last, shown = self._shown.get(series, (value, value))
        shown += max(value - last, 0)
        self._shown[series] = value, shown
        return shown


def exposition(engine: PolicyEngine, metrics: Metrics) -> str:
    """Return all metrics as text."""
    return "\n".join([*_service_lines(engine, metrics), *_policy_lines(engine, metrics), ""])


def _service_lines(engine: PolicyEngine, metrics: Metrics) -> Iterator[str]:
    journal = engine.journal
    yield from _typed("coterie_up", "gauge", "1 if the store can be written.")
    yield f"coterie_up {int(engine.lifecycle.serving)}"
    yield from _typed("coterie_responses_total", "counter", "Answers by status.")
    for status, count in sorted(metrics.responses.items()):
        yield f'coterie_responses_total{{status="{status}"}} {count}'
    for name, value, help_text in (
        ("coterie_requests_in_flight", metrics.in_flight, "Requests that are being answered."),
        ("coterie_body_bytes", metrics.body_bytes, "Bytes of the bodies of requests in flight."),
        ("coterie_connections", metrics.connections, "Open connections."),
        ("coterie_streams", metrics.streams, "Open web pages."),
        ("coterie_exports", metrics.exports, "Exports that are under way."),
        ("coterie_queue_depth", journal.depth, "Events that are not durable yet."),
    ):
        yield from _typed(name, "gauge", help_text)
        yield f"{name} {value}"
    yield from _limit_lines(engine, metrics)
    for name, amount, help_text in (
        ("coterie_commits_total", float(journal.commits), "Commits of groups of events."),
        ("coterie_commit_seconds_total", journal.commit_seconds, "Seconds that commits took."),
    ):
        yield from _typed(name, "counter", help_text)
        yield f"{name} {amount:.6f}"
    for name, histogram, help_text in (
        ("coterie_decision_seconds", metrics.decision_seconds, "From request to durable decision."),
        ("coterie_reward_seconds", metrics.reward_seconds, "From request to durable rewards."),
    ):
        yield from _typed(name, "histogram", help_text)
        yield from histogram.lines(name)


def _limit_lines(engine: PolicyEngine, metrics: Metrics) -> Iterator[str]:
    """Yield each limit, how much of it is used, and how often it was reached."""
    limiter = engine.limiter
    yield from _typed("coterie_limit", "gauge", "Limits of the settings.")
    for name in LIMITED:
        yield f'coterie_limit{{limit="{name}"}} {limiter.most(name)}'
    yield from _typed("coterie_limit_used", "gauge", "What is held of that which has a limit.")
    for name, held in (
        ("policy", len(engine.policies) + len(engine.quarantined)),
        ("experiment", len(engine.experiments.all())),
        ("queue", engine.journal.queued_bytes),
        ("bodies", metrics.body_bytes),
        ("in_flight", metrics.in_flight),
        ("stream", metrics.streams),
        ("export", metrics.exports),
        ("connection", metrics.connections),
    ):
        yield f'coterie_limit_used{{limit="{name}"}} {held}'
    for policy, live in list(engine.policies.items()):
        state = live.state  # not lent: four numbers are read, whatever happens meanwhile
        for name, held in (
            ("user", len(state.users)),
            ("item", len(state.items)),
            ("known_item", len(state.items.known)),
            ("waiting", state.waiting_bytes),
        ):
            yield f'coterie_limit_used{{limit="{name}",policy="{policy}"}} {held}'
    yield from _typed("coterie_limited_total", "counter", "Refusals by the limit that was reached.")
    for name in LIMITED:
        yield f'coterie_limited_total{{limit="{name}"}} {limiter.refusals[name]}'


GAUGES = {
    "coterie_users": "Users of a policy.",
    "coterie_clusters": "Clusters of a policy.",
    "coterie_pending_decisions": "Decisions that wait for their reward.",
    "coterie_snapshot_age_events": "Events since the last snapshot.",
    "coterie_snapshot_age_seconds": "Seconds since the last snapshot; none if there is none yet.",
    "coterie_snapshot_failures": "Attempts that failed since the last snapshot; /health/ready says why.",
    "coterie_sigma": "The noise that the policy estimates.",
    "coterie_model_weight": "The weight of each model in decisions, where the policy has two.",
    "coterie_uniform_share": "The share of decisions that are drawn uniformly, by the settings.",
    "coterie_exploring": "1 while the policy itself draws uniformly.",
    "coterie_effective_items": "Items that the latest decisions show, counted as equally frequent ones.",
    "coterie_summed_reward": "Sum of rewards by choice; a decision has the default until its own comes.",
    "coterie_counted_decisions": "Decisions in that sum; all of them, unless there is no default reward.",
    "coterie_summed_propensity": "Sum of the probabilities of decisions whose probability is known.",
    "coterie_alert": "1 while something has collapsed against its own past.",
}
"""Values that may fall, as sums of rewards may."""
COUNTERS = {
    "coterie_decisions_total": "Decisions made.",
    "coterie_rewards_total": "Rewards taken, feedback included.",
    "coterie_expired_total": "Decisions whose reward did not come in time.",
    "coterie_duplicates_total": "Requests that were repeated, since the start of the process.",
    "coterie_choices_total": "Decisions by choice: of the policy, or uniform.",
    "coterie_answered_total": "Decisions that got a reward, by choice.",
    "coterie_propensities_total": "Decisions whose probability is known.",
    "coterie_new_item_decisions_total": "Decisions for items that were shown fewer than ten times before.",
    "coterie_change_alarms_total": "Users who were found to have changed.",
}


def _policy_lines(engine: PolicyEngine, metrics: Metrics) -> Iterator[str]:
    """Yield the metrics of each policy."""
    values: dict[str, list[str]] = {name: [] for name in (*GAUGES, *COUNTERS)}
    for name, live in list(engine.policies.items()):
        try:
            rows = [*_state_values(engine, live), *_outcome_values(live)]
        except StoreError:
            continue  # it is busy or recovering: a gap in its metrics is better than no metrics at all
        for metric, labels, value in rows:
            if value is not None:
                series = f'{metric}{{policy="{name}"{labels}}}'
                shown = metrics.rising(series, value) if metric in COUNTERS else value
                values[metric].append(f"{series} {shown}")
    for metric, help_text in {**GAUGES, **COUNTERS}.items():
        yield from _typed(metric, "counter" if metric in COUNTERS else "gauge", help_text)
        yield from values[metric]


Value = tuple[str, str, float | None]
"""A metric, its labels beside the policy's name, and its value, if it has one."""


def _state_values(engine: PolicyEngine, live: LivePolicy) -> Iterator[Value]:
    """Yield what a policy is now, and what it has taken."""
    summarised, numbers = summary(live), live.state.policy.learner.numbers()
    events = Counter(summarised.events)
    yield "coterie_users", "", summarised.users
    yield "coterie_clusters", "", summarised.clusters
    yield "coterie_pending_decisions", "", summarised.waiting
    yield "coterie_snapshot_age_events", "", live.state.seq - live.snapshots.seq
    yield "coterie_snapshot_age_seconds", "", _age(engine, live.snapshots.at)
    yield "coterie_snapshot_failures", "", live.snapshots.retry.failures
    yield "coterie_sigma", "", sigma_of(numbers)
    for model, weight in model_weights(numbers).items():
        yield "coterie_model_weight", f',model="{model}"', weight
    yield "coterie_uniform_share", "", live.state.settings.uniform_share
    yield "coterie_exploring", "", int(live.state.policy.exploring)
    yield "coterie_decisions_total", "", events["decision"]
    yield "coterie_rewards_total", "", events["reward"] + events["feedback"]
    yield "coterie_expired_total", "", events["expired"]
    yield "coterie_duplicates_total", "", live.duplicates
    yield "coterie_change_alarms_total", "", numbers.get("changes.alarms")


def _outcome_values(live: LivePolicy) -> Iterator[Value]:
    """Yield what decisions have brought, and what has collapsed."""
    with live.reading() as state:
        total = Counts.from_fields(state.outcomes.total.fields())
    for choice, counts in (("policy", total.policy), ("uniform", total.uniform)):
        labels = f',choice="{choice}"'
        yield "coterie_choices_total", labels, counts.decisions
        yield "coterie_answered_total", labels, counts.answered
        yield "coterie_counted_decisions", labels, counts.counted
        yield "coterie_summed_reward", labels, counts.reward
    yield "coterie_propensities_total", "", total.propensities
    yield "coterie_summed_propensity", "", total.propensity
    yield "coterie_new_item_decisions_total", "", total.new_items
    yield "coterie_effective_items", "", live.watch.effective_items
    raised = {one.name for one in live.watch.alerts}
    for name in ALERTS:
        yield "coterie_alert", f',alert="{name}"', int(name in raised)


def _age(engine: PolicyEngine, at: float | None) -> float | None:
    """Return seconds since a time, if there is one."""
    return None if at is None else round(max(engine.journal.now() - at, 0.0), 3)


def sigma_of(numbers: dict[str, float]) -> float | None:
    """Return the standard deviation of the noise, of policies that estimate it."""
    variance = numbers.get("noise2", numbers.get("prior.noise2"))
    return None if variance is None or variance < 0 else variance**0.5


def model_weights(numbers: dict[str, float]) -> dict[str, float]:
    """Return the weight of each model in decisions, of a policy that has two; none of the others."""
    if "weights.log_odds" not in numbers:
        return {}
    hierarchical = 0.5 * (1.0 + tanh(0.5 * numbers["weights.log_odds"]))
    return {"clusters": 1.0 - hierarchical, "hierarchical": hierarchical}


def _typed(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
