"""Where the requests of a sharded service are answered: here, in the shard of the user, or in all shards."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from coterie.errors import StoreError
from coterie.placement import Placement, shard_of
from coterie.service import messages
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.ids import hash_in_id, new_id
from coterie.service.http import decision_routes, experiment_routes, routes
from coterie.service.http.page import show_page
from coterie.service.http.problems import Headers, Refusal, problem
from coterie.service.http.routes import Endpoint, integer_parameter, json_response
from coterie.service.http.service import HTTPService, raw_body, replayed
from coterie.service.shards.changes import LEADER, Follower, encode_changes, read_changes
from coterie.service.shards.merging import (
    decoded,
    merged_clusters,
    merged_metrics,
    merged_policies,
    slices,
)
from coterie.service.shards.overview import CONTENT_POLICY, overview
from coterie.service.shards.peers import (
    MEANT_FOR,
    NOT_YET,
    PATIENCE,
    PEER_TOKEN,
    PeerAnswer,
    Peers,
    ShardAway,
)
from coterie.service.shards.reward_batches import RefusedBatch, send_rewards, with_id

Handle = Callable[[Request], Awaitable[Response]]
OF_USER = (routes.explain_user, routes.user_history, routes.remove_user)
"""Handlers whose path names a user."""
OF_DECISION = (decision_routes.decide, experiment_routes.decide_in_experiment)
OF_REWARDS = (decision_routes.reward, experiment_routes.reward_in_experiment)
CHANGING = (
    routes.create_policy,
    routes.change_policy,
    routes.retire_policy,
    routes.put_items,
    routes.patch_items,
    routes.delete_items,
)
"""Handlers of changes that concern all shards; shard 0 orders them."""
ALIKE = (
    routes.list_items,
    routes.live_check,
    routes.ready_check,
    experiment_routes.list_experiments,
    experiment_routes.describe_experiment,
)
"""Handlers whose answer is the same in all shards, or about whichever shard answers."""
LONG_PATIENCE = 3_600.0
"""Seconds that a change, a removal of a user or an import may take."""
NOTICE_PATIENCE = 5.0
"""Seconds that shard 0 waits for others to make a change, before it answers "not yet everywhere"."""
LOOK_PATIENCE = 2.0
"""Seconds that a look at all shards waits for one of them."""
AWAY = "coterie-away"
"""The header of an answer that names shards that were away: their part is missing."""
JSON_BODY: Headers = [(b"content-type", b"application/json")]
PASSED_ON = (b"authorization", b"ocp-apim-subscription-key", b"content-type")


class UserField(msgspec.Struct):
    """What is read of a decision's request to find its shard; both are checked where it is answered."""

    user: Any = None
    decision_id: Any = None


class RewardFields(msgspec.Struct):
    """What is read of a reward to find its shard."""

    decision_id: str | None = None
    user: str | None = None


class RewardsFields(msgspec.Struct):
    """What is read of rewards to find their shards."""

    rewards: list[RewardFields] = []


read_user = msgspec.json.Decoder(UserField).decode
read_rewards = msgspec.json.Decoder(RewardsFields).decode


