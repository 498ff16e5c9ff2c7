"""Everything that requests can make grow has a limit, and what is over it is refused or forgotten."""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie import StoreError
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import LivePolicy
from coterie.service.limits import LIMITED, Limits
from coterie.service.settings import PolicySettings
from coterie.service.storage.sqlite import SQLiteStore
from inspection import live_of
from service.shops import ITEMS, shop
from service.test_connections import HEAD, MEGABYTE, Running
from service.test_serve import server_process

DIM = 64
LONG = "\N{GRINNING FACE}" * 250
"""An id of 1,000 bytes, to which a number is added."""


@contextmanager
def engine_with(path: Path, limits: Limits, **options: Any) -> Iterator[tuple[PolicyEngine, LivePolicy]]:
    """An engine on a file with one policy."""
    engine = PolicyEngine(SQLiteStore(path), limits=limits)
    settings = PolicySettings(dim=2, policy="LinUCBInd", **options)
    yield engine, engine.settle(engine.create("default", settings))
    engine.close(snapshot=False)


OFFERS = """
import sys, tracemalloc
import numpy as np
from coterie.service.core.engine import PolicyEngine
from coterie.service.settings import PolicySettings
from coterie.service.storage.sqlite import SQLiteStore

engine = PolicyEngine(SQLiteStore(sys.argv[1]))
live = engine.settle(engine.create("default", PolicySettings(dim=2, policy="LinUCBInd", log_offers="all")))
offer = np.random.default_rng(0).normal(size=(1_000, 2))
engine.settle(live.decide("alice", arms=offer))
tracemalloc.start()
for number in range(200):  # 5 MB of arms and their ids
    engine.settle(live.decide("alice", arms=offer, decision_id=f"d{number}"))
    engine.settle(live.reward(f"d{number}", 1.0))
taken, _ = tracemalloc.get_traced_memory()
assert engine.settle(live.decide("alice", arms=offer, decision_id="d0")).id == "d0"
assert engine.settle(live.reward("d0", 1.0)).status == "duplicate"
engine.close(snapshot=False)
print(taken)
"""


def test_what_was_offered_is_not_kept_in_memory(tmp_path: Path) -> None:
    # In a process of its own: threads that earlier tests left take memory, too.
    words = [sys.executable, "-c", OFFERS, str(tmp_path / "a.db")]
    assert int(subprocess.run(words, check=True, capture_output=True).stdout) < MEGABYTE


def test_timers_of_settled_decisions_go_before_their_time() -> None:
    one = shop(reward_wait=86_400.0)
    for number in range(3_000):
        one.decide("alice", ["tea"], decision_id=f"d{number}")
        one.reward(f"d{number}", 1.0)
    one.decide("alice", ["tea"])
    state = live_of(one).state
    assert len(state.waiting) == 1
    assert len(state.timers) < 1_100
    assert state.waiting_bytes < 2_000
    one.close()


TIMERS = """
from pathlib import Path
from coterie.service.core.state import PolicyState, Waiting
from coterie.service.settings import PolicySettings
from coterie.service.storage.event_store import REWARD, Event, detail

state = PolicyState(PolicySettings(dim=2, policy="LinUCBInd"))
ignored = detail(ignored=True)
before = int(Path("/proc/self/statm").read_text().split()[1])
for n in range(100_000):
    state.start_waiting(f"decision-{n}", Waiting("alice", ("tea",), bytes(16), float(n), False))
    state.apply(Event(n + 1, "default", REWARD, 0.0, f"decision-{n}", "alice", reward=1.0, detail=ignored))
print(int(Path("/proc/self/statm").read_text().split()[1]) - before)
"""


def test_the_timers_of_100_000_settled_decisions_take_no_memory() -> None:
    done = subprocess.run([sys.executable, "-c", TIMERS], check=True, capture_output=True)
    assert int(done.stdout) * resource.getpagesize() < 4 * MEGABYTE  # 190 bytes each would be 19 MB


