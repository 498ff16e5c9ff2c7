"""Rewards of one request whose decisions live in several shards: cut apart, sent, put together again."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from coterie.errors import StoreError
from coterie.placement import shard_of
from coterie.service.core.ids import hash_in_id, new_id
from coterie.service.http.problems import body_of_problem
from coterie.service.messages import Problem, RewardAnswer, RewardsAnswer
from coterie.service.shards.peers import PeerAnswer

Fields: TypeAlias = dict[str, Any]
"""A reward as it came; the shard that counts it checks its fields."""
SendRewards: TypeAlias = Callable[[int, bytes], Awaitable[PeerAnswer]]
"""Sends a body of rewards to a shard."""
NOT_FOUND = 404


class RefusedBatch(StoreError):
    """Raised when a shard refuses a whole batch, such as one without a valid key; holds its answer."""

    def __init__(self, answer: PeerAnswer) -> None:
        """Keep the answer, which is the answer to the whole request."""
        super().__init__("a shard refused rewards")
        self.answer = answer


def with_id(reward: Fields) -> Fields:
    """Return a reward that counts once however often it is sent: feedback without an id gets one."""
    if reward.get("decision_id") is None and reward.get("id") is None and "user" in reward:
        return {**reward, "id": new_id()}
    return reward


def shard_of_reward(reward: Fields, shards: int) -> int | None:
    """Return the shard that has the decision or the user of a reward; None for an id of somebody's own."""
    decision, user = reward.get("decision_id"), reward.get("user")
    if isinstance(decision, str):
        found = hash_in_id(decision)
        return None if found is None else found % shards
    return shard_of(user, shards) if isinstance(user, str) else 0  # shard 0 says what is wrong with it


async def send_rewards(rewards: Sequence[Fields], shards: int, send: SendRewards) -> PeerAnswer:
    """Send rewards to the shards of their decisions; return one answer, as from a single service."""
    groups: dict[int | None, list[int]] = defaultdict(list)
    for number, reward in enumerate(rewards):
        groups[shard_of_reward(reward, shards)].append(number)

    async def settle(shard: int | None, numbers: list[int]) -> dict[int, RewardAnswer]:
        batch = [rewards[number] for number in numbers]
        asked = _send_batch(batch, shard, send) if shard is not None else _search(batch, shards, send)
        return dict(zip(numbers, await asked, strict=True))

    results: dict[int, RewardAnswer] = {}
    for found in await asyncio.gather(*(settle(shard, numbers) for shard, numbers in groups.items())):
        results |= found
    return _together([results[number] for number in range(len(rewards))])


async def _search(rewards: list[Fields], shards: int, send: SendRewards) -> list[RewardAnswer]:
    """Send rewards to all shards at once: an id of the caller's own says nothing of the shard.

    A decision lives in one shard alone; the others answer that they do not know it, and nothing changes
    there. The answers of shards that are not needed any more are not waited for: one of them may be away.
    """
    results: dict[int, RewardAnswer] = {}
    failure: StoreError | None = None
    waiting = {asyncio.ensure_future(_send_batch(rewards, shard, send)) for shard in range(shards)}
    try:
        while waiting and sum(one.code != NOT_FOUND for one in results.values()) < len(rewards):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                try:
                    found = enumerate(one.result())
                except StoreError as error:
                    failure = error
                    continue
                results |= {n: one for n, one in found if one.code != NOT_FOUND or n not in results}
    finally:
        for one in waiting:
            one.cancel()
    if failure is not None and any(
        n not in results or results[n].code == NOT_FOUND for n in range(len(rewards))
    ):
        raise failure
    return [results[number] for number in range(len(rewards))]


async def _send_batch(rewards: list[Fields], shard: int, send: SendRewards) -> list[RewardAnswer]:
    answer = await send(shard, msgspec.json.encode({"rewards": rewards}))
    if answer.succeeded:
        return msgspec.json.decode(answer.content, type=RewardsAnswer).results
    if len(rewards) > 1 or answer.status in (401, 403, 413, 421, 429) or answer.status >= 500:
        raise RefusedBatch(answer)
    problem = msgspec.json.decode(answer.content, type=Problem)
    named = rewards[0].get("decision_id") or rewards[0].get("id")
    return [RewardAnswer(id=named, status="refused", code=answer.status, detail=problem.detail)]


def _together(results: list[RewardAnswer]) -> PeerAnswer:
    """Return the answer that a single service would give."""
    if len(results) == 1 and results[0].code != 200:
        one = results[0]
        return PeerAnswer(one.code, "application/problem+json", body_of_problem(one.code, str(one.detail)))
    status = 207 if any(one.code != 200 for one in results) else 200
    return PeerAnswer(status, "application/json", msgspec.json.encode(RewardsAnswer(results=results)))
