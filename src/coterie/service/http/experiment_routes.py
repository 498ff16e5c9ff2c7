"""Experiments over HTTP: begin, look at and end them, and ask for decisions through them."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from coterie.errors import UnknownName
from coterie.service import messages
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.experiments import Experiment, ExperimentResult
from coterie.service.http.decision_routes import HANDLERS, Answer, decision_answer, offered, rewards_answer
from coterie.service.http.problems import Refusal
from coterie.service.http.service import raw_body, service_of
from coterie.service.storage.journal import PendingResult

encode = msgspec.json.Encoder().encode
new_experiment = msgspec.json.Decoder(messages.NewExperiment)
experiment_end = msgspec.json.Decoder(messages.ExperimentEnd)


def answer_of(found: ExperimentResult) -> messages.ExperimentAnswer:
    """Return the results of an experiment as a message."""
    experiment = found.experiment
    return messages.ExperimentAnswer(
        name=experiment.name,
        learn=experiment.learn,
        alpha=experiment.alpha,
        least_effect=experiment.least_effect,
        created=experiment.created,
        stopped=experiment.stopped,
        kept=experiment.kept,
        policies=[messages.ExperimentPolicyAnswer(**one._asdict()) for one in found.arms],
        days=[messages.ExperimentDayAnswer(**one._asdict()) for one in found.days],
        ratio_p=found.ratio_p,
        ratio_ok=found.ratio_ok,
        proposal=found.proposal,
    )


def respond(message: Any, status: int = 200) -> Response:
    """Return a message as JSON."""
    return Response(encode(message), status, media_type="application/json")


def list_experiments(request: Request) -> Response:
    """List experiments with their results."""
    found = service_of(request).engine.experiments
    listed = [answer_of(found.result(one.name)) for one in found.all()]
    return respond(messages.ExperimentsAnswer(experiments=listed))


async def create_experiment(request: Request) -> Response:
    """Begin an experiment."""
    body = new_experiment.decode(await raw_body(request))
    shares = {one.policy: one.share for one in body.policies}
    if len(shares) != len(body.policies):
        raise Refusal(422, "policies must name each policy once")
    experiments = service_of(request).engine.experiments
    fields = {name: getattr(body, name) for name in ("name", "learn", "alpha", "least_effect")}
    try:
        made = await run_in_threadpool(experiments.create, Experiment(shares=shares, **fields))
    except UnknownName as error:
        raise Refusal(422, str(error)) from None
    return respond(answer_of(await run_in_threadpool(experiments.result, made.name)), 201)


def describe_experiment(request: Request) -> Response:
    """Describe an experiment and its results so far."""
    return respond(
        answer_of(service_of(request).engine.experiments.result(request.path_params["experiment"]))
    )


async def stop_experiment(request: Request) -> Response:
    """End an experiment, and let one policy decide for all."""
    body, name = experiment_end.decode(await raw_body(request)), request.path_params["experiment"]
    experiments = service_of(request).engine.experiments
    await run_in_threadpool(experiments.stop, name, body.keep)
    return respond(answer_of(await run_in_threadpool(experiments.result, name)))


async def decide_in_experiment(request: Request) -> Response:
    """Let the policy decide that the user is assigned to."""
    return await _answer(request, "decisions")


async def reward_in_experiment(request: Request) -> Response:
    """Give rewards of decisions of an experiment."""
    return await _answer(request, "rewards")


async def _answer(request: Request, route: str) -> Response:
    began, service, name = time.perf_counter(), service_of(request), request.path_params["experiment"]
    body = await raw_body(request)
    answer = _decide if route == "decisions" else _reward
    pending = await run_in_threadpool(lambda: answer(service.engine, name, HANDLERS[route].decode(body)))
    status, content = await service.durable(pending)
    service.metrics.routes[route].add(time.perf_counter() - began)
    return Response(content, status, media_type="application/json")


def _decide(engine: PolicyEngine, name: str, request: messages.DecisionRequest) -> Answer:
    live, (decision, seq) = engine.experiments.decide(
        name, request.user, decision_id=request.decision_id, **offered(request)
    )
    answer = decision_answer(decision)
    answer.policy, answer.shadow = live.name, live.state.settings.mode == "shadow"
    return PendingResult((200, encode(answer)), seq)


def _reward(engine: PolicyEngine, name: str, request: messages.Rewards) -> Answer:
    for one in request.rewards:
        if one.decision_id is None:
            raise Refusal(422, "a reward of an experiment names its decision: give decision_id")
    with engine.requests:  # no recovery comes between two rewards
        return rewards_answer(
            engine,
            request,
            lambda one: engine.experiments.policy_that_made(name, one.decision_id or ""),
        )
