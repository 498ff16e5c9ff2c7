"""What a request may hold: bodies, headers, places; more is refused, and memory stays bounded."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie import Client, StoreError, UnknownName
from coterie.service.limits import Limits
from inspection import before_recovery, is_rewriting
from service.serving import Served, served
from service.shops import ITEMS

DECISIONS = "/v1/policies/default/decisions"
PAGE = 4096
JSON = {"Content-Type": "application/json"}


def resident() -> int:
    """Bytes of memory that this process, and the server in it, has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def connected(one: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(one.url.rpartition(":")[2])), timeout=10)


def answered(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """The status and the body of an answer after which the connection is closed."""
    found = b""
    try:
        while piece := connection.recv(65_536):
            found += piece
    except ConnectionResetError:  # there were more bytes than were read
        pass
    head, _, body = found.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    return int(head.split()[1]), json.loads(body)


def test_limits_hold(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), dim=2, limits=Limits(body_limit=2_000, in_flight_limit=1)) as one:
        long = b'{"user": "' + b"x" * 3_000 + b'"}'
        answer = httpx.post(
            f"{one.url}/v1/policies/default/decisions", content=long, headers=JSON, trust_env=False
        )
        assert answer.status_code == 413
        chunks = iter([long[:1500], long[1500:]])
        answer = httpx.post(
            f"{one.url}/v1/policies/default/decisions", content=chunks, headers=JSON, trust_env=False
        )
        assert answer.status_code == 413

        async def crowd() -> set[int]:
            async with httpx.AsyncClient(base_url=one.url, trust_env=False) as client:
                arms = {"arms": [{"id": "a", "x": [1, 0]}]}
                posts = [
                    client.post("/v1/policies/default/decisions", json={"user": f"u{n}", **arms})
                    for n in range(20)
                ]
                found = await asyncio.gather(*posts)
                assert all(one.headers["retry-after"] == "1" for one in found if one.status_code == 503)
                return {answer.status_code for answer in found}

        assert asyncio.run(crowd()) == {200, 503}


@pytest.mark.parametrize("request_", [b"GARBAGE\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -4\r\n\r\n"])
def test_what_is_no_request_is_told_as_problem_json(tmp_path: Path, request_: bytes) -> None:
    with served(str(tmp_path / "a.db")) as one, connected(one) as connection:
        connection.sendall(request_)
        status, reported = answered(connection)
        assert (status, reported["detail"]) == (400, "this is not an HTTP/1.1 request")


def test_headers_that_do_not_end_are_not_read_on(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db")) as one, connected(one) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        before, sent = resident(), 0
        line = b"X-Long: " + b"a" * 1000 + b"\r\n"
        try:
            for _ in range(100_000):
                sent += connection.send(line)
        except OSError:
            pass
        assert sent < 20 * 2**20
        assert resident() - before < 30 * 2**20
        with connected(one) as other:
            other.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"a" * Limits().head_limit)
            status, reported = answered(other)
            assert (status, reported["detail"]) == (
                431,
                "the limit of 65536 bytes of headers is reached (head_limit)",
            )
        assert httpx.get(f"{one.url}/health/ready", trust_env=False).status_code == 200


def test_bodies_that_are_being_read_have_a_limit_together(tmp_path: Path) -> None:
    lines = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {4 * 2**20}"]
    head = "\r\n".join([f"POST {DECISIONS} HTTP/1.1", *lines, "", ""]).encode()
    with served(str(tmp_path / "a.db"), dim=2, limits=Limits(bodies_limit=20 * 2**20)) as one:
        before = resident()
        held = [connected(one) for _ in range(30)]
        for connection in held:  # all but the last byte of a body
            connection.sendall(head + b" " * 1000)
            connection.settimeout(0.2)
            try:
                connection.sendall(b" " * (4 * 2**20 - 1001))
            except OSError:  # refused meanwhile
                pass
        reported = httpx.get(f"{one.url}/metrics", trust_env=False).text
        assert 'coterie_responses_total{status="503"}' in reported
        assert resident() - before < 80 * 2**20
        for connection in held:
            connection.close()
        for _ in range(100):
            if (
                one.engine.policies
                and "in_flight 1\n" in httpx.get(f"{one.url}/metrics", trust_env=False).text
            ):
                break
            time.sleep(0.05)
        arms = {"user": "u", "arms": [{"id": "a", "x": [1, 0]}]}
        assert httpx.post(one.url + DECISIONS, json=arms, trust_env=False).status_code == 200


def test_a_policy_that_learns_anew_keeps_nobody_else_waiting(tmp_path: Path, monkeypatch: Any) -> None:
    with (
        served(str(tmp_path / "a.db"), dim=2) as one,
        Client(one.url, retries=0) as client,
        Client(one.url) as other,
    ):
        client.put_items(ITEMS)
        client.configure(late="correct", reward_wait=0.0)
        decision = client.decide("alice").decision_id
        one.engine.find("default").expire()
        slow = threading.Event()
        before_recovery(monkeypatch, lambda: slow.wait(60))
        late = threading.Thread(target=other.reward, args=(decision, 1.0))
        late.start()
        while not is_rewriting(one.engine):
            time.sleep(0.01)
        for _ in range(5):
            with pytest.raises(StoreError, match="learning anew from its log; try again soon"):
                client.decide("bob")
            assert httpx.get(f"{one.url}/health/live", trust_env=False).status_code == 200
        assert late.is_alive()
        slow.set()
        late.join()
        client.decide("bob")
        assert [event.reward for event in client.history("alice")] == [None, 1.0]
        monkeypatch.undo()
        client.remove_user("alice")
        assert one.engine.find("default").state.users.ids == ("bob",)


def test_users_of_a_retired_policy_can_be_removed(tmp_path: Path) -> None:
    labels = {"labels": [0, 0]}
    with served(str(tmp_path / "a.db")) as one, Client(one.url, "old", retries=0) as client:
        client.create_policy(2, "LinUCBOracle", params=labels, users=["alice", "bob"])
        client.decide("alice", arms={"a": [1.0, 0.0]})
        httpx.delete(f"{one.url}/v1/policies/old", trust_env=False).raise_for_status()
        client.remove_user("alice")
        assert one.engine.store.history("old", "alice", 1) == []
        assert "alice" not in str(one.engine.store.query("SELECT detail FROM log WHERE policy = 'old'"))
        with pytest.raises(UnknownName, match="no user 'alice'"):
            client.remove_user("alice")
        with Client(one.url, "never") as other, pytest.raises(UnknownName, match="no policy 'never'"):
            other.remove_user("alice")
    with served(str(tmp_path / "a.db")) as one:
        assert list(one.engine.policies) == ["default"]