class ShardRouter:
    """Answers requests of one shard, and passes on what is not its own.

    A request is meant for this shard alone if it says so in a header, as requests of clients that hash
    themselves and of other shards do. If its user lives elsewhere then, it gets 421 with the addresses of all
    shards. Any other request is passed on.

    Parameters
    ----------
    engine : PolicyEngine
        Of this shard.
    placement : Placement
        Which shard this is.
    peers : Peers
        How to reach the others.
    port : int
        The port of this shard; requests that come there and read are answered for this shard alone.
    """

    def __init__(self, engine: PolicyEngine, placement: Placement, peers: Peers, port: int) -> None:
        """Route nothing yet; `follower` is set when this shard follows shard 0."""
        self._engine, self.placement, self._peers, self._port = engine, placement, peers, port
        self.follower: Follower | None = None
        # By this header clients see that there are shards, and ask for their addresses.
        self.headers = [("coterie-shards", str(placement.shards))]
        self._answers: dict[Any, Callable[[Request], Awaitable[Response]]] = {
            routes.list_policies: self._list_policies,
            routes.describe_policy: self._describe_policy,
            routes.list_users: self._list_users,
            routes.list_clusters: self._list_clusters,
            routes.show_metrics: self._show_metrics,
            routes.cluster_members: self._cluster_members,
            routes.export_log: self._export,
            routes.import_log: self._import,
        }

    # The fast path.

    def is_local(self, policy: str, route: str, body: bytes) -> bool:
        """Tell whether decisions or rewards are of users of this shard; what is no JSON is refused here."""
        if self.follower is not None and not self.follower.ready:
            return False
        try:
            if route == "decisions":
                user = read_user(body).user
                return not isinstance(user, str) or self.placement.owns(user)
            return all(self._has(policy, one) for one in read_rewards(body).rewards)
        except msgspec.MsgspecError:
            return True

    def _has(self, policy: str, reward: RewardFields) -> bool:
        if reward.decision_id is not None:
            found = hash_in_id(reward.decision_id)
            if found is not None:
                return found % self.placement.shards == self.placement.shard
            live = self._engine.policies.get(policy)
            return live is not None and live.awaits(reward.decision_id)
        return reward.user is None or self.placement.owns(reward.user)

    # All other requests.

    async def answer(self, request: Request, endpoint: Endpoint, handle: Handle) -> Response:
        """Answer a request whose key was checked, here or elsewhere."""
        handler, meant = endpoint.handler, self._meant(request)
        if endpoint.role is not None and self.follower is not None and not self.follower.ready:
            raise StoreError(f"{self.placement} does not know the policies yet: {self.follower.reason}")
        # As on the fast path, a user who lives here is answered here, whichever shard was meant.
        if handler in OF_USER:
            return await self._of_user(request, handle, meant)
        if handler in OF_DECISION:
            return await self._of_decision(request, handle, meant)
        if meant is not None and meant != self.placement.shard:
            return self._misdirected(request)
        if handler in OF_REWARDS:
            return await self._of_rewards(request, handle, meant)
        if handler in CHANGING:
            return await self._change(request, handle)
        return await self._of_all(request, endpoint, handle, meant)

    async def _of_all(
        self, request: Request, endpoint: Endpoint, handle: Handle, meant: int | None
    ) -> Response:
        """Answer what is about no single user; what nobody has thought of is refused."""
        handler, own = endpoint.handler, meant is not None or self._at_own_port(request)
        merged = self._answers.get(handler)
        if merged is not None:
            return await (handle(request) if own else merged(request))
        if handler in ALIKE or (own and endpoint.method == "GET"):
            return await handle(request)
        raise Refusal(501, "this is not available with shards; /v1/shards lists the address of each")

    def _meant(self, request: Request) -> int | None:
        text = request.headers.get(MEANT_FOR.decode())
        if text is None:
            return None
        return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1

    def _at_own_port(self, request: Request) -> bool:
        server = request.scope.get("server")
        return server is not None and server[1] == self._port

    async def _of_user(self, request: Request, handle: Handle, meant: int | None) -> Response:
        owner = shard_of(request.path_params["user"], self.placement.shards)
        if owner == self.placement.shard:
            return await handle(request)
        if meant is not None:
            return self._misdirected(request)
        return await self._pass_on(request, owner, b"", patience=LONG_PATIENCE)

    async def _of_decision(self, request: Request, handle: Handle, meant: int | None) -> Response:
        body = await raw_body(request)
        try:
            user, decision = msgspec.structs.astuple(read_user(body))
        except msgspec.MsgspecError:  # the handler says what is wrong with it
            user = decision = None
        if not isinstance(user, str) or self.placement.owns(user):
            return await handle(replayed(request, body))
        if meant is not None:
            return self._misdirected(request)
        if decision is None:
            # It may be sent again, and must be the same decision then. In JSON the last of two fields counts.
            body = body.rstrip().removesuffix(b"}") + b',"decision_id":"%b"}' % new_id(user).encode()
        return await self._pass_on(request, shard_of(user, self.placement.shards), body)

    async def _of_rewards(self, request: Request, handle: Handle, meant: int | None) -> Response:
        body = await raw_body(request)
        large = len(body) > decision_routes.QUICK_BODY
        fields = await run_in_threadpool(_decoded, body) if large else _decoded(body)
        rewards = fields.get("rewards") if isinstance(fields, dict) else None
        sound = isinstance(rewards, list) and rewards and all(isinstance(one, dict) for one in rewards)
        if meant is not None or not sound:
            # Whoever names a shard knows where the decision is: one that is not here is unknown.
            return await handle(replayed(request, body))
        assert isinstance(rewards, list)
        self._engine.limiter.check("batch", 0, len(rewards))

        async def send(shard: int, part: bytes) -> PeerAnswer:
            return await self._send(request, shard, part)

        try:
            found = await send_rewards([with_id(one) for one in rewards], self.placement.shards, send)
        except RefusedBatch as refused:
            found = refused.answer
        return _response(found)

    async def _change(self, request: Request, handle: Handle) -> Response:
        """Let shard 0 make a change, and then all others; the answer names those that have not yet."""
        if self.placement.shard != LEADER:
            return await self._pass_on(request, LEADER, await raw_body(request), patience=LONG_PATIENCE)
        body = await raw_body(request)
        _check_spreads(body)
        response = await handle(replayed(request, body))
        if response.status_code < 300:
            others = [one for one in range(self.placement.shards) if one != LEADER]
            told = await asyncio.gather(*map(self._tell, others))
            late = [shard for shard, done in zip(others, told, strict=True) if not done]
            if late:
                response.headers[NOT_YET] = ",".join(map(str, late))
        return response

    async def _tell(self, shard: int) -> bool:
        """Let a shard catch up; False if it has not done so in time."""
        try:
            answer = await self._peers.send(
                shard, "POST", b"/v1/shards/catch-up", headers=JSON_BODY, patience=NOTICE_PATIENCE
            )
        except ShardAway:
            return False
        return answer.succeeded

    # Passing on.

    async def _pass_on(
        self, request: Request, shard: int, body: bytes, *, patience: float = PATIENCE
    ) -> Response:
        return _response(await self._send(request, shard, body, patience=patience))

    async def _send(
        self, request: Request, shard: int, body: bytes, *, patience: float = PATIENCE, once: bool = False
    ) -> PeerAnswer:
        """Send the same request to a shard, perhaps this one."""
        return await self._peers.send(
            shard,
            request.method,
            _target(request),
            body=body,
            headers=_passed_on(request),
            patience=patience,
            once=once,
        )

    def _misdirected(self, request: Request) -> Response:
        """Answer 421 with the addresses of all shards (RFC 9457 allows further members)."""
        detail = f"the user does not live in this shard, which is {self.placement}"
        answer = messages.Misdirected(
            title="Misdirected Request",
            status=421,
            detail=detail,
            shards=self._directory(request),
        )
        return Response(
            msgspec.json.encode(answer), 421, headers={"content-type": "application/problem+json"}
        )

    def _directory(self, request: Request) -> messages.ShardsAnswer:
        """Return the address of each shard, under the name by which the request has come."""
        host = (request.headers.get("host") or "127.0.0.1").rpartition("@")[2]
        name = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
        return messages.ShardsAnswer(
            shard=self.placement.shard,
            addresses=[f"http://{name}:{port}" for _, port in self._peers.addresses],
        )

    # Looking at all shards.

    async def _all(self, request: Request) -> tuple[dict[int, PeerAnswer], list[int]]:
        """Ask all shards the same; return what they answer, and which of them are away."""
        asked = [
            self._send(request, shard, b"", patience=LOOK_PATIENCE) for shard in range(self.placement.shards)
        ]
        found = await asyncio.gather(*asked, return_exceptions=True)
        answers, away = {}, []
        for shard, one in enumerate(found):
            if isinstance(one, PeerAnswer):
                answers[shard] = one
            elif isinstance(one, ShardAway):
                away.append(shard)
            else:
                raise one
        if not any(one.succeeded for one in answers.values()) and answers:
            first = next(iter(answers.values()))
            raise Refusal(first.status, msgspec.json.decode(first.content, type=messages.Problem).detail)
        return answers, away

    async def _list_policies(self, request: Request) -> Response:
        answers, away = await self._all(request)
        return _looked(merged_policies(decoded(answers, messages.PoliciesAnswer)), away)

    async def _describe_policy(self, request: Request) -> Response:
        answers, away = await self._all(request)
        parts = decoded(answers, messages.PolicyAnswer)
        whole = messages.PoliciesAnswer
        found = merged_policies({k: whole(policies=[one], failed=[]) for k, one in parts.items()})
        return _looked(found.policies[0], away)

    async def _list_clusters(self, request: Request) -> Response:
        answers, away = await self._all(request)
        return _looked(merged_clusters(decoded(answers, messages.ClustersAnswer)), away)

    async def _show_metrics(self, request: Request) -> Response:
        answers, _ = await self._all(request)
        texts = {shard: one.content.decode() for shard, one in answers.items() if one.succeeded}
        text = merged_metrics(texts, self.placement.shards)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _list_users(self, request: Request) -> Response:
        """List users shard after shard: first how many each has, then the part that was asked for."""
        start = integer_parameter(request, "start", 0, 2**31)
        limit = integer_parameter(request, "limit", 100, 10_000)
        headers = _passed_on(request)
        path = request.scope.get("raw_path") or request.scope["path"].encode()

        async def ask(shard: int, low: int, count: int) -> messages.UsersAnswer:
            target = path + b"?start=%d&limit=%d" % (low, count)
            found = await self._peers.send(shard, "GET", target, headers=headers, patience=LOOK_PATIENCE)
            if not found.succeeded:
                detail = msgspec.json.decode(found.content, type=messages.Problem).detail
                raise Refusal(found.status, detail)
            return msgspec.json.decode(found.content, type=messages.UsersAnswer)

        counts = await asyncio.gather(*(ask(shard, 0, 0) for shard in range(self.placement.shards)))
        totals = [one.total for one in counts]
        wanted = slices(totals, start, limit)
        parts = await asyncio.gather(*(ask(shard, *part) for shard, part in wanted.items()))
        users, total = [user for part in parts for user in part.users], sum(totals)
        end = start + limit
        return json_response(
            messages.UsersAnswer(users=users, total=total, next=end if end < total else None)
        )

    async def _cluster_members(self, request: Request) -> Response:
        """Pass on to the shard in the query: a number of a cluster is unique within a shard."""
        most = self.placement.shards - 1
        shard = integer_parameter(request, "shard", -1, most)
        if shard < 0:
            raise Refusal(422, f"name the shard of the cluster, from 0 to {most}: ?shard=0")
        return await self._pass_on(request, shard, b"")

    async def _export(self, request: Request) -> Response:
        """Send the rows of one shard after the other; all shards must be there when it begins."""
        form = request.query_params.get("format", "jsonl")
        if form != "jsonl":
            raise Refusal(
                501, "all shards together are exported as jsonl; each shard by itself as parquet, too"
            )
        whole = range(self.placement.shards)
        asked = [self.placement.shard] if request.query_params.get("table") == "items" else whole
        for one in (await self._status()).shards:
            if one.shard in asked and not one.up:
                raise ShardAway(one.shard)
        target, headers = _target(request), _passed_on(request)

        async def rows() -> AsyncIterator[bytes]:
            for shard in asked:
                async for piece in self._peers.stream(shard, target, headers):
                    yield piece

        return StreamingResponse(rows(), media_type="application/x-ndjson")

    async def _import(self, request: Request) -> Response:
        """Let each shard import the lines of its users; what one refuses says which line it is."""
        parts = await run_in_threadpool(split_lines, await raw_body(request), self.placement.shards)
        counted = duplicates = 0
        for shard, part in parts.items():
            found = await self._send(request, shard, part, patience=LONG_PATIENCE, once=True)
            if not found.succeeded:
                return _response(found)
            answer = msgspec.json.decode(found.content, type=messages.ImportAnswer)
            counted, duplicates = counted + answer.counted, duplicates + answer.duplicates
        return json_response(messages.ImportAnswer(counted=counted, duplicates=duplicates))

    # Routes of the shards themselves.

    def routes(self, service: HTTPService) -> list[Route]:
        """Return the routes that only a sharded service has."""

        async def directory(request: Request) -> Response:
            service.keys.authorise(request.scope["headers"], "reader", None, any_scope=True)
            return json_response(self._directory(request))

        async def status(request: Request) -> Response:
            service.keys.authorise(request.scope["headers"], "reader", None)
            return json_response(await self._status())

        async def changes(request: Request) -> Response:
            self._check_peer(request)
            after = integer_parameter(request, "after", 0, 2**53)
            found = await run_in_threadpool(read_changes, self._engine.store, after)
            return Response(encode_changes(found), media_type="application/msgpack")

        async def catch_up(request: Request) -> Response:
            self._check_peer(request)
            if self.follower is not None:
                await run_in_threadpool(self.follower.catch_up)
            return Response(status_code=204)

        async def own_status(request: Request) -> Response:
            self._check_peer(request)
            return json_response(self._own_status())

        async def page(request: Request) -> Response:
            if self._at_own_port(request):
                return await show_page(request)
            try:
                service.keys.authorise(request.scope["headers"], "reader", None)
                counts = True
            except Refusal:  # browsers send no key: they see which shards are away, and nothing else
                counts = False
            text = overview((await self._status()).shards, self._directory(request), counts=counts)
            return HTMLResponse(text, headers={"content-security-policy": CONTENT_POLICY})

        return [
            Route("/", page),
            Route("/v1/shards", directory),
            Route("/v1/shards/status", status),
            Route("/v1/shards/changes", changes),
            Route("/v1/shards/catch-up", catch_up, methods=["POST"]),
            Route("/v1/shards/own-status", own_status),
        ]

    def _check_peer(self, request: Request) -> None:
        given = request.headers.get(PEER_TOKEN.decode(), "")
        if not hmac.compare_digest(given.encode(), self._peers.token.encode()):
            raise Refusal(403, "only shards of this service may ask for this")

    def _own_status(self) -> messages.ShardStatus:
        lives = list(self._engine.policies.values())
        reason = "" if self.follower is None else self.follower.reason
        return messages.ShardStatus(
            shard=self.placement.shard,
            up=self._engine.lifecycle.serving,
            users=sum(len(live.state.users) for live in lives),
            rounds=sum(live.state.policy.rounds for live in lives),
            in_step=not reason,
            reason=reason,
        )

    async def _status(self) -> messages.ShardsStatus:
        """Ask each shard how it is; one that does not answer is away."""
        asked = [
            self._peers.send(shard, "GET", b"/v1/shards/own-status", patience=LOOK_PATIENCE)
            for shard in range(self.placement.shards)
        ]
        found = await asyncio.gather(*asked, return_exceptions=True)
        shards = []
        for shard, one in enumerate(found):
            if isinstance(one, PeerAnswer) and one.succeeded:
                shards.append(msgspec.json.decode(one.content, type=messages.ShardStatus))
            else:
                shards.append(messages.ShardStatus(shard=shard, up=False, reason=f"shard {shard} is away"))
        return messages.ShardsStatus(shards=shards)


