"""Clients of the service, for threads and for asyncio, whose retries cannot count twice.

`Call` and `Calls` describe every request once; the two clients differ in how they send and wait.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError, Conflict, CoterieError, StoreError, UnknownName
from coterie.placement import user_hash
from coterie.service import messages
from coterie.service.core.ids import checked_id, hash_in_id, listed, new_id
from coterie.service.item_tables import Ids, ItemSource, ItemTable, Progress, item_table, saying_what_was_put
from coterie.service.shard_addresses import PATH as SHARDS
from coterie.service.shard_addresses import ShardAddresses
from coterie.validation import shown

T = TypeVar("T")
R = TypeVar("R")
NUMBERS_IN_BODY = 2**16
"""Numbers of vectors in a body, at most: about 1.3 MB of JSON."""
LONGEST_BODY = 3 * 2**20
"""Bytes of a body of several items, at most; a service takes 4 MB by default."""
LONGEST_QUERY = 4_000
"""Characters of the ids of items that one request removes, at most, if there are several."""
RETRIED = (429, 502, 503, 504)
"""Statuses after which the same request is sent again."""
ERRORS: dict[int, type[CoterieError]] = {404: UnknownName, 409: Conflict, 503: StoreError, 429: StoreError}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request of a client, and the type of its answer; `NoneType` for an answer without a body.

    `hashes` are those of the users that it is about, if that is known of all.
    """

    method: str
    path: str
    answer: type[T]
    body: Any = None
    hashes: tuple[int, ...] = ()

    def content(self) -> bytes | None:
        """Return the encoded body."""
        return None if self.body is None else msgspec.json.encode(self.body)

    def read(self, response: httpx.Response) -> T:
        """Decode the answer, or raise the error that it describes."""
        if response.is_success:
            return msgspec.json.decode(response.content or b"null", type=self.answer)
        try:
            detail = msgspec.json.decode(response.content, type=messages.Problem).detail
        except msgspec.MsgspecError:
            detail = f"the service answered {response.status_code}"
        raise ERRORS.get(response.status_code, ArgumentError)(detail)


Steps: TypeAlias = Generator[Call[T], T, R]
"""Requests of which the next may depend on the answer before: yields calls, gets their answers."""


