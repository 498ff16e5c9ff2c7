"""The bodies of requests and answers, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from coterie.policies.catalogue.tag_sets import LONGEST_TAG
from coterie.service.core.ids import LONGEST_ID
from coterie.service.core.known_items import MOST_TAGS
from coterie.service.settings import Late, LearnParts, LogOffers, Mode

MOST_ITEMS = 10_000
MOST_DIM = 4_096
MOST_EXCLUDED = 50_000
MOST_ONLY = 1_000
"""Items that a decision may exclude, and tags that it may name; other requests wait meanwhile."""

Id = Annotated[
    str, Meta(min_length=1, max_length=LONGEST_ID, description="1 to 256 characters, no control characters")
]
Vector = Annotated[
    list[float], Meta(min_length=1, max_length=MOST_DIM, description="as long as the policy's dim")
]
Tag = Annotated[str, Meta(min_length=1, max_length=LONGEST_TAG, description="1 to 100 characters")]


class Message(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A body of a request; unknown fields are refused."""


class Answer(msgspec.Struct, kw_only=True):
    """A body of an answer."""


class NewPolicy(Message):
    """A policy to be made."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    dim: Annotated[int, Meta(ge=1, le=MOST_DIM)]
    policy: str = "AutoCLUB"
    params: dict[str, Any] = {}
    users: Annotated[list[Id], Meta(max_length=10_000)] = []
    seed: Annotated[int, Meta(ge=0, lt=2**53)] = 0
    reward_wait: Annotated[float, Meta(ge=0, le=1e12)] | None = 86_400.0
    default_reward: float | None = 0.0
    late: Late = "accept"
    learn_parts: LearnParts = "at_close"
    uniform_share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    mode: Mode = "online"
    log_offers: LogOffers = "chosen"


class ExperimentPolicy(Message):
    """A policy of an experiment, and its share of users in any unit."""

    policy: str
    share: Annotated[float, Meta(gt=0, lt=1e9)] = 1.0


class NewExperiment(Message):
    """An experiment to begin; the first policy is the champion that the others are compared with."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    policies: Annotated[list[ExperimentPolicy], Meta(min_length=2, max_length=10)]
    learn: Literal["own", "all"] = "own"
    alpha: Annotated[float, Meta(gt=0, le=0.5)] = 0.05
    least_effect: Annotated[float, Meta(gt=0)] | None = None


class ExperimentEnd(Message):
    """The end of an experiment: the policy that decides for all users from then on."""

    keep: str


class ExperimentPolicyAnswer(Answer):
    """What a policy of an experiment has brought; differences are to the champion, the first policy.

    `users` have had a decision; `decisions` count with their reward, or the default until it comes. `low` and
    `high` hold at all times at once, however often one looks; null while there is too little data. `uplift`
    is relative.
    """

    policy: str
    share: float
    mode: str
    users: int
    decisions: int
    reward: float | None
    difference: float | None
    low: float | None
    high: float | None
    uplift: float | None


class ExperimentDayAnswer(Answer):
    """A day (UTC): decisions, mean reward, and uplift over the champion of each policy, in order."""

    day: str
    decisions: list[int]
    reward: list[float | None]
    uplift: list[float | None]


class ExperimentAnswer(Answer):
    """An experiment with its results; `proposal` is what they suggest, and nothing happens by itself.

    `ratio_p` bounds the probability of ever seeing numbers of users as far from their shares as these.
    """

    name: str
    learn: str
    alpha: float
    least_effect: float | None
    created: float
    stopped: float | None
    kept: str | None
    policies: list[ExperimentPolicyAnswer]
    days: list[ExperimentDayAnswer]
    ratio_p: float
    ratio_ok: bool
    proposal: str


class ExperimentsAnswer(Answer):
    """All experiments, in the order in which they were begun."""

    experiments: list[ExperimentAnswer]


class PolicyChanges(Message):
    """Settings that may change; those left out stay as they are."""

    reward_wait: Annotated[float, Meta(ge=0, le=1e12)] | UnsetType | None = UNSET
    default_reward: float | UnsetType | None = UNSET
    late: Late | UnsetType = UNSET
    learn_parts: LearnParts | UnsetType = UNSET
    uniform_share: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    log_offers: LogOffers | UnsetType = UNSET