def _target(request: Request) -> bytes:
    """Return path and query of a request, as they came."""
    scope = request.scope
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    return path + b"?" + scope["query_string"] if scope["query_string"] else path


def _passed_on(request: Request) -> Headers:
    """Return the headers that are passed on with a request."""
    return [(name, value) for name, value in request.scope["headers"] if name in PASSED_ON]


def split_lines(log: bytes, shards: int) -> dict[int, bytes]:
    """Return the lines of the users of each shard; those of others are left empty, which keeps numbers.

    A line without a user goes to shard 0, which says what is wrong with it.
    """
    lines = log.split(b"\n")
    parts: dict[int, list[bytes]] = {}
    for number, line in enumerate(lines):
        if line.strip():
            fields = _decoded(line)
            user = fields.get("user") if isinstance(fields, dict) else None
            shard = shard_of(user, shards) if isinstance(user, str) else LEADER
            parts.setdefault(shard, [b""] * len(lines))[number] = line
    return {shard: b"\n".join(part) for shard, part in sorted(parts.items())} or {LEADER: log}


def _decoded(body: bytes) -> Any:
    """Return a body of JSON; None if it is none, which the handler then says."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _check_spreads(body: bytes) -> None:
    """Refuse a policy that must know its users from the start: each shard has only some of them."""
    fields = _decoded(body)
    if isinstance(fields, dict) and fields.get("users"):
        raise Refusal(422, "a policy of several shards cannot be given users at the start")


def _response(answer: PeerAnswer) -> Response:
    """Return what a shard has answered."""
    if answer.status in (429, 503):
        return problem(answer.status, msgspec.json.decode(answer.content, type=messages.Problem).detail)
    headers = {"content-type": answer.content_type} if answer.content else {}
    if answer.not_yet:
        headers[NOT_YET] = answer.not_yet
    return Response(answer.content, answer.status, headers)


def _looked(message: Any, away: list[int]) -> Response:
    """Return what all shards have answered, and which of them were away."""
    response = json_response(message)
    if away:
        response.headers[AWAY] = ",".join(map(str, away))
    return response
