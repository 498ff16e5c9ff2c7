"""Decisions and rewards: from the body of a request to the body of its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from coterie.errors import CoterieError, StoreError
from coterie.service import messages
from coterie.service.core.decisions import Decision, RewardResult
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import LivePolicy
from coterie.service.http.problems import Refusal, status_of
from coterie.service.http.service import raw_body, service_of
from coterie.service.limits import LimitReached
from coterie.service.storage.journal import PendingResult

M = TypeVar("M")
Answer = PendingResult[tuple[int, bytes]]
QUICK_BODY = 2**15
"""Bytes of a body that the event loop may decode."""
QUICK_REWARDS = 20
"""Rewards that the event loop may count at a time."""
MANY_NUMBERS = 2**22
"""Numbers of all vectors of a catalogue, from which on a thread searches it: about half a millisecond."""
NAMES = ("user", "known_item")
"""Limits that only rewards of new users or items reach."""
encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Handler(Generic[M]):
    """What answers a kind of request, in three steps: the body is decoded, looked at, and answered.

    `is_quick` tells whether the event loop may answer: nothing is read from the store, no log is replayed,
    and little is computed. The caller has the lock of requests. `is_search` tells whether much is computed.
    """

    decode: Callable[[bytes], M]
    is_quick: Callable[[LivePolicy, M], bool]
    answer: Callable[[PolicyEngine, str, M], Answer]
    is_search: Callable[[LivePolicy, M], bool] = lambda live, request: False

    def handle(self, engine: PolicyEngine, policy: str, body: bytes) -> Answer:
        """Answer in a thread, which may wait."""
        return self.answer(engine, policy, self.decode(body))

    def searches(self, engine: PolicyEngine, policy: str, request: M) -> bool:
        """Tell whether much is computed for the answer, so that others should not wait for many of these."""
        live = engine.policies.get(policy)
        return live is not None and self.is_search(live, request)

    def answer_if_quick(self, engine: PolicyEngine, policy: str, request: M) -> Answer | None:
        """Answer unless that could keep the event loop waiting, for the lock of requests too."""
        lock = engine.requests.lock
        if not lock.acquire(blocking=False):
            return None
        try:
            live = engine.policies.get(policy)
            if live is not None and not self.is_quick(live, request):
                return None
            return self.answer(engine, policy, request)
        finally:
            lock.release()


async def respond(request: Request, route: str) -> Response:
    """Answer a request that did not take the fast path."""
    began, service, policy = time.perf_counter(), service_of(request), request.path_params["policy"]
    body = await raw_body(request)
    pending = await run_in_threadpool(HANDLERS[route].handle, service.engine, policy, body)
    status, content = await service.durable(pending)
    service.metrics.routes[route].add(time.perf_counter() - began)
    return Response(content, status, media_type="application/json")


def decide(engine: PolicyEngine, policy: str, request: messages.DecisionRequest) -> Answer:
    """Decide what to show a user; the answer counts once it is durable."""
    live = engine.find(policy)
    decision, seq = live.decide(request.user, decision_id=request.decision_id, **offered(request))
    return PendingResult((200, encode(decision_answer(decision))), seq)


def offered(request: messages.DecisionRequest) -> dict[str, Any]:
    """Return what a decision is among."""
    return {
        "items": request.items,
        "arms": None if request.arms is None else by_id(request.arms, "arms"),
        "exclude": request.exclude,
        "only": request.only,
        "k": request.k,
    }


def _decides_quickly(live: LivePolicy, request: messages.DecisionRequest) -> bool:
    """Tell whether nothing has to be looked up: an id that a client gives may have been used before."""
    return request.decision_id is None and not _searches_long(live, request)


def _searches_long(live: LivePolicy, request: messages.DecisionRequest) -> bool:
    """Tell whether a decision is among a catalogue so large that other requests should not wait for it."""
    if request.items is not None or request.arms is not None:
        return False
    return len(live.state.items) * live.state.settings.dim >= MANY_NUMBERS


def decision_answer(decision: Decision) -> messages.DecisionAnswer:
    """Return a decision as a message."""
    return messages.DecisionAnswer(
        decision_id=decision.id,
        chosen=decision.chosen,
        ranking=list(decision.ranking) if len(decision.ranking) > 1 else None,
        scores=[
            messages.ArmScoreAnswer(id=one.id, mean=one.mean, width=one.width) for one in decision.scores
        ],
        propensity=decision.propensity,
        cluster=decision.cluster,
        policy_version=decision.policy_version,
    )


def by_id(arms: Sequence[messages.Arm | messages.Item], name: str) -> dict[str, Any]:
    """Return vectors by id; the same id twice is refused."""
    found = {arm.id: arm.x for arm in arms}
    if len(found) != len(arms):
        raise Refusal(422, f"{name} must name each id once")
    if len({len(x) for x in found.values()}) > 1:
        raise Refusal(422, f"{name} must have vectors of one length")
    return found


def reward(engine: PolicyEngine, policy: str, request: messages.Rewards) -> Answer:
    """Take rewards; each has its own result, which counts once it is durable."""
    live = engine.find(policy)
    with live.reading():  # no recovery comes between two rewards, so the last one's number stands for all
        return rewards_answer(engine, request, lambda one: live)


def rewards_answer(
    engine: PolicyEngine, request: messages.Rewards, find: Callable[[messages.Reward], LivePolicy]
) -> Answer:
    """Take rewards, each for the policy that `find` returns; the caller has the lock of requests."""
    if len(request.rewards) > engine.limiter.most("batch"):
        raise Refusal(422, f"{engine.limiter.reached('batch')}: {len(request.rewards)} came")
    pending = [_reward_one(find, one) for one in request.rewards]
    results = [one.result for one in pending]
    if len(results) == 1 and results[0].code != 200:
        raise Refusal(results[0].code, str(results[0].detail))
    status = 207 if any(result.code != 200 for result in results) else 200
    answer = encode(messages.RewardsAnswer(results=results))
    return PendingResult((status, answer), max((one.seq for one in pending), default=0))


def _rewards_quickly(live: LivePolicy, request: messages.Rewards) -> bool:
    """Tell whether all rewards are for decisions that wait, or have no id: others are looked up."""
    return (
        len(request.rewards) <= QUICK_REWARDS
        # A reward that has just come too late, or corrects one of the same request, would replay the log.
        and live.state.settings.late != "correct"
        and (live.state.settings.learn_parts == "at_close" or len(request.rewards) == 1)
        and all(
            one.id is None if one.decision_id is None else live.awaits(one.decision_id)
            for one in request.rewards
        )
    )


def _reward_one(
    find: Callable[[messages.Reward], LivePolicy], request: messages.Reward
) -> PendingResult[messages.RewardAnswer]:
    """Take one reward; a store that fails refuses the whole request."""
    try:
        result, seq = _give(find(request), request)
        return PendingResult(messages.RewardAnswer(id=result.id, status=result.status), seq)
    except CoterieError as error:
        # What keeps the store from writing keeps all rewards out; a new name too many only this one.
        if isinstance(error, StoreError) and not (isinstance(error, LimitReached) and error.limit in NAMES):
            raise
        named = request.decision_id or request.id
        code = status_of(error)
        return PendingResult(
            messages.RewardAnswer(id=named, status="refused", code=code, detail=str(error)), 0
        )


def _give(live: LivePolicy, request: messages.Reward) -> PendingResult[RewardResult]:
    if request.decision_id is not None:
        if request.user is not None or request.id is not None:
            raise Refusal(422, "a reward has a decision_id, or a user (and perhaps an id), not both")
        return live.reward(
            request.decision_id, request.reward, part=request.part, item=request.item, x=request.x
        )
    if request.part is not None:
        raise Refusal(422, "a part is of the reward of a decision: give its decision_id")
    if request.user is None:
        raise Refusal(422, "a reward needs a decision_id, or a user with an item or x")
    return live.feedback(request.user, request.reward, item=request.item, x=request.x, feedback_id=request.id)


HANDLERS: dict[str, Handler[Any]] = {
    "decisions": Handler(
        msgspec.json.Decoder(messages.DecisionRequest).decode, _decides_quickly, decide, _searches_long
    ),
    "rewards": Handler(msgspec.json.Decoder(messages.Rewards).decode, _rewards_quickly, reward),
}
"""Handlers by the part of the path after the policy's name."""
