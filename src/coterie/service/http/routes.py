"""Every route of the service: a handler each, and the table of paths, roles and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from coterie.errors import StoreError, UnknownName
from coterie.service import messages
from coterie.service.core import imports
from coterie.service.core import queries as inspection
from coterie.service.core.live_policy import LivePolicy
from coterie.service.core.watching import effective_items
from coterie.service.http import (
    decision_routes,
    experiment_routes,
    page,
    personalizer_messages,
    personalizer_routes,
)
from coterie.service.http.api_keys import MOST_AGE, Role
from coterie.service.http.decision_routes import by_id
from coterie.service.http.problems import Refusal, problem
from coterie.service.http.prometheus import exposition
from coterie.service.http.service import HTTPService, policy_of, raw_body, service_of
from coterie.service.settings import PolicySettings
from coterie.service.storage import export as exports
from coterie.service.storage.event_store import EventStore
from coterie.service.storage.journal import PendingResult

M = TypeVar("M")
T = TypeVar("T")
STALLED = 5.0
"""Seconds that an event may wait for its commit while the service counts as ready."""
PIECE = 2**18
"""Bytes of a file that are sent at a time."""
encode = msgspec.json.Encoder().encode
new_policy = msgspec.json.Decoder(messages.NewPolicy)
policy_changes = msgspec.json.Decoder(messages.PolicyChanges)
items_decoder = msgspec.json.Decoder(messages.Items)


async def body_of(request: Request, decoder: msgspec.json.Decoder[M]) -> M:
    """Decode the body of a request."""
    return decoder.decode(await raw_body(request))


def json_response(message: Any, status: int = 200) -> Response:
    """Return a message as JSON."""
    return Response(encode(message), status, media_type="application/json")


def integer_parameter(request: Request, name: str, default: int, most: int) -> int:
    """Return a whole number of the query, from 0 to `most`."""
    text = request.query_params.get(name)
    return default if text is None else whole_number(name, text, most)


def whole_number(name: str, text: str, most: int) -> int:
    """Return a whole number of a path or a query, from 0 to `most`."""
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most):
        raise Refusal(422, f"{name} must be a whole number from 0 to {most}, got {text[:40]!r}")
    return int(text)


def policy_answer(live: LivePolicy) -> messages.PolicyAnswer:
    """Return the summary of a policy as a message."""
    return messages.PolicyAnswer(**inspection.summary(live)._asdict())


def list_policies(request: Request) -> Response:
    """List policies."""
    key = request.state.key
    scope = None if key is None else key.policy
    engine = service_of(request).engine
    failed = {name: why for name, why in engine.out_of_service().items() if scope in (None, name)}
    found = [live for name, live in list(engine.policies.items()) if scope in (None, name)]
    answer = messages.PoliciesAnswer(
        policies=[policy_answer(live) for live in found if live.name not in failed],
        failed=[messages.FailedPolicy(name=name, reason=why) for name, why in failed.items()],
    )
    return json_response(answer)


async def create_policy(request: Request) -> Response:
    """Create a policy."""
    body = await body_of(request, new_policy)
    fields = {name: getattr(body, name) for name in body.__struct_fields__ if name != "name"}
    service = service_of(request)
    try:
        settings = PolicySettings(**{**fields, "users": tuple(body.users)})
        pending = await run_in_threadpool(service.engine.create, body.name, settings)
    except UnknownName as error:
        raise Refusal(422, str(error)) from None
    live = await service.durable(pending)
    return json_response(await run_in_threadpool(policy_answer, live), 201)


def describe_policy(request: Request) -> Response:
    """Describe a policy."""
    return json_response(policy_answer(policy_of(request)))


async def change_policy(request: Request) -> Response:
    """Change settings that may change."""
    body = await body_of(request, policy_changes)
    changes = {name: getattr(body, name) for name in body.__struct_fields__}
    live = policy_of(request)
    given = {name: value for name, value in changes.items() if value is not UNSET}
    await service_of(request).durable(await run_in_threadpool(live.configure, **given))
    return json_response(await run_in_threadpool(policy_answer, live))


async def retire_policy(request: Request) -> Response:
    """Retire a policy."""
    service = service_of(request)
    await service.durable(await run_in_threadpool(service.engine.retire, request.path_params["policy"]))
    return Response(status_code=204)


def list_items(request: Request) -> Response:
    """List ids of the catalogue."""
    start = integer_parameter(request, "start", 0, 2**31)
    end = start + integer_parameter(request, "limit", messages.MOST_ITEMS, messages.MOST_ITEMS)
    with policy_of(request).reading() as state:
        count, ids = len(state.items), state.items.known.named(state.items.catalogue.ids[start:end].tolist())
    return json_response(messages.ItemsAnswer(count=count, ids=ids, next=end if end < count else None))


async def put_items(request: Request) -> Response:
    """Replace the catalogue."""
    return await _set_items(request, replace_all=True)


async def patch_items(request: Request) -> Response:
    """Add items, or change their vectors."""
    return await _set_items(request, replace_all=False)


async def _set_items(request: Request, replace_all: bool) -> Response:
    body = await raw_body(request)
    pending = await run_in_threadpool(_change_items, policy_of(request), body, replace_all)
    count = await service_of(request).durable(pending)
    return json_response(messages.ItemsAnswer(count=count))


def _change_items(live: LivePolicy, body: bytes, replace_all: bool) -> PendingResult[int]:
    """Set the items of a body, which a thread decodes: megabytes of numbers would block the event loop."""
    items = items_decoder.decode(body).items
    tags = {one.id: one.tags for one in items if one.tags is not UNSET}
    return live.change_items(by_id(items, "items"), tags=tags or None, replace_all=replace_all)


async def delete_items(request: Request) -> Response:
    """Remove the items in the query, each as `id`."""
    ids = request.query_params.getlist("id")
    if not ids or len(ids) > messages.MOST_ITEMS:
        raise Refusal(422, f"name 1 to {messages.MOST_ITEMS} items in the query: ?id=a&id=b")
    pending = await run_in_threadpool(policy_of(request).change_items, remove=ids)
    count = await service_of(request).durable(pending)
    return json_response(messages.ItemsAnswer(count=count))


def list_users(request: Request) -> Response:
    """List users in the order in which they came."""
    start, limit = (
        integer_parameter(request, "start", 0, 2**31),
        integer_parameter(request, "limit", 100, 10_000),
    )
    with policy_of(request).reading() as state:
        ids = state.users.ids
    end = start + limit
    return json_response(
        messages.UsersAnswer(users=list(ids[start:end]), total=len(ids), next=end if end < len(ids) else None)
    )


def explain_user(request: Request) -> Response:
    """Explain whose rewards count for a user, and how items score."""
    items = request.query_params.getlist("item") or None
    found = inspection.explain(policy_of(request), request.path_params["user"], items)
    scores = [messages.ItemScoreAnswer(**one._asdict()) for one in found.scores]
    return json_response(messages.ExplanationAnswer(**{**found._asdict(), "scores": scores}))


def user_history(request: Request) -> Response:
    """List the latest events of a user."""
    limit = integer_parameter(request, "limit", 100, 10_000)
    found = inspection.history(policy_of(request), request.path_params["user"], max(limit, 1))
    return json_response(
        messages.HistoryAnswer(events=[messages.UserEventAnswer(**one._asdict()) for one in found])
    )


async def remove_user(request: Request) -> Response:
    """Forget a user."""
    engine, named = service_of(request).engine, request.path_params
    await run_in_threadpool(engine.forget_user, named["policy"], named["user"])
    return Response(status_code=204)


def describe_outcomes(request: Request) -> Response:
    """Say what decisions have brought, by hour and by item."""
    limit = integer_parameter(request, "limit", 10, 10_000)
    found = inspection.outcomes(policy_of(request), limit)
    items = [[messages.ItemOutcomeAnswer(**one._asdict()) for one in listed] for listed in found.items]
    return json_response(
        messages.OutcomesAnswer(
            hours=[_hour_answer(one) for one in found.hours],
            best_items=items[0],
            newest_items=items[1],
            most_shown_items=items[2],
            alerts=[messages.AlertAnswer(name=one.name, text=one.text) for one in found.alerts],
            changed_users=None
            if found.changed_users is None
            else [messages.ChangedUserAnswer(**one._asdict()) for one in found.changed_users],
        )
    )


def _hour_answer(hour: inspection.HourCounts) -> messages.HourAnswer:
    counts = hour.counts
    policy, uniform = (
        messages.ChoiceAnswer(
            decisions=one.decisions, counted=one.counted, answered=one.answered, reward_sum=one.reward
        )
        for one in (counts.policy, counts.uniform)
    )
    known = counts.propensities
    return messages.HourAnswer(
        at=hour.at,
        policy=policy,
        uniform=uniform,
        propensity=counts.propensity / known if known else None,
        new_items=counts.new_items,
        effective_items=effective_items(counts),
    )


def list_clusters(request: Request) -> Response:
    """List clusters."""
    found = inspection.clusters(policy_of(request))
    return json_response(
        messages.ClustersAnswer(clusters=[messages.ClusterAnswer(**one._asdict()) for one in found])
    )


def cluster_members(request: Request) -> Response:
    """List the users of a cluster."""
    # The route takes any text: a converter of Starlette would read the number before the key is checked.
    cluster = whole_number("cluster", request.path_params["cluster"], 2**31)
    found = inspection.members(policy_of(request), cluster)
    if not found:
        raise Refusal(404, f"no cluster {cluster}")
    return json_response(messages.MembersAnswer(users=found))


async def export_log(request: Request) -> Response:
    """Export the log as a table, as JSON lines or Parquet."""
    form = request.query_params.get("format", "jsonl")
    if form not in ("jsonl", "parquet"):
        raise Refusal(422, f"format must be jsonl or parquet, got {form[:40]!r}")
    table = request.query_params.get("table", "decisions")
    if table not in EXPORTED:
        raise Refusal(422, f"table must be one of {', '.join(EXPORTED)}, got {table[:40]!r}")
    service, live = service_of(request), policy_of(request)
    service.limiter.check("export", service.metrics.exports)
    read, kind = EXPORTED[table]
    rows = _until_closing(service, read(service.engine.store, live.name, live.state.settings.dim))
    return ExportResponse(service, rows, kind, parquet=form == "parquet")


Row: TypeAlias = exports.ExportRow | exports.ItemRow
EXPORTED: dict[str, tuple[Callable[[EventStore, str, int], Iterator[Row]], type[Row]]] = {
    "decisions": (exports.export_rows, exports.ExportRow),
    "items": (exports.item_rows, exports.ItemRow),
}
"""What may be exported: the rows of a table, and their kind."""


def _until_closing(service: HTTPService, rows: Iterator[T]) -> Iterator[T]:
    """Yield rows until the service ends, which must not wait for an export."""
    for row in rows:
        if service.closing:
            raise StoreError("the service ends")
        yield row


class ExportResponse(StreamingResponse):
    """Rows of the log, read and written by threads; a Parquet file is on the disk before it is sent."""

    def __init__(
        self, service: HTTPService, rows: Iterator[Row], row_type: type[Row], *, parquet: bool
    ) -> None:
        """Count one more export."""
        self._metrics, self._rows, self._parquet = service.metrics, rows, parquet
        self._row_type = row_type
        self._store = service.engine.store
        kind = "application/vnd.apache.parquet" if parquet else "application/x-ndjson"
        super().__init__(exports.json_lines(rows), media_type=kind)
        self._metrics.exports += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the rows."""
        try:
            if not self._parquet:
                await super().__call__(scope, receive, send)
                return
            with self._folder() as folder:
                file = Path(folder, "log.parquet")
                await run_in_threadpool(exports.write_parquet, self._rows, file, self._row_type)
                self.headers["content-length"] = str(file.stat().st_size)
                with file.open("rb") as content:
                    self.body_iterator = iterate_in_threadpool(iter(partial(content.read, PIECE), b""))
                    await super().__call__(scope, receive, send)
        finally:
            self._metrics.exports -= 1

    def _folder(self) -> TemporaryDirectory[str]:
        try:
            return self._store.export_folder()
        except OSError as error:
            raise exports.unwritten(error) from None