class Calls:
    """The calls to one policy; decisions and rewards get an id, so that they may be sent again."""

    def __init__(self, policy: str, experiment: str | None = None) -> None:
        """Address the policy of this name, and an experiment for decisions and rewards, if there is one."""
        self.policy, self.experiment = policy, experiment

    def _path(self, rest: str = "") -> str:
        return f"/v1/policies/{quote(self.policy, safe='')}{rest}"

    def _decision_path(self, rest: str) -> str:
        if self.experiment is None:
            return self._path(rest)
        return f"/v1/experiments/{quote(self.experiment, safe='')}{rest}"

    def create_policy(self, dim: int, policy: str, options: Mapping[str, Any]) -> Call[messages.PolicyAnswer]:
        """Make the policy."""
        body = {"name": self.policy, "dim": dim, "policy": policy, **options}
        return Call("POST", "/v1/policies", messages.PolicyAnswer, body)

    def describe(self) -> Call[messages.PolicyAnswer]:
        """Describe the policy."""
        return Call("GET", self._path(), messages.PolicyAnswer)

    def configure(self, changes: Mapping[str, Any]) -> Call[messages.PolicyAnswer]:
        """Change settings."""
        return Call("PATCH", self._path(), messages.PolicyAnswer, dict(changes))

    def put_items(
        self, table: ItemTable, replace_all: bool, progress: Progress | None
    ) -> Steps[messages.ItemsAnswer, int]:
        """Set items of the catalogue, in batches; the others are removed at the end."""
        bodies = (body for batch in table.batches(NUMBERS_IN_BODY) for body in _bodies(batch))
        first, second = next(bodies), next(bodies, None)
        alone = second is None
        method = "PUT" if replace_all and alone else "PATCH"
        done = count = 0
        with saying_what_was_put(lambda: done):
            for items, body in chain([first] if second is None else [first, second], bodies):
                answer = yield Call(method, self._path("/items"), messages.ItemsAnswer, msgspec.Raw(body))
                done, count = done + items, answer.count
                if progress is not None:
                    progress(done, len(table))
            if replace_all and not alone:
                kept = set(table.ids)
                others = [one for one in (yield from self.list_items()) if one not in kept]
                count = (yield from self.remove_items(others)) if others else count
        return count

    def list_items(self) -> Steps[messages.ItemsAnswer, list[str]]:
        """List the ids of the catalogue, some at a time."""
        found: list[str] = []
        start: int | msgspec.UnsetType | None = 0
        while isinstance(start, int):
            answer = yield Call("GET", self._path(f"/items?start={start}"), messages.ItemsAnswer)
            found += answer.ids or ()
            start = answer.next
        return found

    def remove_items(self, ids: Sequence[str]) -> Steps[messages.ItemsAnswer, int]:
        """Remove items of the catalogue, as many at a time as fit in a line."""
        names = [checked_id("one of items", one) for one in listed("items", ids)]
        if not names:
            raise ArgumentError("items must be a list of at least one id, got none")
        words, count = [f"id={quote(one, safe='')}" for one in names], 0
        while words:
            fitting = 1
            while fitting < len(words) and sum(map(len, words[: fitting + 1])) < LONGEST_QUERY:
                fitting += 1
            query = "&".join(words[:fitting])
            answer = yield Call("DELETE", self._path(f"/items?{query}"), messages.ItemsAnswer)
            words, count = words[fitting:], answer.count
        return count

    def decide(
        self,
        user: str,
        items: Sequence[str] | None,
        arms: Mapping[str, ArrayLike] | None,
        exclude: Sequence[str] | None,
        only: str | Sequence[str] | None,
        k: int,
        decision_id: str | None,
    ) -> Call[messages.DecisionAnswer]:
        """Decide for a user."""
        body: dict[str, Any] = {"user": user, "k": k, "decision_id": decision_id or new_id(user)}
        if items is not None:
            body["items"] = [checked_id("one of items", one) for one in listed("items", items)]
        if exclude is not None:
            body["exclude"] = listed("exclude", exclude)
        if only is not None:
            body["only"] = [only] if isinstance(only, str) else listed("only", only, "tags")
        if arms is not None:
            if not isinstance(arms, Mapping):
                raise ArgumentError(f"arms must be vectors by id, got {shown(arms)}")
            body["arms"] = [{"id": arm, "x": floats(x)} for arm, x in arms.items()]
        where = self._decision_path("/decisions")
        return Call("POST", where, messages.DecisionAnswer, body, (user_hash(user),))

    def reward(self, rewards: Sequence[Mapping[str, Any]]) -> Call[messages.RewardsAnswer]:
        """Give rewards."""
        given = [{name: value for name, value in one.items() if value is not None} for one in rewards]
        for one in given:
            if "decision_id" not in one:  # an id makes it count once, however often it is sent
                one.setdefault("id", new_id())
            if "x" in one:
                one["x"] = floats(one["x"])
        where, body = self._decision_path("/rewards"), {"rewards": given}
        return Call("POST", where, messages.RewardsAnswer, body, _hashes(given))

    def explain(self, user: str) -> Call[messages.ExplanationAnswer]:
        """Explain a user."""
        where = self._path(f"/users/{quote(user, safe='')}")
        return Call("GET", where, messages.ExplanationAnswer, hashes=(user_hash(user),))

    def history(self, user: str) -> Call[messages.HistoryAnswer]:
        """List events of a user."""
        where = self._path(f"/history/{quote(user, safe='')}")
        return Call("GET", where, messages.HistoryAnswer, hashes=(user_hash(user),))

    def remove_user(self, user: str) -> Call[None]:
        """Forget a user."""
        where = self._path(f"/users/{quote(user, safe='')}")
        return Call("DELETE", where, type(None), hashes=(user_hash(user),))

    def clusters(self) -> Call[messages.ClustersAnswer]:
        """List clusters."""
        return Call("GET", self._path("/clusters"), messages.ClustersAnswer)

    def outcomes(self) -> Call[messages.OutcomesAnswer]:
        """Say what decisions have brought."""
        return Call("GET", self._path("/outcomes"), messages.OutcomesAnswer)

    def create_experiment(
        self, name: str, policies: Mapping[str, float], options: Mapping[str, Any]
    ) -> Call[messages.ExperimentAnswer]:
        """Begin an experiment."""
        shares = [{"policy": policy, "share": share} for policy, share in policies.items()]
        body = {"name": name, "policies": shares, **options}
        return Call("POST", "/v1/experiments", messages.ExperimentAnswer, body)

    def experiments(self) -> Call[messages.ExperimentsAnswer]:
        """List experiments."""
        return Call("GET", "/v1/experiments", messages.ExperimentsAnswer)

    def describe_experiment(self, name: str) -> Call[messages.ExperimentAnswer]:
        """Return the results of an experiment."""
        return Call("GET", f"/v1/experiments/{quote(name, safe='')}", messages.ExperimentAnswer)

    def stop_experiment(self, name: str, keep: str) -> Call[messages.ExperimentAnswer]:
        """End an experiment."""
        where = f"/v1/experiments/{quote(name, safe='')}/stop"
        return Call("POST", where, messages.ExperimentAnswer, {"keep": keep})


