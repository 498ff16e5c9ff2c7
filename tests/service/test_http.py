from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from coterie import ArgumentError, Conflict, StoreError, UnknownName
from coterie.service.client import AsyncClient, Client
from coterie.service.http.api_keys import FRESH, create_key, revoke_key
from coterie.service.http.openapi import plain_path
from coterie.service.http.routes import ROUTES
from inspection import connection_of, keep_house_every
from service.serving import LossyProxy, Served, served
from service.shops import ITEMS

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(str(tmp_path / "store.db"), dim=2) as one:
        yield one


@pytest.fixture
def client(service: Served) -> Iterator[Client]:
    with Client(service.url) as one:
        one.put_items(ITEMS)
        yield one


@pytest.fixture
def http(service: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, trust_env=False) as one:
        yield one


def test_decide_reward_and_look(client: Client) -> None:
    decision = client.decide("alice", ["tea", "coffee"])
    assert decision.chosen in ITEMS
    assert decision.ranking is None
    assert client.reward(decision.decision_id, 1.0).status == "counted"
    assert client.reward(decision.decision_id, 1.0).status == "duplicate"
    with pytest.raises(Conflict, match="was settled with reward 1"):
        client.reward(decision.decision_id, 0.0)
    with pytest.raises(UnknownName, match="no decision 'nothing'"):
        client.reward("nothing", 0.0)
    reported = client.describe()
    assert (reported.users, reported.rounds, reported.items, reported.waiting) == (1, 1, 3, 0)
    assert client.explain("alice").rewards == 1
    assert [one.kind for one in client.history("alice")] == ["decision", "reward"]
    assert client.clusters()[0].first_user == "alice"


def test_a_repeated_decision_gets_the_first_answer_and_another_body_409(client: Client) -> None:
    first = client.decide("alice", decision_id="d1")
    assert client.decide("alice", decision_id="d1") == first
    with pytest.raises(Conflict):
        client.decide("bob", decision_id="d1")


def test_each_element_of_a_batch_has_its_own_result(client: Client, http: httpx.Client) -> None:
    decision = client.decide("alice", ["tea"])
    answer = http.post(
        "/v1/policies/default/rewards",
        json={
            "rewards": [
                {"decision_id": decision.decision_id, "reward": 1},
                {"decision_id": decision.decision_id, "reward": 1},
                {"decision_id": decision.decision_id, "reward": 0},
                {"decision_id": "nothing", "reward": 0},
                {"user": "bob", "item": "tea", "reward": 1, "id": "f1"},
                {"user": "bob", "reward": 1},
                {"reward": 1},
            ]
        },
    )
    assert answer.status_code == 207
    results = answer.json()["results"]
    assert [one["code"] for one in results] == [200, 200, 409, 404, 200, 422, 422]
    assert [one["status"] for one in results[:2]] == ["counted", "duplicate"]
    assert client.describe().rounds == 2


def test_lists_inline_arms_and_users_with_slashes(client: Client) -> None:
    decision = client.decide("a/b/c d?e#f", arms={"x": np.ones(2), "<b>": [0.1, 0.2]}, k=2)
    assert sorted(decision.ranking or []) == ["<b>", "x"]
    assert client.explain("a/b/c d?e#f").user == "a/b/c d?e#f"
    client.remove_user("a/b/c d?e#f")
    with pytest.raises(UnknownName, match="no user"):
        client.remove_user("a/b/c d?e#f")


def test_policies_are_made_changed_and_retired(service: Served) -> None:
    with Client(service.url, "shop-2") as client:
        made = client.create_policy(3, "CLUB", params={"alpha": 1.0, "beta": 0.1}, uniform_share=0.5)
        assert made.settings["params"] == {"alpha": 1.0, "beta": 0.1}
        assert client.configure(mode="frozen", reward_wait=None).settings["mode"] == "frozen"
        with pytest.raises(ArgumentError, match="uniform_share"):
            client.configure(uniform_share=2)
        with pytest.raises(Conflict, match="there is, or was, a policy 'shop-2'"):
            client.create_policy(3)
        with (
            Client(service.url, "other") as other,
            pytest.raises(ArgumentError, match="no policy 'CLUP'; did you mean 'CLUB'"),
        ):
            other.create_policy(3, "CLUP")
        httpx.delete(f"{service.url}/v1/policies/shop-2", trust_env=False).raise_for_status()
        with pytest.raises(UnknownName, match="no policy 'shop-2'"):
            client.describe()


