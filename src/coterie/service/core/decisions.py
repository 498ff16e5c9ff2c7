"""Decisions and rewards as callers see them, and as the log keeps them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.service.core.choice import Outcome
from coterie.service.core.ids import checked_id
from coterie.service.core.log_events import DECISION, Event, written
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
        The ticket: the reward names it.
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
    """What became of a reward: the id it was for, and whether it was counted."""

    id: str
    status: Status


class Offer(NamedTuple):
    """What a decision is made among: an id and a vector each.

    `source` tells where they come from: all of the catalogue, items that were named, or arms with vectors.
    """

    ids: Sequence[str]
    arms: Floats
    source: Literal["all", "items", "arms"]


def same_request(event: Event, user: str, items: Sequence[str] | None, inline: Offer | None, k: int) -> bool:
    """Was this decision made for the same request? One whose log was compacted is not known any more."""
    told = event.fields()
    if (event.user, len(told.get("ranking", (event.item,)))) != (user, k) or "offered" not in told:
        return False
    offered = list(told["offered"])
    if inline is not None:
        same = "arms" in told and event.x == inline.arms.tobytes()
        return same and items is None and offered == list(inline.ids)
    if items is None:
        return "all" in told
    return "arms" not in told and "all" not in told and offered == list(items)


def inline_offer(arms: Mapping[str, ArrayLike] | ArrayLike, dim: int) -> Offer:
    """Arms with their vectors: a mapping of ids, or a matrix whose rows are called "0", "1" and so on."""
    if isinstance(arms, Mapping):
        ids = tuple(checked_id("an arm's id", one) for one in arms)
        rows: Any = list(arms.values())
    else:
        rows = arms
        ids = ()
    matrix = finite("arms", arms_matrix(rows, dim))
    return Offer(ids or tuple(map(str, range(len(matrix)))), matrix, "arms")


_RANDOM = bytearray()
"""Bytes from the system that no id has used: asking for a few at a time is slow."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RANDOM.clear)


def new_id() -> str:
    """An id that nobody else has; later ones sort after earlier ones."""
    if len(_RANDOM) < 8:
        _RANDOM.extend(os.urandom(4096))
    drawn = _RANDOM[-8:]
    del _RANDOM[-8:]
    return f"{time.time_ns() // 1_000_000:012x}{drawn.hex()}"


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
) -> Event:
    """A decision as the log keeps it: what was offered, what was chosen, and the answer that was given."""
    picks, ids = outcome.arms, offer.ids
    told: dict[str, Any] = {"offered": ids, "scores": [*zip(outcome.mean, outcome.width, strict=True)]}
    kept = offer.arms
    if offer.source == "arms":
        told["arms"] = picks
    else:
        kept = kept[picks[0]] if len(picks) == 1 else kept.take(picks, axis=0)
    if offer.source == "all":
        told["all"] = True
    if len(picks) > 1:
        told["ranking"] = [ids[arm] for arm in picks]
        if outcome.first_propensity is not None:
            told["first"] = outcome.first_propensity
    if outcome.propensity is not None:
        told["propensity"] = outcome.propensity
    if outcome.cluster is not None:
        told["cluster"] = outcome.cluster
    told["version"] = version
    if outcome.drawn:
        told["drawn"] = True
    if outcome.generator is not None:
        told["generator"] = outcome.generator
    x = kept.tobytes()
    return Event(seq, policy, DECISION, at, decision, user, ids[picks[0]], None, x, written(told))


def answer(event: Event) -> Decision:
    """The answer that was given when this event happened."""
    assert event.decision is not None
    assert event.item is not None
    told = event.fields()
    ranking, pairs = told.get("ranking", (event.item,)), told["scores"]
    return Decision(
        event.decision,
        event.item,
        tuple(ranking),
        tuple([ArmScore(one, *pair) for one, pair in zip(ranking, pairs, strict=True)]),
        told.get("propensity"),
        told.get("cluster"),
        told["version"],
    )


def clicked_position(ranking: Sequence[str], item: str | None, reward: float) -> int | None:
    """Where in a list the click was: a list takes reward 1 with the item clicked, or 0 without."""
    if item is None and reward == 0:
        return None
    if item is None or reward != 1:
        told = f"reward {reward:g}" + ("" if item is None else f" for {shown(item)}")
        raise ArgumentError(f"a list takes reward 1 with the item clicked, or 0 without an item, got {told}")
    if item not in ranking:
        raise ArgumentError(f"item must be one of the list that was shown, got {shown(item)}")
    return list(ranking).index(item)
