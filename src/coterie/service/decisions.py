"""Decisions and rewards as callers see them, and as the log keeps them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.service.choice import Outcome
from coterie.service.events import Event, detail
from coterie.service.identities import checked_id
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
    """What a decision is made among: an id and a vector each. `inline` vectors are not in the catalogue."""

    ids: Sequence[str]
    arms: Floats
    inline: bool

    def request_hash(self, user: str, k: int) -> str:
        """A mark of what was asked for: the same request has the same."""
        mark = blake2b(repr((user, k, self.inline, list(self.ids))).encode(), digest_size=12)
        if self.inline:
            mark.update(self.arms.tobytes())
        return mark.hexdigest()


def inline_offer(arms: Mapping[str, ArrayLike] | ArrayLike, dim: int) -> Offer:
    """Arms with their vectors: a mapping of ids, or a matrix whose rows are called "0", "1" and so on."""
    if isinstance(arms, Mapping):
        ids = tuple(checked_id("an arm's id", one) for one in arms)
        rows: Any = list(arms.values())
    else:
        rows = arms
        ids = ()
    matrix = finite("arms", arms_matrix(rows, dim))
    return Offer(ids or tuple(map(str, range(len(matrix)))), matrix, True)


def new_id() -> str:
    """An id that nobody else has; later ones sort after earlier ones."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(8).hex()}"


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
    ranking = [offer.ids[arm] for arm in outcome.arms]
    kept = offer.arms if offer.inline else offer.arms[outcome.arms]
    told = detail(
        hash=offer.request_hash(user, len(ranking)),
        offered=list(offer.ids),
        arms=outcome.arms if offer.inline else None,
        ranking=ranking if len(ranking) > 1 else None,
        scores=[list(pair) for pair in zip(outcome.mean, outcome.width, strict=True)],
        propensity=outcome.propensity,
        cluster=outcome.cluster,
        version=version,
        drawn=outcome.drawn or None,
        generator=outcome.generator,
    )
    x = np.ascontiguousarray(kept).tobytes()
    return Event(seq, policy, "decision", at, decision, user, ranking[0], None, x, told)


def answer(event: Event) -> Decision:
    """The answer that was given when this event happened."""
    assert event.decision is not None
    assert event.item is not None
    told = event.fields()
    ranking = tuple(told.get("ranking") or [event.item])
    scores = zip(ranking, told["scores"], strict=True)
    return Decision(
        id=event.decision,
        chosen=event.item,
        ranking=ranking,
        scores=tuple(ArmScore(one, mean, width) for one, (mean, width) in scores),
        propensity=told.get("propensity"),
        cluster=told.get("cluster"),
        policy_version=told["version"],
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