def test_users_and_items_have_limits(tmp_path: Path) -> None:
    with engine_with(tmp_path / "a.db", Limits(user_limit=3, item_limit=3)) as (engine, live):
        live.change_items(ITEMS)
        with pytest.raises(StoreError, match=r"limit of 3 items of a catalogue is reached \(item_limit\)"):
            live.change_items({"milk": [0.5, 0.5]})
        live.change_items({"tea": [0.5, 0.5]})
        for user in ("alice", "bob", "eve", "alice"):
            engine.settle(live.decide(user))
        for _ in range(2):
            with pytest.raises(StoreError, match=r"limit of 3 users of a policy is reached \(user_limit\)"):
                live.decide("mallory")
        with pytest.raises(StoreError, match="limit of 3 users of a policy"):
            live.feedback("mallory", 1.0, item="tea")
        with pytest.raises(StoreError, match="limit of 3 users of a policy"):
            engine.create("other", PolicySettings(dim=2, users=("a", "b", "c", "d")))
        assert live.state.users.ids == ("alice", "bob", "eve")
        assert engine.lifecycle.serving
        assert live.lifecycle.serving


def test_waiting_decisions_have_a_limit(tmp_path: Path) -> None:
    with engine_with(tmp_path / "a.db", Limits(waiting_limit=1_500)) as (engine, live):
        live.change_items(ITEMS)
        first = engine.settle(live.decide("alice"))
        live.decide("alice")
        with pytest.raises(StoreError, match="limit of 1500 bytes of decisions that wait for a reward"):
            live.decide("alice")
        live.reward(first.id, 1.0)
        live.decide("alice")


def test_a_program_that_is_faster_than_its_store_waits_for_it(tmp_path: Path) -> None:
    with engine_with(tmp_path / "a.db", Limits(queue_limit=10_000)) as (engine, live):
        live.change_items(ITEMS)
        for _ in range(100):  # nobody waits for a commit
            live.decide("alice")
            assert engine.journal.queued_bytes < 11_000
        engine.wait()
        assert engine.journal.queued_bytes == 0


# A server process, whose memory is measured.


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    options = ["--dim", str(DIM), "--policy", "LinUCBInd", "--log-level", "error", "--policy-limit", "2"]
    options += [
        "--user-limit",
        "50",
        "--item-limit",
        "1000",
        "--known-item-limit",
        "1500",
        "--batch-limit",
        "100",
    ]
    options += ["--waiting-limit", str(2 * MEGABYTE)]
    with server_process(tmp_path_factory.mktemp("memory"), *options) as (url, process):
        running = Running(url, process)
        post(running, "decisions", user="alice", arms=offered(1)).raise_for_status()
        httpx.get(f"{url}/metrics", trust_env=False).raise_for_status()
        yield running


def offered(count: int, name: str = "") -> list[dict[str, Any]]:
    return [{"id": f"{name}{n}", "x": [1.0] * DIM} for n in range(count)]


def post(server: Running, route: str, **body: Any) -> httpx.Response:
    where = f"{server.url}/v1/policies/default/{route}"
    return httpx.post(where, json=body, trust_env=False, timeout=30)


def assert_reached(server: Running, limit: str, refused: httpx.Response, sentence: str) -> None:
    """The refusal names the limit, and is counted."""
    assert sentence in refused.json()["detail"]
    assert f"({limit}_limit)" in refused.json()["detail"]
    assert server.metric(f'coterie_limited_total{{limit="{limit}"}}') >= 1


def test_every_limit_is_shown_with_what_is_used_of_it(server: Running) -> None:
    reported = httpx.get(f"{server.url}/metrics", trust_env=False).text
    for name in LIMITED:
        assert f'coterie_limit{{limit="{name}"}} ' in reported
        assert f'coterie_limited_total{{limit="{name}"}} ' in reported
        if name not in ("arms", "batch", "body", "head"):  # these are of one request
            assert f'coterie_limit_used{{limit="{name}"' in reported
    assert 'coterie_limit{limit="user"} 50\n' in reported
    assert 'coterie_limit_used{limit="user",policy="default"} 1\n' in reported