class PolicyAnswer(Answer):
    """A policy at a glance."""

    name: str
    settings: dict[str, Any]
    rounds: int
    users: int
    items: int
    clusters: int
    waiting: int
    events: dict[str, int]
    version: int


class FailedPolicy(Answer):
    """A policy that cannot be used now, and why."""

    name: str
    reason: str


class PoliciesAnswer(Answer):
    """All policies that serve, and those that should and cannot."""

    policies: list[PolicyAnswer]
    failed: list[FailedPolicy]


class Arm(Message):
    """An arm with its vector."""

    id: Id
    x: Vector


class Item(Message):
    """An item of the catalogue with its vector; without `tags`, it keeps those that it has."""

    id: Id
    x: Vector
    tags: Annotated[list[Tag], Meta(max_length=MOST_TAGS)] | UnsetType = UNSET


class Items(Message):
    """Items of a catalogue."""

    items: Annotated[list[Item], Meta(max_length=MOST_ITEMS)]


class ItemsAnswer(Answer):
    """How many items the catalogue has; a list of items has their ids, and `next` where it goes on."""

    count: int
    ids: list[str] | UnsetType = UNSET
    next: int | UnsetType | None = UNSET


class DecisionRequest(Message):
    """A user, and what may be shown: items of the catalogue (all by default) or arms with vectors.

    Of the whole catalogue, `exclude` leaves items out, and `only` keeps those that have one of these tags.
    How many items or arms a request may list is a setting of the server.
    """

    user: Id
    items: Annotated[list[Id], Meta(min_length=1)] | None = None
    arms: Annotated[list[Arm], Meta(min_length=1)] | None = None
    exclude: Annotated[list[Id], Meta(max_length=MOST_EXCLUDED)] | None = None
    only: Annotated[list[Tag], Meta(min_length=1, max_length=MOST_ONLY)] | None = None
    k: Annotated[int, Meta(ge=1)] = 1
    decision_id: Id | None = None


class ArmScoreAnswer(Answer):
    """The estimate and the bonus of an arm that was chosen."""

    id: str
    mean: float
    width: float


class DecisionAnswer(Answer):
    """What to show; `decision_id` is what the reward names.

    In an experiment, `policy` is the one that the user is assigned to. If it is in `shadow` mode, the product
    shows what it shows without it, and names that in the reward.
    """

    decision_id: str
    chosen: str
    ranking: list[str] | None
    scores: list[ArmScoreAnswer]
    propensity: float | None
    cluster: int | None
    policy_version: int
    policy: str | UnsetType = UNSET
    shadow: bool | UnsetType = UNSET

    @property
    def id(self) -> str:
        """The id that the reward names, called as in a decision of `Recommender`."""
        return self.decision_id


class Reward(Message):
    """The reward of a decision; or, for a user, that of an item or vector that something else chose.

    `part` names one of several rewards of a decision, which add up; each name counts once. `id` makes
    feedback without a decision count once.
    """

    reward: float
    decision_id: Id | None = None
    part: Id | None = None
    user: Id | None = None
    item: Id | None = None
    x: Vector | None = None
    id: Id | None = None


class Rewards(Message):
    """One reward or many; each gets its own result."""

    rewards: Annotated[list[Reward], Meta(min_length=1)]


class RewardAnswer(Answer):
    """The result of a reward: counted, added, recorded, duplicate, late; or refused, with the reason."""

    id: str | None
    status: str
    code: int = 200
    detail: str | UnsetType = UNSET


class RewardsAnswer(Answer):
    """A result for each reward, in order."""

    results: list[RewardAnswer]


class UsersAnswer(Answer):
    """Some users in the order in which they came; `next` continues the list."""

    users: list[str]
    total: int
    next: int | None


class ItemScoreAnswer(Answer):
    """An item for a user now."""

    id: str
    mean: float
    width: float
    ucb: float


class ExplanationAnswer(Answer):
    """Whose rewards count for a user, and how items score for it."""

    user: str
    rewards: int
    cluster: int
    cluster_size: int
    learns_from: list[str]
    estimate: list[float]
    scores: list[ItemScoreAnswer]
    belongs: float | None = None
    known: float | None = None
    counts_for: float | None = None
    degrees: float | None = None
    changes: int | None = None
    since_change: int | None = None


