"""Decisions and rewards: how they are made, what callers see of them, and what the log keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import perm
from typing import Any, Literal, NamedTuple

from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies.base import LinearBandit
from coterie.service.core.ids import checked_id
from coterie.service.core.state import PolicyState, generator_fields
from coterie.service.storage.event_store import DECISION, Event, encode_detail
from coterie.types import Floats
from coterie.validation import arms_matrix, finite, shown

Status = Literal["counted", "recorded", "duplicate", "late"]
"""Learnt from; kept but not learnt from; known already; counted after the default was."""


class ArmScore(NamedTuple):
    """Why an arm was chosen: its id, the estimated mean and the width of the bonus."""

    id: str
    mean: float
    width: float


class Decision(NamedTuple):
    """What to show a user.

    Attributes
    ----------
    id : str
        The id that the reward names.
    chosen : str
        The id of the item, the first of the ranking.
    ranking : tuple of str
        All k items, best first.
    scores : tuple of ArmScore
        The estimate and the bonus of each item of the ranking.
    propensity : float or None
        The probability of this choice; None where it has no closed form (Thompson sampling).
    cluster : int or None
        The cluster of the user, named by the number of its first member.
    policy_version : int
        The number of the last event that the decision rests on.
    """

    id: str
    chosen: str
    ranking: tuple[str, ...]
    scores: tuple[ArmScore, ...]
    propensity: float | None
    cluster: int | None
    policy_version: int


class RewardResult(NamedTuple):
    """The id that a reward was for, and whether it was counted."""

    id: str
    status: Status


class Offer(NamedTuple):
    """The arms of a decision: an id and a vector each.

    `source` is where they come from: the whole catalogue, items that were named, or arms with vectors.
    """

    ids: Sequence[str]
    arms: Floats
    source: Literal["all", "items", "arms"]


class Outcome(NamedTuple):
    """A choice among arms, and why.

    Attributes
    ----------
    arms : list of int
        Row numbers, best first.
    mean, width : list of float
        The estimate and the bonus of each of these arms.
    propensity : float or None
        The probability of this choice; None where it has no closed form (Thompson sampling).
    first_propensity : float or None
        The probability of the first of these arms being first.
    cluster : int or None
        The cluster of the user, named by its first member; None for a new user of a frozen policy.
    drawn : bool
        Was it drawn uniformly, as a part of the uniform share?
    generator : list or None
        The state of the policy's generator afterwards, if the decision changed it.
    """

    arms: list[int]
    mean: list[float]
    width: list[float]
    propensity: float | None
    first_propensity: float | None
    cluster: int | None
    drawn: bool
    generator: list[Any] | None


def choose(state: PolicyState, user: str, arms: Floats, k: int) -> Outcome:
    """Decide for a user among `arms`, which were checked; a new user is added."""
    policy, number = state.policy_for(user)
    learner = policy.learner
    # The generator shows whether the policy drew random numbers: a sampled choice has no known propensity.
    before = state.generator_state(policy)
    exploring = bool(learner.exploring)
    own = _own_choice(policy, number, arms, k)
    after = policy.generator.bit_generator.state
    sampled = not exploring and after != before
    share = state.settings.uniform_share
    picks = own
    drawn = share > 0 and policy.generator.random() < share
    if drawn:
        picks = policy.generator.choice(len(arms), k, replace=False).tolist()
    if share > 0:
        after = policy.generator.bit_generator.state
    whole: float | None = 1.0  # unless something was random
    first: float | None = 1.0
    if sampled and share != 1:
        whole = first = None
    elif exploring or share > 0:
        whole = _probability(1.0 / perm(len(arms), k), share, None if exploring else picks == own)
        first = _probability(1.0 / len(arms), share, None if exploring else picks[0] == own[0])
    if policy is not state.policy:  # the copy for new users of a frozen policy drew in its place
        state.policy.generator.bit_generator.state = after
    state.cache_generator_state(after)
    shown_arms = arms[picks[0] : picks[0] + 1] if k == 1 else arms.take(picks, axis=0)
    with policy.lock:
        mean, width = learner.scores(number, shown_arms)
    return Outcome(
        picks,
        mean.tolist(),
        width.tolist(),
        whole,
        first,
        state.cluster_number(number) if policy is state.policy else None,
        drawn,
        None if after == before else generator_fields(dict(after)),
    )


def _probability(uniform: float, share: float, same: bool | None) -> float:
    """Return the probability of a choice.

    `same` says whether the policy's own choice is the same; None where that one is uniform, too.
    """
    return share * uniform + (1.0 - share) * (uniform if same is None else float(same))


def _own_choice(policy: LinearBandit, number: int, arms: Floats, k: int) -> list[int]:
    """Return what the policy itself recommends."""
    if k == 1:
        return [policy.recommend(number, arms)]
    return [int(arm) for arm in policy.recommend_list(number, arms, k)]


def inline_offer(arms: Mapping[str, ArrayLike] | ArrayLike, dim: int) -> Offer:
    """Return arms with vectors: a mapping of ids, or a matrix whose rows are called "0", "1" and so on."""
    if isinstance(arms, Mapping):
        ids = tuple(checked_id("an arm's id", one) for one in arms)
        rows: Any = list(arms.values())
    else:
        rows = arms
        ids = ()
    matrix = finite("arms", arms_matrix(rows, dim))
    return Offer(ids or tuple(map(str, range(len(matrix)))), matrix, "arms")


def decision_event(
    seq: int,
    policy: str,
    at: float,
    *,
    decision: str,
    user: str,
    offer: Offer,
    outcome: Outcome,
    version: int,
    request: str | None,
) -> Event:
    """Return the event of a decision: what was offered, what was chosen, and the answer that was given.

    `request` is the digest of the request, where its client has chosen the id and may repeat it.
    """
    picks, ids = outcome.arms, offer.ids
    fields: dict[str, Any] = {"offered": ids, "scores": [*zip(outcome.mean, outcome.width, strict=True)]}
    # Arms with vectors of their own are all kept: nothing else knows them. Of items of the catalogue only the
    # chosen ones are, since their vectors may change before the reward comes.
    kept = offer.arms
    if offer.source == "arms":
        fields["arms"] = picks
    else:
        kept = kept[picks[0]] if len(picks) == 1 else kept.take(picks, axis=0)
    if offer.source == "all":
        fields["all"] = True
    if len(picks) > 1:
        fields["ranking"] = [ids[arm] for arm in picks]
        if outcome.first_propensity is not None:
            fields["first"] = outcome.first_propensity
    if outcome.propensity is not None:
        fields["propensity"] = outcome.propensity
    if outcome.cluster is not None:
        fields["cluster"] = outcome.cluster
    fields["version"] = version
    if request is not None:
        fields["request"] = request
    if outcome.drawn:
        fields["drawn"] = True
    if outcome.generator is not None:
        fields["generator"] = outcome.generator
    x = kept.tobytes()
    return Event(seq, policy, DECISION, at, decision, user, ids[picks[0]], None, x, encode_detail(fields))


def answer(event: Event) -> Decision:
    """Return the answer that was given when this event happened."""
    assert event.decision is not None
    assert event.item is not None
    fields = event.fields()
    ranking, pairs = fields.get("ranking", (event.item,)), fields["scores"]
    return Decision(
        event.decision,
        event.item,
        tuple(ranking),
        tuple([ArmScore(one, *pair) for one, pair in zip(ranking, pairs, strict=True)]),
        fields.get("propensity"),
        fields.get("cluster"),
        fields["version"],
    )


def request_digest(user: str, items: Sequence[str] | None, inline: Offer | None, k: int) -> str:
    """Return a digest of a request for a decision: a repeat with the same id must have the same one.

    It stands in the log, so that nothing else of the request has to be kept to recognise a repeat.
    """
    ids = items if inline is None else inline.ids
    asked = (user, k, inline is not None, None if ids is None else [str(one) for one in ids])
    found = blake2b(repr(asked).encode("utf-8", "surrogatepass"), digest_size=16)
    if inline is not None:
        found.update(inline.arms.tobytes())
    return found.hexdigest()


def clicked_position(ranking: Sequence[str], item: str | None, reward: float) -> int | None:
    """Return the position of a click; a list takes reward 1 with the item clicked, or 0 without."""
    if item is None and reward == 0:
        return None
    if item is None or reward != 1:
        given = f"reward {reward:g}" + ("" if item is None else f" for {shown(item)}")
        raise ArgumentError(f"a list takes reward 1 with the item clicked, or 0 without an item, got {given}")
    if item not in ranking:
        raise ArgumentError(f"item must be one of the list that was shown, got {shown(item)}")
    return list(ranking).index(item)