def test_users_beyond_their_limit_take_no_memory(server: Running) -> None:
    before, statuses = server.memory(), []
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        for number in range(400):  # 66 kB each
            body = {"user": f"user-{number}", "arms": offered(1)}
            answer = client.post("/v1/policies/default/decisions", json=body)
            statuses.append(answer.status_code)
    assert statuses == [200] * 49 + [503] * 351
    assert_reached(server, "user", answer, "the limit of 50 users of a policy is reached")
    assert server.metric('coterie_limit_used{limit="user",policy="default"}') == 50
    assert server.memory() - before < 12 * MEGABYTE
    rewards = [{"user": user, "reward": 1.0, "x": [1.0] * DIM} for user in ("alice", "new", "user-1")]
    mixed = post(server, "rewards", rewards=rewards)
    assert [one["status"] for one in mixed.json()["results"]] == ["counted", "refused", "counted"]


def test_items_beyond_their_limits_take_no_memory(server: Running) -> None:
    def change(method: str, items: list[dict[str, Any]]) -> httpx.Response:
        where = f"{server.url}/v1/policies/default/items"
        return httpx.request(method, where, json={"items": items}, trust_env=False, timeout=30)

    kept = offered(600, LONG)
    change("PUT", kept).raise_for_status()
    before = server.memory()
    for attempt in range(20):  # 600 kB of ids each
        assert change("PUT", kept[attempt:] + kept[:attempt]).status_code == 200
        beyond = change("PATCH", offered(600, f"{LONG}b"))
        assert beyond.status_code == 503
        unknown = change("PUT", offered(950, f"{LONG}{attempt}-"))
        assert unknown.status_code == 503
    assert_reached(server, "item", beyond, "the limit of 1000 items of a catalogue is reached")
    assert_reached(server, "known_item", unknown, "the limit of 1500 items that a policy knows")
    assert server.metric('coterie_limit_used{limit="item",policy="default"}') == 600
    statuses = []
    for number in range(15):  # rewards may name items that are in no catalogue
        rewards = [
            {"user": "alice", "reward": 1.0, "x": [1.0] * DIM, "item": f"{LONG}{number}c{n}"}
            for n in range(100)
        ]
        found = post(server, "rewards", rewards=rewards).json()["results"]
        statuses.append({one["status"] for one in found})
    assert "counted" in statuses[0]
    assert statuses[14] == {"refused"}
    assert server.memory() - before < 12 * MEGABYTE


def test_answers_that_nobody_reads_do_not_pile_up(server: Running) -> None:
    where = f"{server.url}/v1/policies/default/items"
    httpx.put(where, json={"items": offered(300, LONG)}, trust_env=False).raise_for_status()
    asked = {"user": "alice", "k": 300, "decision_id": "long"}
    post(server, "decisions", **asked).raise_for_status()
    body = json.dumps(asked).encode()
    request = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    before = server.memory()
    with server.connect() as connection:
        connection.settimeout(0.5)
        for _ in range(60):  # a repeat of the same decision: 600 kB of answer each
            connection.sendall(request)
            time.sleep(0.01)
        assert server.memory() - before < 12 * MEGABYTE
    post(server, "rewards", rewards=[{"decision_id": "long", "reward": 0.0}]).raise_for_status()


def test_waiting_decisions_beyond_their_limit_take_no_memory(server: Running) -> None:
    before, statuses = server.memory(), []
    for _ in range(80):  # 160 kB each
        answer = post(server, "decisions", user="alice", arms=offered(60, LONG), k=60)
        statuses.append(answer.status_code)
    assert 10 < statuses.count(200) < 20
    assert statuses == [200] * statuses.count(200) + [503] * statuses.count(503)
    assert_reached(server, "waiting", answer, "bytes of decisions that wait for a reward is reached")
    used = server.metric('coterie_limit_used{limit="waiting",policy="default"}')
    assert 2 * MEGABYTE <= used < 2.3 * MEGABYTE
    assert server.memory() - before < 10 * MEGABYTE


