"""Decisions and rewards: how they are made, what callers see of them, and what the log keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import perm
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError, UnknownName
from coterie.policies.base import LinearBandit
from coterie.service.core.ids import checked_id, listed
from coterie.service.core.known_items import KnownItems
from coterie.service.core.state import PolicyState, generator_fields
from coterie.service.storage.event_store import DECISION, Event, encode_detail
from coterie.types import Floats, Ints
from coterie.validation import arms_matrix, finite, shown

Status = Literal["counted", "added", "recorded", "duplicate", "late"]
"""Learnt from; added to a sum that is learnt from when its time is over; kept but not learnt from; known
already; counted after the default or the sum was."""


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


class Arms(NamedTuple):
    """Some arms: an id and a vector each, and the numbers by which the policy knows them.

    `numbers` is None where the arms have no names: the policy then knows them by their vectors.
    """

    ids: Sequence[str]
    vectors: Floats
    numbers: Ints | None

    def __len__(self) -> int:
        """Return how many arms there are."""
        return len(self.ids)

    def take(self, rows: Sequence[int]) -> Arms:
        """Return the arms of these rows."""
        numbers = None if self.numbers is None else self.numbers.take(rows)
        return Arms([self.ids[row] for row in rows], self.vectors.take(rows, axis=0), numbers)


class Offer(Protocol):
    """What a decision is among; `fields` is what the log keeps of it."""

    fields: dict[str, Any]

    def __len__(self) -> int:
        """Return how many arms there are."""

    def recommend(self, policy: LinearBandit, user: int, k: int) -> list[int]:
        """Return the rows of the arms that the policy itself chooses."""

    def take(self, rows: Sequence[int]) -> Arms:
        """Return the arms of these rows."""


class ListOffer:
    """A list of arms: items of the catalogue that were named, or arms with vectors of their own."""

    def __init__(self, arms: Arms, fields: dict[str, Any]) -> None:
        """Offer these arms."""
        self.arms, self.fields = arms, fields

    def __len__(self) -> int:
        """Return how many arms there are."""
        return len(self.arms)

    def recommend(self, policy: LinearBandit, user: int, k: int) -> list[int]:
        """Return the rows of the arms that the policy itself chooses."""
        _, vectors, numbers = self.arms
        if k == 1:
            return [policy.recommend(user, vectors, items=numbers)]
        return [int(arm) for arm in policy.recommend_list(user, vectors, k, items=numbers)]

    def take(self, rows: Sequence[int]) -> Arms:
        """Return the arms of these rows."""
        return self.arms.take(rows)


class CatalogueOffer:
    """The whole catalogue, or its items with certain tags, without those that are excluded."""

    def __init__(self, items: KnownItems, exclude: Ints | None, only: Sequence[str] | None) -> None:
        """Find the items that are left; UnknownName or ArgumentError if there are none."""
        self._items, self._exclude, self._only = items, exclude, only
        self._rows = items.catalogue.eligible(exclude, only)
        self.fields: dict[str, Any] = {}
        if exclude is not None:
            self.fields["exclude"] = items.places(exclude)
        if only is not None:
            self.fields["only"] = list(only)

    def __len__(self) -> int:
        """Return how many items there are."""
        return len(self._items) if self._rows is None else len(self._rows)

    def recommend(self, policy: LinearBandit, user: int, k: int) -> list[int]:
        """Return the positions, among the items that are left, of those that the policy itself chooses."""
        catalogue = self._items.catalogue
        filters: Any = {"exclude": self._exclude, "only": self._only}
        if k == 1:
            chosen = [policy.recommend(user, catalogue, **filters)]
        else:
            chosen = policy.recommend(user, catalogue, k=k, **filters).tolist()
        rows = [catalogue.row_of(one) for one in chosen]
        return rows if self._rows is None else np.searchsorted(self._rows, rows).tolist()

    def take(self, rows: Sequence[int]) -> Arms:
        """Return the items at these positions."""
        catalogue = self._items.catalogue
        places = rows if self._rows is None else self._rows.take(rows)
        numbers = catalogue.ids.take(places)
        return Arms(
            self._items.known.named(numbers.tolist()), catalogue.vectors.take(places, axis=0), numbers
        )


class Outcome(NamedTuple):
    """A choice among arms, and why.

    Attributes
    ----------
    arms : list of int
        Row numbers in the offer, best first.
    chosen : Arms
        These arms.
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
    chosen: Arms
    mean: list[float]
    width: list[float]
    propensity: float | None
    first_propensity: float | None
    cluster: int | None
    drawn: bool
    generator: list[Any] | None


