"""Questions to a policy that change nothing: a summary, clusters, explanations, histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.errors import ArgumentError
from coterie.policies.autoclub.autoclub import AutoCLUB
from coterie.policies.base import LinearBandit
from coterie.policies.segments import Segmented
from coterie.service.core.live_policy import LivePolicy
from coterie.service.core.outcomes import HOUR, Counts
from coterie.service.core.state import PolicyState
from coterie.service.core.watching import Alert
from coterie.service.storage.event_store import DECISION
from coterie.types import Floats, Ints

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


class Summary(NamedTuple):
    """A policy at a glance: its settings, and counts of what it has seen."""

    name: str
    settings: dict[str, Any]
    rounds: int
    users: int
    items: int
    clusters: int
    waiting: int
    events: dict[str, int]
    version: int


class Cluster(NamedTuple):
    """Users who learn from each other: a cluster is named by the number of its first member."""

    id: int
    size: int
    first_user: str


class ItemScore(NamedTuple):
    """The current score of an item for a user: estimated mean, width of the bonus, and their sum."""

    id: str
    mean: float
    width: float
    ucb: float


class Explanation(NamedTuple):
    """Whose rewards count for a user, and how items score for it.

    `rewards` counts those of the user, `learns_from` are the other users of its cluster (at most 100 are
    named; `cluster_size` counts all), `estimate` is the estimated preference. Only AutoCLUB sets the last
    six fields. Four are from 0 to 1: `belongs` is the probability that the user belongs to its cluster;
    `known` is the share of its preference that its own data determine; `counts_for` is the weight of its
    rewards, less than 1 if they are noisier than those of others; `degrees` is the weight of the hierarchical
    model, as opposed to the clusters. `changes` counts how often the user was found to have changed, and
    `since_change` its rewards since then.
    """

    user: str
    rewards: int
    cluster: int
    cluster_size: int
    learns_from: list[str]
    estimate: list[float]
    scores: list[ItemScore]
    belongs: float | None = None
    known: float | None = None
    counts_for: float | None = None
    degrees: float | None = None
    changes: int | None = None
    since_change: int | None = None

    def __repr__(self) -> str:
        """The user, whom it learns from, and the ten best items, in a few lines."""
        named = ", ".join(self.learns_from[:5]) or "nobody else"
        more = self.cluster_size - 1 - len(self.learns_from[:5])
        lines = [
            f"user {self.user}: {self.rewards:,} rewards, learns from {named}"
            + (f" and {more:,} more" if more > 0 else "")
        ]
        lines += [
            f"{one.ucb:10.4g} = {one.mean:.4g} + {one.width:.3g}  {one.id}" for one in self.scores[:SHOWN]
        ]
        rest = len(self.scores) - SHOWN
        return "\n".join([*lines, f"{rest:,} more in scores"] if rest > 0 else lines)


class SimilarUser(NamedTuple):
    """A user, and how far its expected rewards are from those of another, in the root mean square."""

    user: str
    distance: float


class UserEvent(NamedTuple):
    """A decision, a reward or an expiry in the history of a user."""

    kind: str
    at: float
    decision_id: str | None
    item: str | None
    reward: float | None
    propensity: float | None


class ItemOutcome(NamedTuple):
    """What an item has brought.

    `shown` counts decisions for it, and `reward` is the mean of those that count; `first_shown` is a time.
    `effect` is what the policy adds to the estimates of all users for this item, where it learns such.
    """

    id: str
    shown: int
    reward: float | None
    first_shown: float | None
    effect: float | None


class ItemOutcomes(NamedTuple):
    """Some items of the catalogue: those of the highest reward, the newest, and those shown most."""

    best: list[ItemOutcome]
    newest: list[ItemOutcome]
    most_shown: list[ItemOutcome]


class HourCounts(NamedTuple):
    """The counts of an hour, which began at the time `at`."""

    at: float
    counts: Counts


class ChangedUser(NamedTuple):
    """A user whose preference was found to have changed, so many rewards of all users ago."""

    user: str
    rewards_ago: int


class PolicyOutcomes(NamedTuple):
    """What the decisions of a policy have brought: by hour, by item, and what has collapsed.

    `changed_users` are the last ones, latest first; None where the policy does not look for changes.
    """

    hours: list[HourCounts]
    items: ItemOutcomes
    alerts: tuple[Alert, ...]
    changed_users: list[ChangedUser] | None


SHOWN = 10
"""Items that the text of an explanation names."""
NAMED = 100
"""Maximum number of cluster members listed in an explanation."""
SCORED_AT_ONCE = 1_000
"""Items that are scored while decisions wait."""
PRIOR_SHOWN = 20.0
"""How often the mean reward of all items counts for each, so that one lucky decision makes no best item."""


def summary(live: LivePolicy) -> Summary:
    """Summarise a policy."""
    with live.reading() as state:
        settings, labels = state.settings, user_labels(live)
        found = Summary(
            name=live.name,
            settings={name: getattr(settings, name) for name in settings.__slots__},
            rounds=state.policy.rounds,
            users=len(state.users),
            items=len(state.items),
            clusters=0,
            waiting=len(state.waiting),
            events=dict(state.counts),
            version=state.seq,
        )
    # Decisions wait while the state is lent: what takes longer the more users there are is done afterwards.
    shown = {**found.settings, "users": list(settings.users), "params": dict(settings.params)}
    return found._replace(settings=shown, clusters=len(np.unique(labels)))


def user_labels(live: LivePolicy) -> Ints:
    """Return the cluster of each user, in the order of their numbers; labels may be any numbers."""
    state = live.state
    with state.policy.lock:
        return state.policy.learner.labels()[: len(state.users)].copy()


def clusters(live: LivePolicy) -> list[Cluster]:
    """Return all clusters, the largest first."""
    with live.reading() as state:
        labels, names = user_labels(live), state.users.ids
    _, firsts, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = np.lexsort((firsts, -sizes))
    return [Cluster(int(firsts[one]), int(sizes[one]), names[firsts[one]]) for one in order]


def members(live: LivePolicy, cluster: int, limit: int = 1_000) -> list[str]:
    """Return the users of a cluster, in the order in which they came; none if there is no such cluster."""
    with live.reading() as state:
        labels, names = user_labels(live), state.users.ids
    if not 0 <= cluster < len(labels):
        return []
    found = np.flatnonzero(labels == labels[cluster])
    return [names[one] for one in found[:limit].tolist()] if found[0] == cluster else []


def explain(live: LivePolicy, user: str, items: Sequence[str] | None = None, limit: int = 100) -> Explanation:
    """Explain a user: its cluster, and the scores of the items named, or of the best of the catalogue.

    Items are scored some at a time, and decisions are made between: of a large catalogue, the last items may
    be scored a few rewards later than the first.
    """
    with live.reading() as state:
        number = state.users.number(user)
        policy = state.policy
        others = learnt_from(state, number)
        labels = user_labels(live)
        if items is not None:
            state.items.numbers(items)
        with policy.lock:
            estimate = policy.learner.estimates_of(np.array([number]))[0].tolist()
        found = Explanation(
            user=user,
            rewards=int(policy.pulls[number]),
            cluster=0,
            cluster_size=len(others) + 1,
            learns_from=state.users.named(others[:NAMED]),
            estimate=estimate,
            scores=[],
            **autoclub_weights(state, number),
        )
    return found._replace(
        cluster=int(np.argmax(labels == labels[number])),
        scores=_best_scores(live, user, items, limit),
    )


def _best_scores(live: LivePolicy, user: str, items: Sequence[str] | None, limit: int) -> list[ItemScore]:
    """Return those of some items, or of all, that have the largest sums.

    What is removed or takes the place of a removed item meanwhile may be left out.
    """
    best: list[tuple[float, float, float, int]] = []
    start, count = 0, 1
    while start < count:
        with live.reading() as state:
            known = state.items
            numbers = known.catalogue.ids if items is None else known.numbers(items)
            count, some = len(numbers), numbers[start : start + SCORED_AT_ONCE]
            if not len(some):
                break
            vectors = known.vectors_by_number(some)
            found = state.policy.scores(state.users.number(user), vectors, items=some)
        order = np.argsort(-found.ucb, kind="stable")[:limit]
        rows = zip(
            *(column[order].tolist() for column in (found.ucb, found.mean, found.width, some)), strict=True
        )
        best = sorted([*best, *rows], key=lambda one: -one[0])[:limit]
        start += SCORED_AT_ONCE
    names = live.state.items.known.named([one[3] for one in best])
    return [
        ItemScore(name, mean, width, ucb) for name, (ucb, mean, width, _) in zip(names, best, strict=True)
    ]


def similar(live: LivePolicy, user: str, k: int = 10) -> list[SimilarUser]:
    """Return the k users whose expected rewards are nearest to those of a user, the nearest first."""
    with live.reading() as state:
        number, policy, users = state.users.number(user), _segmented(state.policy), state.users
    found = policy.similar(number, k)
    names = users.named(found.users.tolist())
    return [SimilarUser(name, one) for name, one in zip(names, found.distances.tolist(), strict=True)]


def _segmented(policy: LinearBandit) -> Segmented:
    """Return the policy, if it can say which users are alike."""
    if isinstance(policy, Segmented):
        return policy
    raise ArgumentError(f"{policy.name} does not say who is alike: AutoCLUB, HierUCB and HierTS do")


def plot_clusters(live: LivePolicy, axes: Axes | None) -> Axes:
    """Draw the users of a policy that can say which of them are alike."""
    return _segmented(live.state.policy).plot_clusters(ax=axes)


def user_table(live: LivePolicy) -> pl.DataFrame:
    """Return the table of a policy's users, with their ids."""
    import polars as pl

    with live.reading() as state:
        names = state.users.ids
        table = state.policy.to_frame()
    return table.head(len(names)).with_columns(user=pl.Series(names, dtype=pl.String))