def test_batches_and_policies_have_limits(server: Running) -> None:
    before = server.memory()
    rewards = [{"decision_id": f"decision-{number}", "reward": 1.0} for number in range(80_000)]
    refused = post(server, "rewards", rewards=rewards)
    assert refused.status_code == 422
    assert_reached(server, "batch", refused, "the limit of 100 rewards of a request is reached")
    assert server.memory() - before < 60 * MEGABYTE  # the body, decoded, until it is refused
    for name in ("b", "c"):
        body = {"name": name, "dim": 2}
        refused = httpx.post(f"{server.url}/v1/policies", json=body, trust_env=False)
    assert refused.status_code == 503
    assert_reached(server, "policy", refused, "the limit of 2 policies is reached")


def test_events_that_wait_for_a_slow_store_have_a_limit(tmp_path: Path) -> None:
    options = ("--dim", str(DIM), "--queue-limit", str(MEGABYTE // 2), "--log-level", "error")
    body = json.dumps({"user": "alice", "arms": offered(100, LONG), "k": 100}).encode()  # 150 kB
    headers = {"Content-Type": "application/json"}
    with (
        server_process(tmp_path, *options) as (url, process),
        httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as client,
    ):
        server = Running(url, process)

        def ask(_: int) -> httpx.Response:
            return client.post("/v1/policies/default/decisions", content=body)

        ask(0).raise_for_status()
        before = server.memory()
        with closing(sqlite3.connect(tmp_path / "coterie.db")) as other, ThreadPoolExecutor(8) as pool:
            other.execute("BEGIN IMMEDIATE")  # commits of the service wait for this one
            first = [pool.submit(ask, n) for n in range(8)]
            while server.metric('coterie_limit_used{limit="queue"}') < MEGABYTE // 2:
                time.sleep(0.05)
            refused = [ask(n) for n in range(50)]
            assert {one.status_code for one in refused} == {503}
            assert_reached(server, "queue", refused[0], "events that the store has not confirmed is reached")
            assert server.memory() - before < 12 * MEGABYTE
            other.rollback()
            assert {one.result().status_code for one in first} <= {200, 503}
            assert 200 in {one.result().status_code for one in first}
        assert ask(0).status_code == 200


def test_a_policy_without_memory_for_more_users_serves_those_it_has(tmp_path: Path) -> None:
    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (800 * MEGABYTE, 800 * MEGABYTE))

    options = ("--dim", "2", "--log-level", "error")
    with (
        server_process(tmp_path, *options, prepare=little_memory) as (url, _),
        httpx.Client(base_url=url, trust_env=False, timeout=60) as client,
    ):
        large = {"name": "large", "dim": 300, "policy": "LinUCBInd"}
        client.post("/v1/policies", json=large).raise_for_status()
        arms = [{"id": "a", "x": [1.0] + [0.0] * 299}]
        for number in range(2_000):  # 1.4 MB each
            refused = client.post(
                "/v1/policies/large/decisions", json={"user": f"user-{number}", "arms": arms}
            )
            if refused.status_code != 200:
                break
        assert refused.status_code == 503
        assert "not enough memory for one more user of policy 'large'" in refused.json()["detail"]
        for user in ("user-0", "new"):
            small = {"user": user, "arms": [{"id": "a", "x": [1.0, 0.0]}]}
            assert client.post("/v1/policies/default/decisions", json=small).status_code == 200
        known = client.post("/v1/policies/large/decisions", json={"user": "user-0", "arms": arms})
        assert known.status_code == 200
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()["warnings"]) == (200, [])