def choose(state: PolicyState, user: str, offer: Offer, k: int) -> Outcome:
    """Decide for a user among arms that were checked; a new user is added."""
    policy, number = state.policy_for(user)
    learner = policy.learner
    # The generator shows whether the policy drew random numbers: a sampled choice has no known propensity.
    before = state.generator_state(policy)
    exploring = bool(learner.exploring)
    own = offer.recommend(policy, number, k)
    after = policy.generator.bit_generator.state
    sampled = not exploring and after != before
    share = state.settings.uniform_share
    picks = own
    drawn = share > 0 and policy.generator.random() < share
    if drawn:
        picks = policy.generator.choice(len(offer), k, replace=False).tolist()
    if share > 0:
        after = policy.generator.bit_generator.state
    whole: float | None = 1.0  # unless something was random
    first: float | None = 1.0
    if sampled and share != 1:
        whole = first = None
    elif exploring or share > 0:
        # Two whole numbers: the number of lists may be too large for a float.
        whole = _probability(1 / perm(len(offer), k), share, None if exploring else picks == own)
        first = _probability(1 / len(offer), share, None if exploring else picks[0] == own[0])
    if policy is not state.policy:  # the copy for new users of a frozen policy drew in its place
        state.policy.generator.bit_generator.state = after
    state.cache_generator_state(after)
    chosen = offer.take(picks)
    with policy.lock:
        mean, width = learner.scores(number, chosen.vectors, chosen.numbers)
    return Outcome(
        picks,
        chosen,
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


def catalogue_offer(
    items: KnownItems, exclude: Sequence[str] | None, only: Sequence[str] | None
) -> CatalogueOffer:
    """Return the offer of the catalogue: all items, or those with one of the tags `only`."""
    if not len(items):
        raise ArgumentError(
            "the catalogue of this policy is empty: put items into it, or give arms with their vectors"
        )
    numbers = None
    if exclude is not None:
        names = _listed("exclude", exclude, "ids")
        numbers = np.array([items.known.number(one) for one in names], np.int64)
    tags = None
    if only is not None:
        tags = _listed("only", only, "tags")
        if not tags:
            raise ArgumentError("only must name at least one tag, got none")
    return CatalogueOffer(items, numbers, tags)


def named_offer(items: KnownItems, ids: Sequence[str]) -> ListOffer:
    """Return the offer of some items of the catalogue."""
    names: list[str] = listed("items", ids)
    if not names:
        raise ArgumentError("items must name at least one item, got none")
    try:
        numbers, rows = items.numbers_and_rows(names)
        if len(set(names)) != len(names):
            raise ArgumentError("items must name each item once")
    except (UnknownName, TypeError):  # an id that is known needs no other check
        _listed("items", names, "ids")
        raise
    arms = Arms(names, items.catalogue.vectors.take(rows, axis=0), numbers)
    return ListOffer(arms, {"items": items.places(numbers)})


def _listed(name: str, values: Sequence[str], wanted: str) -> list[str]:
    return [checked_id(f"one of {name}", one) for one in listed(name, values, wanted)]


def inline_offer(
    items: KnownItems, arms: Mapping[str, ArrayLike] | ArrayLike, *, keep_all: bool
) -> ListOffer:
    """Return arms with vectors: a mapping of ids, or a matrix whose rows are called "0", "1" and so on.

    An id of the catalogue must have the vector that it has there. With `keep_all` the log keeps all vectors.
    """
    dim = items.catalogue.dim
    if not isinstance(arms, Mapping):
        matrix = finite("arms", arms_matrix(arms, dim))
        found = Arms([str(row) for row in range(len(matrix))], matrix, None)
        return ListOffer(found, {"unnamed": True, **_kept(found, keep_all)})
    ids = [checked_id("an arm's id", one) for one in arms]
    rows: Any = list(arms.values())
    matrix = finite("arms", arms_matrix(rows, dim))
    same = [row for row, one in enumerate(ids) if one in items]
    if same and not np.array_equal(items.vectors([ids[row] for row in same]), matrix[same]):
        other = next(row for row in same if not np.array_equal(items.vectors([ids[row]])[0], matrix[row]))
        raise ArgumentError(
            f"arm {shown(ids[other])} has another vector than the item of that id in the catalogue; "
            "put_items changes an item"
        )
    # An id that was never seen gets a number above all known ones: nothing was learnt of either. It becomes
    # known, with the next number, if it is chosen.
    known = [items.known.find(one) for one in ids]
    unused = len(items.known)
    numbers = np.array([unused + row if one is None else one for row, one in enumerate(known)], np.int64)
    found = Arms(ids, matrix, numbers)
    return ListOffer(found, _kept(found, keep_all))


def _kept(arms: Arms, keep_all: bool) -> dict[str, Any]:
    return {"offered": list(arms.ids)} if keep_all else {"count": len(arms)}


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
    catalogue: int,
    request: str | None,
    experiment: str | None = None,
    deferred: bool = False,
) -> Event:
    """Return the event of a decision: what it was among, what was chosen, and the answer that was given.

    `request` is the digest of the request, where its client has chosen the id and may repeat it. Only the
    vectors that were chosen are kept: they may change before the reward comes. What else was offered follows
    from the version of the catalogue. Of arms with vectors of their own all are kept if the policy's settings
    say so.
    """
    picks, chosen = outcome.arms, outcome.chosen
    fields: dict[str, Any] = {
        **offer.fields,
        "catalogue": catalogue,
        "scores": [*zip(outcome.mean, outcome.width, strict=True)],
    }
    kept = chosen.vectors
    if "offered" in fields:
        assert isinstance(offer, ListOffer)
        fields["arms"] = picks
        kept = offer.arms.vectors
    if len(picks) > 1:
        fields["ranking"] = list(chosen.ids)
        if outcome.first_propensity is not None:
            fields["first"] = outcome.first_propensity
    if outcome.propensity is not None:
        fields["propensity"] = outcome.propensity
    if outcome.cluster is not None:
        fields["cluster"] = outcome.cluster
    fields["version"] = version
    if request is not None:
        fields["request"] = request
    if experiment is not None:
        fields["experiment"] = experiment
    if deferred:
        fields["deferred"] = True
    if outcome.drawn:
        fields["drawn"] = True
    if outcome.generator is not None:
        fields["generator"] = outcome.generator
    x = kept.tobytes()
    return Event(seq, policy, DECISION, at, decision, user, chosen.ids[0], None, x, encode_detail(fields))


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