def test_asyncio_clients_decide_at_the_same_time(service: Served, client: Client) -> None:
    async def serve() -> int:
        async with AsyncClient(service.url) as one:
            decisions = await asyncio.gather(*(one.decide(f"u{n}") for n in range(50)))
            await asyncio.gather(*(one.reward(decision.decision_id, 1.0) for decision in decisions))
            return (await one.describe()).rounds

    commits = service.engine.journal.commits
    assert asyncio.run(serve()) == 50
    assert service.engine.journal.commits - commits < 100


def test_answers_that_are_lost_are_asked_for_again_and_count_once(service: Served, client: Client) -> None:
    proxy = LossyProxy(service.url)
    with Client(proxy.url, retries=8) as lossy:
        for n in range(20):
            decision = lossy.decide(f"u{n % 4}")
            lossy.reward(decision.decision_id, float(n % 2))
            lossy.reward_many([{"user": "u0", "item": "tea", "reward": 0.5}])
    proxy.close()
    assert proxy.cut >= 20
    reported = client.describe()
    assert reported.rounds == 40
    assert reported.events["decision"] == 20
    assert reported.waiting == 0


def test_a_store_that_fails_answers_503_and_nothing_is_counted(
    service: Served, client: Client, http: httpx.Client
) -> None:
    store: Any = service.engine.store
    keep_house_every(service.engine, 3600)
    client.decide("alice")
    connection_of(store).close()
    answer = http.post("/v1/policies/default/decisions", json={"user": "alice"})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["content-type"] == "application/problem+json"
    assert http.get("/health/ready").status_code == 503
    assert http.get("/health/live").status_code == 200
    service.engine.recover()
    assert http.get("/health/ready").status_code == 200
    assert client.describe().events["decision"] == 1


def test_keys_open_what_their_role_and_policy_allow(service: Served, http: httpx.Client) -> None:
    store = service.engine.store

    def status(key: str | None, method: str, path: str, **body: Any) -> int:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return http.request(method, path, headers=headers, **body).status_code

    decide = ("POST", "/v1/policies/default/decisions")
    arms = {"user": "u", "arms": [{"id": "a", "x": [1, 0]}]}
    assert status(None, *decide, json=arms) == 200
    keys = service.engine.journal.run(
        lambda: (
            {role: create_key(store, role) for role in ("reader", "writer", "admin")}
            | {"other": create_key(store, "admin", policy="other")}
        )
    )
    threading.Event().wait(FRESH + 0.1)
    assert status(None, *decide, json=arms) == 401
    assert status("ck_wrong_key", *decide, json=arms) == 401
    assert [status(keys[one], *decide, json=arms) for one in keys] == [403, 200, 200, 403]
    assert [status(keys[one], "GET", "/v1/policies/default") for one in keys] == [200, 200, 200, 403]
    assert [status(keys[one], "DELETE", "/v1/policies/default/users/v") for one in keys] == [
        403,
        403,
        404,
        403,
    ]
    listed = http.get("/v1/policies", headers={"Authorization": f"Bearer {keys['other']}"})
    assert listed.json() == {"policies": [], "failed": []}  # none but its own, which is not there
    assert status(None, "GET", "/health/live") == 200
    assert status(None, "GET", "/metrics") == 401
    digests = str(store.query("SELECT * FROM key"))
    assert all(key.split("_", 2)[2] not in digests for key in keys.values())
    service.engine.journal.run(lambda: revoke_key(store, keys["writer"].split("_")[1]))
    threading.Event().wait(FRESH + 0.1)
    assert status(keys["writer"], *decide, json=arms) == 401


