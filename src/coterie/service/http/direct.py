"""The two routes that are asked most, decisions and rewards, with no layer between server and policy."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from coterie.errors import CoterieError, StoreError
from coterie.service import messages
from coterie.service.core.decisions import Decision, RewardResult
from coterie.service.core.live_policy import LivePolicy
from coterie.service.http.context import Context, authorization_of, by_id, content_length, encode
from coterie.service.http.problems import Headers, Refusal, body_of_problem, headers_of, refused, status_of

Handle = Callable[[Context, str, bytes], tuple[int, bytes]]
PREFIX = "/v1/policies/"
decision_decoder = msgspec.json.Decoder(messages.DecisionRequest)
rewards_decoder = msgspec.json.Decoder(messages.Rewards)


class DirectRoute:
    """An ASGI application of one route: it reads the body, lets the policy answer, and sends the answer."""

    def __init__(self, context: Context, route: str) -> None:
        """For writers, of any policy."""
        self._context, self._route = context, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began = time.perf_counter()
        try:
            policy = scope["path"][len(PREFIX) :].partition("/")[0]
            self._context.authorise(authorization_of(scope), "writer", policy)
            body = await self._read(scope, receive)
            if body is None:
                return
            handle = HANDLES[self._route]
            if takes_long(self._context, policy, self._route):
                status, content = await run_in_threadpool(handle, self._context, policy, body)
            else:
                status, content = handle(self._context, policy, body)
            await self._context.durable()
            self._context.metrics.routes[self._route].add(time.perf_counter() - began)
        except Exception as error:
            status, detail = refused(error, scope["path"])
            content = body_of_problem(status, detail)
        self._context.metrics.responses[status] += 1
        headers: Headers = [*headers_of(status), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The body, which is not longer than may be; None if the client is gone."""
        pieces: list[bytes] = []
        with self._context.body_reader(content_length(scope)) as count:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                pieces.append(message.get("body", b""))
                count(pieces[-1])
                more = message.get("more_body", False)
        return b"".join(pieces)


def takes_long(context: Context, policy: str, route: str) -> bool:
    """May the request let the policy learn anew from its log? Then it is not for the event loop."""
    live = context.engine.policies.get(policy)
    return route == "rewards" and live is not None and live.state.settings.late == "correct"


def decide(context: Context, policy: str, body: bytes) -> tuple[int, bytes]:
    """Decide what to show a user; the answer holds once it is durable."""
    told = decision_decoder.decode(body)
    decision = context.engine.find(policy).decide(
        told.user,
        items=told.items,
        arms=None if told.arms is None else by_id(told.arms, "arms"),
        k=told.k,
        decision_id=told.decision_id,
    )
    return 200, encode(decision_answer(decision))


def decision_answer(decision: Decision) -> messages.DecisionAnswer:
    """A decision as a message."""
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


def reward(context: Context, policy: str, body: bytes) -> tuple[int, bytes]:
    """Take rewards; each has its own result, which holds once it is durable."""
    told = rewards_decoder.decode(body)
    live = context.engine.find(policy)
    results = [_rewarded(live, one) for one in told.rewards]
    if len(results) == 1 and results[0].code != 200:
        raise Refusal(results[0].code, str(results[0].detail))
    status = 207 if any(result.code != 200 for result in results) else 200
    return status, encode(messages.RewardsAnswer(results=results))


def _rewarded(live: LivePolicy, told: messages.Reward) -> messages.RewardAnswer:
    """What became of one reward; a store that fails refuses the whole request."""
    try:
        result = _give(live, told)
        return messages.RewardAnswer(id=result.id, status=result.status)
    except StoreError:
        raise
    except CoterieError as error:
        named = told.decision_id or told.id
        return messages.RewardAnswer(id=named, status="refused", code=status_of(error), detail=str(error))


def _give(live: LivePolicy, told: messages.Reward) -> RewardResult:
    if told.decision_id is not None:
        if told.user is not None or told.id is not None:
            raise Refusal(422, "a reward has a decision_id, or a user (and perhaps an id), not both")
        return live.reward(told.decision_id, told.reward, item=told.item, x=told.x)
    if told.user is None:
        raise Refusal(422, "a reward needs a decision_id, or a user with an item or x")
    return live.feedback(told.user, told.reward, item=told.item, x=told.x, feedback_id=told.id)


HANDLES: dict[str, Handle] = {"decisions": decide, "rewards": reward}
"""What comes after the policy in the path."""