def autoclub_weights(state: PolicyState, number: int) -> dict[str, Any]:
    """Return the fields of an explanation that only AutoCLUB has."""
    if not isinstance(state.policy, AutoCLUB):
        return {}
    found = state.policy.explain(number)
    return {
        "belongs": found.weight,
        "known": found.known,
        "counts_for": found.noise_weight,
        "degrees": found.hierarchy,
        "changes": found.changes,
        "since_change": found.since_change,
    }


def learnt_from(state: PolicyState, number: int) -> list[int]:
    """Return the numbers of the other users in the cluster of this one."""
    found: list[int] = state.policy.cluster_of(number).tolist()
    return [one for one in found if one != number and one < len(state.users)]


def outcomes(live: LivePolicy, limit: int = 10) -> PolicyOutcomes:
    """Return what decisions have brought, with so many items of each kind."""
    with live.reading() as state:
        found = state.outcomes
        hours = [
            HourCounts(hour * HOUR, Counts.from_fields(one.fields())) for hour, one in found.hours.items()
        ]
        rows = found.items
        listed = state.items.catalogue.ids
        listed = listed[listed < len(rows)]
        table = rows[listed]
        changed = _changed_users(state)
    # Decisions wait while the state is lent: large catalogues are sorted afterwards.
    shown = table[:, 0] > 0
    numbers, table = listed[shown], table[shown]
    average = table[:, 2].sum() / max(table[:, 1].sum(), 1.0)
    expected = (table[:, 2] + PRIOR_SHOWN * average) / (table[:, 1] + PRIOR_SHOWN)
    kinds = (-expected, -table[:, 3], -table[:, 0])
    orders = [np.argsort(key, kind="stable")[:limit] for key in kinds]
    chosen = [[_item_outcome(live, int(numbers[one]), table[one]) for one in order] for order in orders]
    return PolicyOutcomes(sorted(hours), ItemOutcomes(*chosen), live.watch.alerts, changed)


