"""A store that hangs, and work that takes long, never stop the event loop.

No test measures time: whatever hangs here hangs until the test has seen that the loop answers.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie.service.http import experiment_routes, routes
from coterie.service.http.routes import ROUTES
from coterie.service.limits import Limits
from coterie.service.settings import PolicySettings
from inspection import age_commit, never_keep_house
from service.serving import Served, in_event_loop, served
from service.shops import ITEMS

ONE = "/v1/policies/default"
DECISIONS = f"{ONE}/decisions"
LINE = '{"user": "carol", "reward": 1, "x": [1, 0], "decision_id": "line"}'
NAMES = {
    "{policy}": "default",
    "{user:path}": "alice",
    "{cluster}": "0",
    "{experiment}": "spring",
    "{event}": "event",
}
RIVALS = ("champion", "challenger")
"""The policies of the experiment."""
PERSONALIZER = "/v1/policies/{policy}/personalizer"
BODIES: dict[tuple[str, str], list[Any]] = {
    ("POST", "/v1/policies"): [{"name": "other", "dim": 2}],
    ("PATCH", "/v1/policies/{policy}"): [{"uniform_share": 0.5}],
    ("PUT", "/v1/policies/{policy}/items"): [{"items": [{"id": one, "x": x} for one, x in ITEMS.items()]}],
    ("PATCH", "/v1/policies/{policy}/items"): [{"items": [{"id": "milk", "x": [1, 0]}]}],
    ("POST", "/v1/policies/{policy}/decisions"): [
        {"user": "alice"},
        {"user": "alice", "decision_id": "fresh"},
        {"user": "alice", "decision_id": "known"},
    ],
    ("POST", "/v1/policies/{policy}/rewards"): [
        {"rewards": [{"decision_id": "waiting", "reward": 1}]},
        {"rewards": [{"decision_id": "known", "reward": 1}]},
        {"rewards": [{"decision_id": "unknown", "reward": 1}]},
        {"rewards": [{"decision_id": "overdue", "reward": 1}]},
        {"rewards": [{"user": "alice", "item": "tea", "reward": 1, "id": "feedback"}]},
    ],
    ("POST", "/v1/experiments"): [{"name": "spring", "policies": [{"policy": one} for one in RIVALS]}],
    ("POST", "/v1/experiments/{experiment}/stop"): [{"keep": "champion"}],
    ("POST", "/v1/experiments/{experiment}/decisions"): [
        {"user": "alice"},
        {"user": "alice", "decision_id": "shared"},
        {"user": "alice", "decision_id": "shared"},
    ],
    ("POST", "/v1/experiments/{experiment}/rewards"): [
        {"rewards": [{"decision_id": "shared", "reward": 1}]},
        {"rewards": [{"decision_id": "shared", "reward": 1}]},
        {"rewards": [{"decision_id": "unknown", "reward": 1}]},
    ],
    ("POST", f"{PERSONALIZER}/rank"): [
        {"actions": [{"id": "a"}, {"id": "b"}]},
        {"actions": [{"id": "a"}, {"id": "b"}], "eventId": "event", "deferActivation": True},
    ],
    ("POST", f"{PERSONALIZER}/events/{{event}}/reward"): [{"value": 1}],
    ("POST", f"{PERSONALIZER}/multislot/rank"): [
        {"actions": [{"id": "a"}, {"id": "b"}], "slots": [{"id": "main"}, {"id": "side"}], "eventId": "event"}
    ],
    ("POST", f"{PERSONALIZER}/multislot/events/{{event}}/reward"): [
        {"reward": [{"slotId": "main", "value": 1}]}
    ],
}
"""Bodies for routes that take one; ids that a client gives have to be looked up."""
QUERIES = {"/v1/policies/{policy}/items": "?id=milk"}
LAST = [routes.retire_policy, routes.remove_user, routes.delete_items, experiment_routes.stop_experiment]
"""Handlers after which others have nothing to answer with, the last one first."""
PATIENT = 60.0
"""Seconds after which a request of a test fails: if the loop waits, it waits until then."""


class Asked:
    """Sends every request of the service there is."""

    def __init__(self, one: Served) -> None:
        live = one.engine.find("default")
        live.change_items(ITEMS)
        for name in ("known", "waiting"):
            one.engine.settle(live.decide("alice", decision_id=name))
        one.engine.settle(live.reward("known", 1.0))
        live.configure(reward_wait=0.0)
        one.engine.settle(live.decide("alice", decision_id="overdue"))
        live.configure(reward_wait=None)
        for name in RIVALS:
            rival = one.engine.settle(one.engine.create(name, PolicySettings(dim=2)))
            one.engine.settle(rival.change_items(ITEMS))
        self._url = one.url

    def requests(self) -> Iterator[Callable[[], int]]:
        """Functions that send one request each, in an order in which each of them finds something."""
        for route in sorted(ROUTES, key=lambda one: [one.handler is last for last in LAST]):
            path = route.path
            for mark, name in NAMES.items():
                path = path.replace(mark, name)
            path += QUERIES.get(route.path, "") if route.method == "DELETE" else ""
            for body in BODIES.get((route.method, route.path), [None]):
                yield partial(self._send, route.method, path, body)

    def _send(self, method: str, path: str, body: Any) -> int:
        if path.endswith(("/decisions", "/rewards")):
            return self._send_at_once(path, json.dumps(body).encode())
        content: dict[str, Any] = {} if body is None else {"json": body}
        if path.endswith("/import"):
            content = {"content": LINE, "headers": {"Content-Type": "application/x-ndjson"}}
        with httpx.stream(method, self._url + path, trust_env=False, timeout=PATIENT, **content) as answer:
            if not path.endswith("/live") or path.startswith("/health"):  # the stream of the page has no end
                answer.read()
            return answer.status_code

    def _send_at_once(self, path: str, body: bytes) -> int:
        """Send a request in one piece, as the fast path takes it; httpx sends head and body apart."""
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode()
        port = int(self._url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENT) as connection:
            connection.sendall(head + body)
            return int(connection.recv(65_536).split()[1])


def request_threads_only(call: Callable[..., Any], meanwhile: Callable[[], object]) -> Callable[..., Any]:
    """A method of a store before which something is done, unless housekeeping or keys call it."""

    def called(*arguments: Any, **options: Any) -> Any:
        if threading.current_thread().name not in ("coterie-keys", "coterie-housekeeping"):
            meanwhile()
        return call(*arguments, **options)

    return called


def test_no_request_asks_the_store_in_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_loop: list[bool] = []
    never_keep_house(monkeypatch)  # what is overdue is found to be so by its reward
    with served(str(tmp_path / "a.db"), dim=2) as one:
        asked = Asked(one)
        for name in ("query", "fetch", "execute"):
            noted = request_threads_only(
                getattr(one.engine.store, name),
                lambda: in_loop.append(in_event_loop()),
            )
            monkeypatch.setattr(one.engine.store, name, noted)
        statuses = [send() for send in asked.requests()]
    assert set(statuses) <= {200, 201, 204, 404}
    assert statuses.count(404) == 2  # of the unknown decision, of the policy and of the experiment
    assert len(in_loop) > 30
    assert not any(in_loop)


@pytest.mark.parametrize("what", ["query", "append"])
def test_the_loop_answers_while_a_query_of_any_route_hangs(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = threading.Event(), threading.Event()
    hung = 0

    def hang() -> None:
        reached.set()
        go_on.wait()

    with (
        served(str(tmp_path / "a.db"), dim=2) as one,
        httpx.Client(base_url=one.url, trust_env=False, timeout=PATIENT) as http,
    ):
        asked = Asked(one)
        monkeypatch.setattr(
            one.engine.store, what, request_threads_only(getattr(one.engine.store, what), hang)
        )
        try:
            for send in asked.requests():
                reached.clear()
                go_on.clear()
                sending = threading.Thread(target=send)
                sending.start()
                while sending.is_alive() and not reached.wait(0.01):
                    pass
                hung += reached.is_set()
                assert http.get("/health/live").status_code == 200
                go_on.set()
                sending.join()
        finally:
            go_on.set()
    assert hung >= 8


def test_a_commit_that_hangs_gets_503_and_the_service_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "STALLED", 90.0)  # far more than this test takes
    with (
        served(str(tmp_path / "a.db"), dim=2, limits=Limits(commit_timeout=1)) as one,
        httpx.Client(base_url=one.url, trust_env=False, timeout=PATIENT) as http,
    ):
        one.engine.settle(one.engine.find("default").change_items(ITEMS))
        assert http.post(DECISIONS, json={"user": "alice"}).status_code == 200
        assert http.get("/health/ready").json()["uncommitted_seconds"] == 0.0
        append, reached, go_on = one.engine.store.append, threading.Event(), threading.Event()

        def hang(events: Sequence[Any]) -> None:
            reached.set()
            go_on.wait()
            append(events)

        monkeypatch.setattr(one.engine.store, "append", hang)
        answers: list[httpx.Response] = []
        bob = {"user": "bob", "decision_id": "d1"}

        def decide() -> None:
            answers.append(httpx.post(one.url + DECISIONS, json=bob, trust_env=False, timeout=PATIENT))

        deciding = threading.Thread(target=decide)
        deciding.start()
        reached.wait()
        try:
            age_commit(one.engine, 3.0)
            waits = http.get("/health/ready")
            age_commit(one.engine, 100.0)
            refused = http.get("/health/ready")
            assert http.get("/health/live").status_code == 200
            deciding.join()
        finally:
            go_on.set()
        assert waits.status_code == 200
        assert waits.json()["uncommitted_seconds"] >= 3.0
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert re.fullmatch(
            r"the store does not answer: an event has waited 1\d\d\.\d s for its commit",
            refused.json()["detail"],
        )
        assert answers[0].status_code == 503
        assert "it may still be counted; send it again with the same id" in answers[0].json()["detail"]
        again = http.post(DECISIONS, json=bob)
        assert (again.status_code, again.json()["decision_id"]) == (200, "d1")
        ready = http.get("/health/ready")
        assert (ready.status_code, ready.json()["uncommitted_seconds"]) == (200, 0.0)


def test_the_event_loop_does_not_wait_for_a_thread_that_has_the_state(tmp_path: Path) -> None:
    with (
        served(str(tmp_path / "a.db"), dim=2) as one,
        httpx.Client(base_url=one.url, trust_env=False, timeout=PATIENT) as http,
    ):
        asked = Asked(one)
        one.engine.requests.patience = -1  # so that whoever waits for the state waits until this test lets go
        with one.engine.requests:
            asking = [threading.Thread(target=send) for send in asked.requests()]
            for thread in asking:
                thread.start()
                assert http.get("/health/live").status_code == 200
        for thread in asking:
            thread.join()