async def import_log(request: Request) -> Response:
    """Import a log of JSON lines."""
    body = await raw_body(request)
    found = await run_in_threadpool(imports.import_log, policy_of(request), body)
    return json_response(messages.ImportAnswer(counted=found.counted, duplicates=found.duplicates))


async def live_check(request: Request) -> Response:
    """Say that the process runs."""
    return json_response(messages.Health(status="live"))


async def ready_check(request: Request) -> Response:
    """Say whether the store can be written; warn of failed snapshots, without the names of policies."""
    service = service_of(request)
    engine, waits, age = service.engine, service.engine.journal.oldest_age, service.keys.age
    if not engine.lifecycle.serving:
        return problem(503, _reason(request, "the store cannot be used now", str(engine.lifecycle.error())))
    if waits > STALLED:
        return problem(503, f"the store does not answer: an event has waited {waits:.1f} s for its commit")
    if age > MOST_AGE:
        return problem(503, f"the store does not answer: keys were read {age:.0f} s ago")
    retries = [live.snapshots.retry for live in list(engine.policies.values())]
    warnings = [
        _reason(request, f"snapshots fail, {one.failures} in a row by now", one.reason)
        for one in retries
        if one.failures
    ]
    if engine.erasure.retry.failures:
        removed = "a removed user is still in the files of the store"
        warnings.append(_reason(request, removed, engine.erasure.retry.reason))
    raised = Counter(one.name for live in list(engine.policies.values()) for one in live.watch.alerts)
    warnings += [f"alert {name!r} of {count} policies; the page says which" for name, count in raised.items()]
    if broken := engine.out_of_service():
        warnings.append(f"policies out of service: {len(broken)}; the list of policies says why")
    return json_response(
        messages.Health(status="ready", warnings=warnings, uncommitted_seconds=round(waits, 3))
    )