BAD: list[tuple[str, str, bytes, int, str]] = [
    ("POST", "/v1/policies/default/decisions", b"{", 400, "the body is not JSON"),
    ("POST", "/v1/policies/default/decisions", b"[]", 422, "expected object, got array"),
    ("POST", "/v1/policies/default/decisions", b"{}", 422, "missing required field user"),
    ("POST", "/v1/policies/default/decisions", b'{"user": 7}', 422, "user: expected str, got int"),
    (
        "POST",
        "/v1/policies/default/decisions",
        b'{"user": "", "k": 1}',
        422,
        "user: expected str of length >= 1",
    ),
    ("POST", "/v1/policies/default/decisions", b'{"user": "a", "k": 0}', 422, "k: expected int >= 1"),
    ("POST", "/v1/policies/default/decisions", b'{"user": "a", "kk": 0}', 422, "unknown field kk"),
    (
        "POST",
        "/v1/policies/default/decisions",
        b'{"user": "a"}',
        422,
        "the catalogue of this policy is empty: put",
    ),
    (
        "POST",
        "/v1/policies/default/decisions",
        b'{"user": "a", "arms": [{"id": "b", "x": [1, "2"]}]}',
        422,
        r"arms[0].x[1]: expected float, got str",
    ),
    (
        "POST",
        "/v1/policies/default/decisions",
        b'{"user": "a", "arms": [{"id": "b", "x": [1]}, {"id": "c", "x": [1, 2]}]}',
        422,
        "arms must have vectors of one length",
    ),
    (
        "POST",
        "/v1/policies/default/decisions",
        b'{"user": "a", "arms": [{"id": "b", "x": [1, 2]}, {"id": "b", "x": [1, 2]}]}',
        422,
        "arms must name each id once",
    ),
    (
        "POST",
        "/v1/policies/default/decisions",
        b'{"user": "a", "arms": [{"id": "b", "x": [1]}]}',
        422,
        "shape",
    ),
    (
        "POST",
        "/v1/policies/default/rewards",
        b'{"rewards": []}',
        422,
        "rewards: expected array of length >= 1",
    ),
    ("POST", "/v1/policies/default/rewards", b'{"rewards": [{"reward": null}]}', 422, "rewards[0].reward"),
    (
        "POST",
        "/v1/policies/default/rewards",
        b'{"rewards": [{"reward": 1}]}',
        422,
        "needs a decision_id, or a user",
    ),
    ("POST", "/v1/policies", b'{"name": "../x", "dim": 2}', 422, "name: expected str matching regex"),
    ("POST", "/v1/policies", b'{"name": "x", "dim": 0}', 422, "dim: expected int >= 1"),
    (
        "POST",
        "/v1/policies",
        b'{"name": "x", "dim": 2, "params": {"a": 1}}',
        422,
        "no parameter of AutoCLUB: 'a'",
    ),
    ("POST", "/v1/policies", b'{"name": "x", "dim": 2, "policy": "os:system"}', 422, "no policy 'os:system'"),
    ("PATCH", "/v1/policies/default", b'{"mode": "off"}', 422, "mode: invalid enum value 'off'"),
    ("PUT", "/v1/policies/default/items", b'{"items": [{"id": "a", "x": [1, 2, 3]}]}', 422, "shape"),
    ("DELETE", "/v1/policies/default/items", b"", 422, "name 1 to 10000 items in the query"),
    ("DELETE", "/v1/policies/default/items?id=milk", b"", 404, "no item 'milk'"),
    ("GET", "/v1/policies/default/users?limit=-1", b"", 422, "limit must be a whole number from 0 to 10000"),
    ("GET", "/v1/policies/default/clusters/7", b"", 404, "no cluster 7"),
    ("GET", "/v1/policies/default/export?format=xml", b"", 422, "format must be jsonl or parquet"),
    (
        "POST",
        "/v1/policies/default/import",
        b'{"user": 1}',
        422,
        "line 1: user: expected str, got int",
    ),
    ("GET", "/v1/policies/nothing", b"", 404, "no policy 'nothing'"),
    ("GET", "/nothing", b"", 404, "Not Found"),
    ("PUT", "/v1/policies", b"", 405, "Method Not Allowed"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"), BAD, ids=[bad[4][:50] for bad in BAD]
)
def test_what_cannot_be_used_is_told_as_problem_json(
    http: httpx.Client, method: str, path: str, body: bytes, status: int, sentence: str
) -> None:
    answer = http.request(method, path, content=body, headers={"Content-Type": "application/json"})
    assert answer.headers["content-type"] == "application/problem+json"
    reported = answer.json()
    assert answer.status_code == reported["status"] == status, reported
    assert sentence in reported["detail"]


def test_metrics_tell_what_happened(client: Client, http: httpx.Client) -> None:
    for reward in (1.0, -1.0):  # the greatest reward waits for a second of its size
        client.reward(client.decide("alice").decision_id, reward)
    client.decide("bob", decision_id="d")
    client.decide("bob", decision_id="d")
    text = http.get("/metrics").text
    for line in (
        'coterie_decisions_total{policy="default"} 3',
        'coterie_rewards_total{policy="default"} 2',
        'coterie_duplicates_total{policy="default"} 1',
        'coterie_pending_decisions{policy="default"} 1',
        'coterie_sigma{policy="default"} 1.0',
        'coterie_snapshot_age_events{policy="default"} 7',
        "coterie_decision_seconds_count 4",
        "coterie_up 1",
    ):
        assert line in text.splitlines()
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .*|\w+(\{[^{}]*\})? [-+.e\d]+", line), line


def test_the_log_goes_out_with_propensities_and_comes_in_once(
    service: Served, client: Client, http: httpx.Client
) -> None:
    import polars as pl

    client.configure(uniform_share=0.5)
    for n in range(12):
        client.reward(client.decide(f"u{n % 3}").decision_id, float(n % 2))
    client.put_items({"tea": [0.5, 0.5]})
    lines = http.get("/v1/policies/default/export").content
    rows = [json.loads(line) for line in lines.splitlines()]
    assert len(rows) == 12
    assert rows[0]["x"] == ITEMS[rows[0]["item"]]
    assert {row["catalogue"] for row in rows} == {1}
    items = http.get("/v1/policies/default/export?table=items").content.splitlines()
    tea = [json.loads(line) for line in items if json.loads(line)["id"] == "tea"]
    assert [(row["since"], row["until"], row["x"]) for row in tea] == [
        (1, 2, ITEMS["tea"]),
        (2, None, [0.5, 0.5]),
    ]
    assert all(0 < row["propensity"] <= 1 for row in rows)
    file = http.get("/v1/policies/default/export?format=parquet").content
    assert pl.read_parquet(file)["arms"].to_list() == [row["arms"] for row in rows]
    with Client(service.url, "warm") as warm:
        warm.create_policy(2)
        for expected in ((12, 0), (0, 12)):
            reported = http.post(
                "/v1/policies/warm/import", content=lines, headers={"Content-Type": "application/x-ndjson"}
            ).json()
            assert (reported["counted"], reported["duplicates"]) == expected
        assert warm.describe().rounds == 12
        assert warm.explain("u1").estimate == client.explain("u1").estimate


def test_every_route_is_in_the_document_and_on_a_page(http: httpx.Client) -> None:
    described = http.get("/openapi.json").json()
    page = (DOCS / "how-to" / "service-web-shop.md").read_text(encoding="utf-8")
    for route in ROUTES:
        assert route.method.lower() in described["paths"][plain_path(route.path)]
        assert f"`{route.method} {plain_path(route.path)}`" in page, route.path


def test_a_client_that_finds_nobody_says_so() -> None:
    with (
        Client("http://127.0.0.1:1", retries=1) as client,
        pytest.raises(StoreError, match="cannot be reached"),
    ):
        client.describe()