def _changed_users(state: PolicyState) -> list[ChangedUser] | None:
    """Return the users who were found to have changed last, of a policy that looks for changes."""
    found = getattr(state.policy, "changes", None)
    if found is None:
        return None
    pairs = zip(found.users.tolist(), found.rounds.tolist(), strict=True)
    known = [(number, rounds) for number, rounds in pairs if number < len(state.users)]
    names = state.users.named([number for number, _ in known])
    return [
        ChangedUser(name, state.policy.rounds - rounds)
        for name, (_, rounds) in zip(names, known, strict=True)
    ]


def _item_outcome(live: LivePolicy, number: int, row: Floats) -> ItemOutcome:
    shown, counted, reward, first = row.tolist()
    effects = live.state.policy.learner.items
    with live.state.policy.lock:
        effect = None if effects is None else effects.effect(number)[0]
    name = live.state.items.known.named([number])[0]
    return ItemOutcome(name, int(shown), reward / counted if counted else None, first or None, effect)


def history(live: LivePolicy, user: str, limit: int = 100) -> list[UserEvent]:
    """Return the latest events of a user, in order."""
    with live.reading() as state:
        users = state.users
    found = live.stored_history(user, limit)  # others have their turn while the store is read
    if not found:
        users.number(user)
    return [
        UserEvent(
            kind=event.kind,
            at=event.at,
            decision_id=event.decision,
            item=event.item,
            reward=event.reward,
            propensity=event.fields().get("propensity") if event.kind == DECISION else None,
        )
        for event in found
    ]
