"""The bodies of Azure Personalizer's calls, with the names that it gives them in JSON."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from coterie.service.messages import Answer, Id, Message

Features = Annotated[
    list[dict[str, Any]], Meta(description="objects of texts, numbers, booleans and lists of numbers")
]


class PersonalizerAction(Message):
    """An action to choose from, and what describes it."""

    id: Id
    features: Features | None = None


class PersonalizerRank(Message, rename="camel"):
    """A request for one action; the context's feature `user`, or its `id`, names the user."""

    actions: Annotated[list[PersonalizerAction], Meta(min_length=1)]
    context_features: Features | None = None
    excluded_actions: list[Id] | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class PersonalizerRanked(Answer):
    """An action and its probability; null where it is not known."""

    id: str
    probability: float | None


class PersonalizerRanking(Answer, rename="camel"):
    """The action that was chosen, and all actions: this one first, excluded ones last."""

    event_id: str
    reward_action_id: str
    ranking: list[PersonalizerRanked]


class PersonalizerReward(Message):
    """The reward of an event."""

    value: float


class PersonalizerSlot(Message, rename="camel"):
    """A slot that an action is chosen for; `baselineAction` is what would stand there without a choice."""

    id: Id
    features: Features | None = None
    excluded_actions: list[Id] | None = None
    baseline_action: Id | None = None


class PersonalizerSlots(Message, rename="camel"):
    """A request for an action for each slot, in the order of the slots."""

    actions: Annotated[list[PersonalizerAction], Meta(min_length=1)]
    slots: Annotated[list[PersonalizerSlot], Meta(min_length=1, max_length=50)]
    context_features: Features | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class PersonalizerSlotChoice(Answer, rename="camel"):
    """The action that was chosen for a slot."""

    id: str
    reward_action_id: str


class PersonalizerSlotRanking(Answer, rename="camel"):
    """The actions that were chosen."""

    slots: list[PersonalizerSlotChoice]
    event_id: str


class PersonalizerSlotReward(Message, rename="camel"):
    """The reward of a slot."""

    slot_id: Id
    value: float


class PersonalizerSlotRewards(Message):
    """Rewards of some slots of an event."""

    reward: Annotated[list[PersonalizerSlotReward], Meta(min_length=1, max_length=50)]