def _reason(request: Request, fault: str, reason: str | None) -> str:
    """Return a fault with its reason, which may name files: only for those who may read policies."""
    try:
        service_of(request).keys.authorise(request.scope["headers"], "reader", None, any_scope=True)
    except Refusal:
        return f"{fault}; a request with a key, and the log of the service, say why"
    return f"{fault}: {reason}"


def show_metrics(request: Request) -> Response:
    """Return metrics for Prometheus."""
    service = service_of(request)
    text = exposition(service.engine, service.metrics)
    return Response(text, media_type="text/plain; version=0.0.4")


Handler = Callable[..., Any]


class Endpoint(NamedTuple):
    """A route: its handler, the role that it needs (None: open to all), and its messages."""

    method: str
    path: str
    handler: Handler
    role: Role | None
    summary: str
    request: type | None = None
    answer: type | None = None
    status: int = 200
    query: tuple[str, ...] = ()


ONE = "/v1/policies/{policy}"
EXPERIMENT = "/v1/experiments/{experiment}"
PERSONALIZER = f"{ONE}/personalizer"
ROUTES: list[Endpoint] = [
    Endpoint("GET", "/v1/policies", list_policies, "reader", "List policies", answer=messages.PoliciesAnswer),
    Endpoint(
        "POST",
        "/v1/policies",
        create_policy,
        "admin",
        "Make a policy",
        messages.NewPolicy,
        messages.PolicyAnswer,
        201,
    ),
    Endpoint("GET", ONE, describe_policy, "reader", "Describe a policy", answer=messages.PolicyAnswer),
    Endpoint(
        "PATCH",
        ONE,
        change_policy,
        "admin",
        "Change settings",
        messages.PolicyChanges,
        messages.PolicyAnswer,
    ),
    Endpoint("DELETE", ONE, retire_policy, "admin", "Retire a policy", status=204),
    Endpoint(
        "GET",
        f"{ONE}/items",
        list_items,
        "reader",
        "List the catalogue",
        answer=messages.ItemsAnswer,
        query=("start", "limit"),
    ),
    Endpoint(
        "PUT",
        f"{ONE}/items",
        put_items,
        "writer",
        "Replace the catalogue",
        messages.Items,
        messages.ItemsAnswer,
    ),
    Endpoint(
        "PATCH",
        f"{ONE}/items",
        patch_items,
        "writer",
        "Add or change items",
        messages.Items,
        messages.ItemsAnswer,
    ),
    Endpoint(
        "DELETE",
        f"{ONE}/items",
        delete_items,
        "writer",
        "Remove items",
        answer=messages.ItemsAnswer,
        query=("id",),
    ),
    Endpoint(
        "POST",
        f"{ONE}/decisions",
        decision_routes.decide,
        "writer",
        "Decide what to show",
        messages.DecisionRequest,
        messages.DecisionAnswer,
    ),
    Endpoint(
        "POST",
        f"{ONE}/rewards",
        decision_routes.reward,
        "writer",
        "Give rewards",
        messages.Rewards,
        messages.RewardsAnswer,
    ),
    Endpoint(
        "GET",
        f"{ONE}/users",
        list_users,
        "reader",
        "List users",
        answer=messages.UsersAnswer,
        query=("start", "limit"),
    ),
    Endpoint(
        "GET",
        f"{ONE}/users/{{user:path}}",
        explain_user,
        "reader",
        "Explain a user",
        answer=messages.ExplanationAnswer,
        query=("item",),
    ),
    Endpoint("DELETE", f"{ONE}/users/{{user:path}}", remove_user, "admin", "Forget a user", status=204),
    Endpoint(
        "GET",
        f"{ONE}/history/{{user:path}}",
        user_history,
        "reader",
        "What happened to a user",
        answer=messages.HistoryAnswer,
        query=("limit",),
    ),
    Endpoint(
        "GET",
        f"{ONE}/clusters",
        list_clusters,
        "reader",
        "List clusters",
        answer=messages.ClustersAnswer,
    ),
    Endpoint(
        "GET",
        f"{ONE}/clusters/{{cluster}}",
        cluster_members,
        "reader",
        "Users of a cluster",
        answer=messages.MembersAnswer,
    ),
    Endpoint(
        "GET",
        f"{ONE}/outcomes",
        describe_outcomes,
        "reader",
        "What decisions have brought",
        answer=messages.OutcomesAnswer,
        query=("limit",),
    ),
    Endpoint("GET", f"{ONE}/export", export_log, "admin", "The log as a table", query=("format", "table")),
    Endpoint("POST", f"{ONE}/import", import_log, "admin", "Learn from a log", answer=messages.ImportAnswer),
    Endpoint("GET", f"{ONE}/live", page.stream, "reader", "Samples for the page, as server-sent events"),
    Endpoint(
        "GET",
        "/v1/experiments",
        experiment_routes.list_experiments,
        "reader",
        "List experiments",
        answer=messages.ExperimentsAnswer,
    ),
    Endpoint(
        "POST",
        "/v1/experiments",
        experiment_routes.create_experiment,
        "admin",
        "Begin an experiment",
        messages.NewExperiment,
        messages.ExperimentAnswer,
        201,
    ),
    Endpoint(
        "GET",
        EXPERIMENT,
        experiment_routes.describe_experiment,
        "reader",
        "Results of an experiment",
        answer=messages.ExperimentAnswer,
    ),
    Endpoint(
        "POST",
        f"{EXPERIMENT}/stop",
        experiment_routes.stop_experiment,
        "admin",
        "End an experiment",
        messages.ExperimentEnd,
        messages.ExperimentAnswer,
    ),
    Endpoint(
        "POST",
        f"{EXPERIMENT}/decisions",
        experiment_routes.decide_in_experiment,
        "writer",
        "Decide in an experiment",
        messages.DecisionRequest,
        messages.DecisionAnswer,
    ),
    Endpoint(
        "POST",
        f"{EXPERIMENT}/rewards",
        experiment_routes.reward_in_experiment,
        "writer",
        "Give rewards in an experiment",
        messages.Rewards,
        messages.RewardsAnswer,
    ),
    Endpoint(
        "POST",
        f"{PERSONALIZER}/rank",
        personalizer_routes.rank,
        "writer",
        "Personalizer: choose an action",
        personalizer_messages.PersonalizerRank,
        personalizer_messages.PersonalizerRanking,
        201,
    ),
    Endpoint(
        "POST",
        f"{PERSONALIZER}/events/{{event}}/reward",
        personalizer_routes.reward_event,
        "writer",
        "Personalizer: give a reward",
        personalizer_messages.PersonalizerReward,
        status=204,
    ),
    Endpoint(
        "POST",
        f"{PERSONALIZER}/events/{{event}}/activate",
        personalizer_routes.activate_event,
        "writer",
        "Personalizer: an event was shown",
        status=204,
    ),
    Endpoint(
        "POST",
        f"{PERSONALIZER}/multislot/rank",
        personalizer_routes.rank_slots,
        "writer",
        "Personalizer: choose an action for each slot",
        personalizer_messages.PersonalizerSlots,
        personalizer_messages.PersonalizerSlotRanking,
        201,
    ),
    Endpoint(
        "POST",
        f"{PERSONALIZER}/multislot/events/{{event}}/reward",
        personalizer_routes.reward_slots,
        "writer",
        "Personalizer: give rewards of slots",
        personalizer_messages.PersonalizerSlotRewards,
        status=204,
    ),
    Endpoint(
        "POST",
        f"{PERSONALIZER}/multislot/events/{{event}}/activate",
        personalizer_routes.activate_slots,
        "writer",
        "Personalizer: the slots of an event were shown",
        status=204,
    ),
    Endpoint("GET", "/health/live", live_check, None, "Does the process run?", answer=messages.Health),
    Endpoint("GET", "/health/ready", ready_check, None, "Can the store be written?", answer=messages.Health),
    Endpoint("GET", "/metrics", show_metrics, "reader", "Metrics for Prometheus"),
]