class UserEventAnswer(Answer):
    """A decision, a reward or an expiry of a user."""

    kind: str
    at: float
    decision_id: str | None
    item: str | None
    reward: float | None
    propensity: float | None


class HistoryAnswer(Answer):
    """The events of a user, in order."""

    events: list[UserEventAnswer]


class ClusterAnswer(Answer):
    """A cluster, named by the number of its first member; where there are shards, within its `shard`."""

    id: int
    size: int
    first_user: str
    shard: int | UnsetType = UNSET


class ClustersAnswer(Answer):
    """All clusters, the largest first."""

    clusters: list[ClusterAnswer]


class ChoiceAnswer(Answer):
    """Decisions made in one way: by the policy, or drawn uniformly.

    `counted` ones are in the sum of rewards: with the default reward until their own comes. `answered` ones
    have got a reward of their own.
    """

    decisions: int
    counted: int
    answered: int
    reward_sum: float


class HourAnswer(Answer):
    """What happened in an hour, from the time `at` on.

    `propensity` is the mean probability of decisions, where it is known; `new_items` counts decisions for
    items shown fewer than ten times before; `effective_items` is how many equally frequent items would repeat
    as often as those shown do.
    """

    at: float
    policy: ChoiceAnswer
    uniform: ChoiceAnswer
    propensity: float | None
    new_items: int
    effective_items: float | None


class ItemOutcomeAnswer(Answer):
    """What an item has brought; `effect` is what the policy adds for it to the estimates of all users."""

    id: str
    shown: int
    reward: float | None
    first_shown: float | None
    effect: float | None


class AlertAnswer(Answer):
    """Something that has collapsed against its own past: reward, answers or variety."""

    name: str
    text: str


class ChangedUserAnswer(Answer):
    """A user whose preference was found to have changed, so many rewards of all users ago."""

    user: str
    rewards_ago: int


class OutcomesAnswer(Answer):
    """What the decisions of a policy have brought: by hour, by item, and what has collapsed.

    Items are those of the catalogue that were shown: of the highest reward, the newest, and shown most.
    `changed_users` are the last ones, latest first; null where the policy does not look for changes.
    """

    hours: list[HourAnswer]
    best_items: list[ItemOutcomeAnswer]
    newest_items: list[ItemOutcomeAnswer]
    most_shown_items: list[ItemOutcomeAnswer]
    alerts: list[AlertAnswer]
    changed_users: list[ChangedUserAnswer] | None = None


class MembersAnswer(Answer):
    """The users of a cluster, at most 1,000."""

    users: list[str]


class ImportAnswer(Answer):
    """How many rewards of a log were counted, and how many were known already."""

    counted: int
    duplicates: int


class Health(Answer):
    """Whether the service runs, or can serve; `warnings` say what fails without stopping it."""

    status: str
    warnings: list[str] = []
    uncommitted_seconds: float | UnsetType = UNSET


class Problem(Answer):
    """The description of an error (RFC 9457)."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"


class ShardsAnswer(Answer):
    """Which shard answers, and the address of each: that of a user is `shard_of(user, len(addresses))`."""

    shard: int
    addresses: list[str]


class Misdirected(Answer):
    """A request that was sent to the shard of other users, and the addresses of all shards (RFC 9457)."""

    title: str
    status: int
    detail: str
    shards: ShardsAnswer
    type: str = "about:blank"


class ShardStatus(Answer):
    """How a shard is; `in_step` says whether it has made all changes that shard 0 has made."""

    shard: int
    up: bool
    users: int = 0
    rounds: int = 0
    in_step: bool = False
    reason: str = ""


class ShardsStatus(Answer):
    """How all shards are."""

    shards: list[ShardStatus]


def sentence(error: str, whole: str) -> str:
    """Return what msgspec says of a field, with the field first, or `whole` if it is about no single field.

    >>> sentence("Expected `float`, got `str` - at `$.rewards[0].reward`", "the body")
    'rewards[0].reward: expected float, got str'
    """
    message, _, where = error.partition(" - at `$")
    field = where.strip("`").removeprefix(".") or whole
    return f"{field}: {message[:1].lower()}{message[1:]}".replace("`", "")