def _hashes(rewards: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the hashes of the users of rewards; none if an id of a decision does not tell its user's."""
    found = []
    for one in rewards:
        decision = one.get("decision_id")
        known = user_hash(one.get("user", "")) if decision is None else hash_in_id(str(decision))
        if known is None:
            return ()
        found.append(known)
    return tuple(found)


def _bodies(batch: ItemTable) -> Iterator[tuple[int, bytes]]:
    """Yield the bodies that put a batch of items, and how many each puts; long ones are cut in two."""
    tags = batch.tags or {}
    rows = zip(batch.ids, np.asarray(batch.vectors, np.float64).tolist(), strict=True)
    items = [{"id": one, "x": x} | ({"tags": list(tags[one])} if one in tags else {}) for one, x in rows]
    body = msgspec.json.encode({"items": items})
    if len(body) <= LONGEST_BODY or len(batch) < 2:
        yield len(batch), body
        return
    half = len(batch) // 2
    for part in (slice(0, half), slice(half, None)):
        yield from _bodies(ItemTable(batch.ids[part], batch.vectors[part], batch.tags))


def floats(x: ArrayLike) -> list[float]:
    """Return a vector as JSON can have it."""
    return [float(value) for value in np.asarray(x, np.float64).ravel()]


def headers(key: str | None) -> dict[str, str]:
    """Return the headers of every request."""
    found = {"Content-Type": "application/json"}
    if key is not None:
        found["Authorization"] = f"Bearer {key}"
    return found


def pause(attempt: int, response: httpx.Response | None) -> float:
    """Return the seconds before the next attempt: doubled each time, or as the service says; at most 5."""
    wanted = response.headers.get("retry-after", "") if response is not None else ""
    least = float(wanted) if wanted.isdigit() else 0.0
    # Jitter: clients that failed together must not come back together.
    return float(min(max(0.05 * 2**attempt, least), 5.0) * random.uniform(0.75, 1.25))


def unreachable(error: Exception) -> StoreError:
    """Return the error for a request without any answer."""
    return StoreError(f"the service cannot be reached: {error or type(error).__name__}")


class Client:
    """Talk to a service: `coterie serve` at the other end.

    Parameters
    ----------
    url : str
        Where the service is.
    policy : str
        The policy that requests are for.
    experiment : str, optional
        An experiment through which decisions and rewards go, whatever the policy.
    key : str, optional
        An API key, `ck_…`.
    retries : int
        How often a request is sent again if the connection breaks or the service cannot serve.
    timeout : float
        Seconds to wait for an answer.
    transport : httpx.BaseTransport, optional
        What sends the requests instead of the network, such as an application under test.

    Notes
    -----
    Every decision and every reward has an id before it is first sent. A request whose answer was lost is
    sent again with the same id, and counts once.

    Any request raises `StoreError` if the service cannot be reached or cannot serve after all retries,
    `UnknownName` if it has no such policy, and `ArgumentError` if it refuses the request or the key.

    Examples
    --------
    Here something else answers in place of a service:

    >>> import httpx
    >>> answer = {"results": [{"id": "d1", "status": "counted"}]}
    >>> service = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))
    >>> with Client("http://127.0.0.1:8000", "shop", transport=service) as shop:
    ...     shop.reward("d1", 1.0).status
    'counted'
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        policy: str = "default",
        *,
        experiment: str | None = None,
        key: str | None = None,
        retries: int = 5,
        timeout: float = 10.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Connect when the first request is sent."""
        self._calls = Calls(policy, experiment)
        self._retries = retries
        self._shards = ShardAddresses(url)
        self._http = httpx.Client(
            base_url=url, headers=headers(key), timeout=timeout, transport=transport, trust_env=False
        )

    def _send(self, call: Call[T]) -> T:
        """Send a request until it is answered, or there were too many attempts."""
        for attempt in range(self._retries + 1):
            response: httpx.Response | None = None
            address, extra = self._shards.straight(call.hashes) or ("", {})
            try:
                url = address + call.path
                response = self._http.request(call.method, url, content=call.content(), headers=extra)
                if self._shards.wants(response):
                    self._shards.learn(self._http.get(SHARDS))
            except httpx.TransportError as error:
                self._shards.forget()
                if attempt == self._retries and response is None:
                    raise unreachable(error) from None
            if response is not None and address and self._shards.misdirected(response):
                self._shards.forget()
                continue
            if response is not None and (response.status_code not in RETRIED or attempt == self._retries):
                return call.read(response)
            time.sleep(pause(attempt, response))
        raise StoreError("the shards of the service do not agree where the user lives")

    def create_policy(self, dim: int, policy: str = "AutoCLUB", **options: Any) -> messages.PolicyAnswer:
        """Make the policy that this client is for.

        Parameters
        ----------
        dim : int
            The length d of an item's vector.
        policy : str
            A name of the registry; `coterie policies` lists all.
        **options
            Other settings: params, users, seed, reward_wait, default_reward, late, learn_parts, uniform_share
            or mode, as `coterie.service.settings.PolicySettings` has them.

        Returns
        -------
        PolicyAnswer
            The new policy at a glance.

        Raises
        ------
        Conflict
            If there is, or was, a policy of this name, even one of an attempt whose answer was lost.
        """
        return self._send(self._calls.create_policy(dim, policy, options))

    def describe(self) -> messages.PolicyAnswer:
        """Describe the policy at a glance.

        Returns
        -------
        PolicyAnswer
            Its settings, and how many rounds, users, items, clusters and waiting decisions there are.

        Raises
        ------
        UnknownName
            If the service has no policy of this name.
        """
        return self._send(self._calls.describe())

    def configure(self, **changes: Any) -> messages.PolicyAnswer:
        """Change settings while the policy runs.

        Parameters
        ----------
        **changes
            New values of reward_wait, default_reward, late, learn_parts, uniform_share or mode; others stay.

        Returns
        -------
        PolicyAnswer
            The policy after the change.

        Raises
        ------
        ArgumentError
            If a setting is unknown, cannot change, or has a value that cannot be used.
        """
        return self._send(self._calls.configure(changes))

    def _perform(self, steps: Steps[T, R]) -> R:
        """Send requests one after another, each of which may depend on answers before."""
        try:
            call = next(steps)
            while True:
                try:
                    answer = self._send(call)
                except CoterieError as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(answer)
        except StopIteration as end:
            result: R = end.value
            return result

    def put_items(
        self,
        items: ItemSource,
        *,
        ids: Ids | None = None,
        tags: Mapping[str, Sequence[str]] | None = None,
        replace_all: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Add items to the catalogue, or change their vectors; what is known of an item stays.

        Parameters
        ----------
        items : mapping, data frame or array_like
            A vector of length dim for each id; or a table of pandas or polars with columns `id`, `x` (lists)
            or columns of numbers, and perhaps `tags`; or an array with a row for each item.
        ids : sequence, optional
            Ids of the rows of an array; their numbers by default.
        tags : mapping, optional
            A list of tags for the ids of some of these items; the others keep the tags that they have.
        replace_all : bool
            Whether to remove all other items, after these were put.
        progress : callable, optional
            Called as progress(done, total) after each batch.

        Returns
        -------
        int
            How many items the catalogue has then.

        Raises
        ------
        ArgumentError
            If an id or a vector cannot be used. Ids, shapes and numbers are checked before anything is sent.

        Notes
        -----
        Many items are sent in batches of about a megabyte, each of which is put as a whole: an interruption
        leaves the first ones, and an error says how many these are.
        """
        table = item_table(items, ids=ids, tags=tags)
        return self._perform(self._calls.put_items(table, replace_all, progress))

    def list_items(self) -> list[str]:
        """List the ids of the catalogue.

        Returns
        -------
        list of str
            All ids, in no particular order.
        """
        return self._perform(self._calls.list_items())

    def remove_items(self, items: Sequence[str]) -> int:
        """Remove items from the catalogue; decisions that chose them still take their rewards.

        Parameters
        ----------
        items : sequence of str
            Ids of the catalogue, of which some hundred are removed by one request; if one is unknown, none of
            its request is removed, nor of those after it.

        Returns
        -------
        int
            How many items the catalogue has then.
        """
        return self._perform(self._calls.remove_items(items))

    def decide(
        self,
        user: str,
        items: Sequence[str] | None = None,
        *,
        arms: Mapping[str, ArrayLike] | None = None,
        exclude: Sequence[str] | None = None,
        only: str | Sequence[str] | None = None,
        k: int = 1,
        decision_id: str | None = None,
    ) -> messages.DecisionAnswer:
        """Choose an item for a user, or a list of k; a user who was never seen joins.

        Parameters
        ----------
        user : str
            The user's id.
        items : sequence of str, optional
            Items of the catalogue that may be shown now; all of them by default.
        arms : mapping, optional
            Instead of items: vectors by id. An id of the catalogue must have the vector that it has there.
        exclude : sequence of str, optional
            Ids of items to leave out, such as those that the user has seen; they may have been removed since.
        only : str or sequence of str, optional
            A tag, or several: only items that have one of them.
        k : int
            How many items to rank.
        decision_id : str, optional
            An id of your own; a new one by default. The same request with the same id gets the same answer.

        Returns
        -------
        DecisionAnswer
            With `id`, which the reward names, and `chosen`; in JSON the id is called `decision_id`.

        Raises
        ------
        Conflict
            If `decision_id` was used for another request.
        """
        return self._send(self._calls.decide(user, items, arms, exclude, only, k, decision_id))

    def reward(
        self, decision_id: str, reward: float, *, part: str | None = None, item: str | None = None
    ) -> messages.RewardAnswer:
        """Give the reward of a decision, or one part of it; the same twice is counted once.

        Parameters
        ----------
        decision_id : str
            The id of the decision.
        reward : float
            What came back, about from −1 to 1. For a list: 1 and the `item` clicked, or 0.
        part : str, optional
            A name of your own, such as "click" or "order-17": rewards of one decision with different names
            add up. Their sum is learnt when `reward_wait` is over, or as `learn_parts` says.
        item : str, optional
            The item clicked in a list; in shadow mode, the item of the catalogue that was shown instead.

        Returns
        -------
        RewardAnswer
            `status` is "counted", "added" (to a sum that is learnt later), "duplicate", "late" or, if the
            policy does not learn from it, "recorded".

        Raises
        ------
        UnknownName
            If there is no such decision.
        Conflict
            If another reward was given for it.
        """
        one = {"decision_id": decision_id, "reward": reward, "part": part, "item": item}
        return (self.reward_many([one]))[0]

    def reward_many(self, rewards: Sequence[Mapping[str, Any]]) -> list[messages.RewardAnswer]:
        """Give many rewards in one request; each has its own result.

        Parameters
        ----------
        rewards : sequence of mapping
            Each with `reward`, and with `decision_id` and perhaps `part`; or, for what something else chose,
            with `user` and `item` or `x`, and perhaps an `id` that makes it count once.

        Returns
        -------
        list of RewardAnswer
            In the same order. One of several that is refused has `status` "refused", and `detail` says why.

        Raises
        ------
        UnknownName, Conflict, ArgumentError
            If there is only one reward and it is refused.
        """
        return (self._send(self._calls.reward(rewards))).results

    def explain(self, user: str) -> messages.ExplanationAnswer:
        """Explain who a user learns from, and how items score for it.

        Parameters
        ----------
        user : str
            The user's id.

        Returns
        -------
        ExplanationAnswer
            The user's cluster and estimate, and the best items of the catalogue.

        Raises
        ------
        UnknownName
            If the user has not been seen, or was removed.
        """
        return self._send(self._calls.explain(user))

    def history(self, user: str) -> list[messages.UserEventAnswer]:
        """List the latest decisions and rewards of a user.

        Parameters
        ----------
        user : str
            The user's id.

        Returns
        -------
        list of UserEventAnswer
            At most 100, in the order in which they happened.

        Raises
        ------
        UnknownName
            If the user has not been seen, or was removed.
        """
        return (self._send(self._calls.history(user))).events

    def clusters(self) -> list[messages.ClusterAnswer]:
        """List all clusters, the largest first.

        Returns
        -------
        list of ClusterAnswer
            The number, the size and the first user of each.
        """
        return (self._send(self._calls.clusters())).clusters

    def outcomes(self) -> messages.OutcomesAnswer:
        """Say what decisions have brought, by hour and by item, and what has collapsed.

        Returns
        -------
        OutcomesAnswer
            Counts and rewards by hour, the best, newest and most shown items, and alerts.
        """
        return self._send(self._calls.outcomes())

    def create_experiment(
        self, name: str, policies: Mapping[str, float], **options: Any
    ) -> messages.ExperimentAnswer:
        """Begin an experiment: policies share users by a hash of their ids.

        Parameters
        ----------
        name : str
            A name that was never used.
        policies : mapping
            The share of users of each policy, in any unit; the first is the champion.
        **options
            learn ("own" or "all"), alpha (0.05) and least_effect, as
            `coterie.service.core.experiments.Experiment` has them.

        Returns
        -------
        ExperimentAnswer
            The experiment, without results.

        Raises
        ------
        Conflict
            If the name was used before, or a policy takes part in another experiment that runs.
        """
        return self._send(self._calls.create_experiment(name, policies, options))

    def experiments(self) -> list[messages.ExperimentAnswer]:
        """List all experiments with their results.

        Returns
        -------
        list of ExperimentAnswer
            In the order in which they were begun.
        """
        return (self._send(self._calls.experiments())).experiments

    def describe_experiment(self, name: str) -> messages.ExperimentAnswer:
        """Return the results of an experiment so far; one may look as often as one likes.

        Parameters
        ----------
        name : str
            The name of the experiment.

        Returns
        -------
        ExperimentAnswer
            Differences with intervals that hold at all times, results by day, and a proposal.
        """
        return self._send(self._calls.describe_experiment(name))

    def stop_experiment(self, name: str, keep: str) -> messages.ExperimentAnswer:
        """End an experiment; decisions that are asked for through it go on, by one policy for all users.

        Parameters
        ----------
        name : str
            The name of the experiment.
        keep : str
            The policy that decides from now on.

        Returns
        -------
        ExperimentAnswer
            The final results.
        """
        return self._send(self._calls.stop_experiment(name, keep))

    def remove_user(self, user: str) -> None:
        """Forget a user: id, history and statistics.

        Parameters
        ----------
        user : str
            The user's id.

        Raises
        ------
        UnknownName
            If the user has not been seen, or was removed, even by an attempt whose answer was lost.
        """
        self._send(self._calls.remove_user(user))

    def close(self) -> None:
        """Close the connections; the client cannot be used after."""
        self._http.close()

    def __enter__(self) -> Client:
        """Close at the end of a `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


class AsyncClient:
    """Talk to a service from asyncio; every method is that of `Client`, to be awaited.

    Parameters
    ----------
    url : str
        Where the service is.
    policy : str
        The policy that requests are for.
    experiment : str, optional
        An experiment through which decisions and rewards go, whatever the policy.
    key : str, optional
        An API key, `ck_…`.
    retries : int
        How often a request is sent again if the connection breaks or the service cannot serve.
    timeout : float
        Seconds to wait for an answer.
    transport : httpx.AsyncBaseTransport, optional
        What sends the requests instead of the network, such as an application under test.

    Examples
    --------
    Here something else answers in place of a service:

    >>> import asyncio
    >>> import httpx
    >>> answer = {"results": [{"id": "d1", "status": "counted"}]}
    >>> service = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))
    >>> async def give():
    ...     async with AsyncClient("http://127.0.0.1:8000", "shop", transport=service) as shop:
    ...         return (await shop.reward("d1", 1.0)).status
    >>> asyncio.run(give())
    'counted'
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        policy: str = "default",
        *,
        experiment: str | None = None,
        key: str | None = None,
        retries: int = 5,
        timeout: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect when the first request is sent."""
        self._calls = Calls(policy, experiment)
        self._retries = retries
        self._shards = ShardAddresses(url)
        self._http = httpx.AsyncClient(
            base_url=url, headers=headers(key), timeout=timeout, transport=transport, trust_env=False
        )

    async def _send(self, call: Call[T]) -> T:
        """Send a request until it is answered, or there were too many attempts."""
        for attempt in range(self._retries + 1):
            response: httpx.Response | None = None
            address, extra = self._shards.straight(call.hashes) or ("", {})
            try:
                url = address + call.path
                response = await self._http.request(call.method, url, content=call.content(), headers=extra)
                if self._shards.wants(response):
                    self._shards.learn(await self._http.get(SHARDS))
            except httpx.TransportError as error:
                self._shards.forget()
                if attempt == self._retries and response is None:
                    raise unreachable(error) from None
            if response is not None and address and self._shards.misdirected(response):
                self._shards.forget()
                continue
            if response is not None and (response.status_code not in RETRIED or attempt == self._retries):
                return call.read(response)
            await asyncio.sleep(pause(attempt, response))
        raise StoreError("the shards of the service do not agree where the user lives")

    async def create_policy(
        self, dim: int, policy: str = "AutoCLUB", **options: Any
    ) -> messages.PolicyAnswer:
        """Make the policy that this client is for.

        Takes and returns the same as `Client.create_policy`.
        """
        return await self._send(self._calls.create_policy(dim, policy, options))

    async def describe(self) -> messages.PolicyAnswer:
        """Describe the policy at a glance.

        Takes and returns the same as `Client.describe`.
        """
        return await self._send(self._calls.describe())

    async def configure(self, **changes: Any) -> messages.PolicyAnswer:
        """Change settings while the policy runs.

        Takes and returns the same as `Client.configure`.
        """
        return await self._send(self._calls.configure(changes))

    async def _perform(self, steps: Steps[T, R]) -> R:
        """Send requests one after another, each of which may depend on answers before."""
        try:
            call = next(steps)
            while True:
                try:
                    answer = await self._send(call)
                except CoterieError as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(answer)
        except StopIteration as end:
            result: R = end.value
            return result

    async def put_items(
        self,
        items: ItemSource,
        *,
        ids: Ids | None = None,
        tags: Mapping[str, Sequence[str]] | None = None,
        replace_all: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Add items to the catalogue, or change their vectors; what is known of an item stays.

        Takes and returns the same as `Client.put_items`.
        """
        table = item_table(items, ids=ids, tags=tags)
        return await self._perform(self._calls.put_items(table, replace_all, progress))

    async def list_items(self) -> list[str]:
        """List the ids of the catalogue.

        Returns the same as `Client.list_items`.
        """
        return await self._perform(self._calls.list_items())

    async def remove_items(self, items: Sequence[str]) -> int:
        """Remove items from the catalogue; decisions that chose them still take their rewards.

        Takes and returns the same as `Client.remove_items`.
        """
        return await self._perform(self._calls.remove_items(items))

    async def decide(
        self,
        user: str,
        items: Sequence[str] | None = None,
        *,
        arms: Mapping[str, ArrayLike] | None = None,
        exclude: Sequence[str] | None = None,
        only: str | Sequence[str] | None = None,
        k: int = 1,
        decision_id: str | None = None,
    ) -> messages.DecisionAnswer:
        """Choose an item for a user, or a list of k; a user who was never seen joins.

        Takes and returns the same as `Client.decide`.
        """
        return await self._send(self._calls.decide(user, items, arms, exclude, only, k, decision_id))

    async def reward(
        self, decision_id: str, reward: float, *, part: str | None = None, item: str | None = None
    ) -> messages.RewardAnswer:
        """Give the reward of a decision, or one part of it; the same twice is counted once.

        Takes and returns the same as `Client.reward`.
        """
        one = {"decision_id": decision_id, "reward": reward, "part": part, "item": item}
        return (await self.reward_many([one]))[0]

    async def reward_many(self, rewards: Sequence[Mapping[str, Any]]) -> list[messages.RewardAnswer]:
        """Give many rewards in one request; each has its own result.

        Takes and returns the same as `Client.reward_many`.
        """
        return (await self._send(self._calls.reward(rewards))).results

    async def explain(self, user: str) -> messages.ExplanationAnswer:
        """Explain who a user learns from, and how items score for it.

        Takes and returns the same as `Client.explain`.
        """
        return await self._send(self._calls.explain(user))

    async def history(self, user: str) -> list[messages.UserEventAnswer]:
        """List the latest decisions and rewards of a user.

        Takes and returns the same as `Client.history`.
        """
        return (await self._send(self._calls.history(user))).events

    async def clusters(self) -> list[messages.ClusterAnswer]:
        """List all clusters, the largest first.

        Takes and returns the same as `Client.clusters`.
        """
        return (await self._send(self._calls.clusters())).clusters

    async def outcomes(self) -> messages.OutcomesAnswer:
        """Say what decisions have brought, by hour and by item, and what has collapsed.

        Takes and returns the same as `Client.outcomes`.
        """
        return await self._send(self._calls.outcomes())

    async def create_experiment(
        self, name: str, policies: Mapping[str, float], **options: Any
    ) -> messages.ExperimentAnswer:
        """Begin an experiment: policies share users by a hash of their ids.

        Takes and returns the same as `Client.create_experiment`.
        """
        return await self._send(self._calls.create_experiment(name, policies, options))

    async def experiments(self) -> list[messages.ExperimentAnswer]:
        """List all experiments with their results.

        Takes and returns the same as `Client.experiments`.
        """
        return (await self._send(self._calls.experiments())).experiments

    async def describe_experiment(self, name: str) -> messages.ExperimentAnswer:
        """Return the results of an experiment so far.

        Takes and returns the same as `Client.describe_experiment`.
        """
        return await self._send(self._calls.describe_experiment(name))

    async def stop_experiment(self, name: str, keep: str) -> messages.ExperimentAnswer:
        """End an experiment; one policy decides for all users from then on.

        Takes and returns the same as `Client.stop_experiment`.
        """
        return await self._send(self._calls.stop_experiment(name, keep))

    async def remove_user(self, user: str) -> None:
        """Forget a user: id, history and statistics.

        Takes and returns the same as `Client.remove_user`.
        """
        await self._send(self._calls.remove_user(user))

    async def close(self) -> None:
        """Close the connections; the client cannot be used after."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        """Close at the end of a `with` block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.close()
