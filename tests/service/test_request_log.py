"""Requests have ids, lines in the log that name no user, and spans in the trace of whoever sent them."""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie.errors import ArgumentError
from coterie.service.client import Client
from coterie.service.http.request_log import JSONFormatter
from coterie.service.settings import ServerSettings
from optional import need_package
from service.serving import Served, served
from service.shops import ITEMS

DECISIONS = "/v1/policies/default/decisions"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def service() -> Iterator[Served]:
    with served(None, dim=2) as one, Client(one.url) as client:
        client.put_items(ITEMS)
        yield one


def in_one_piece(one: Served, *headers: str) -> str:
    """The answer to a request for a decision that takes the fast path; httpx sends head and body apart."""
    body = b'{"user": "alice"}'
    lines = [f"POST {DECISIONS} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode()
    with socket.create_connection(("127.0.0.1", int(one.url.rpartition(":")[2])), timeout=60) as connection:
        connection.sendall(head + body)
        return connection.recv(65_536).decode()


def test_every_answer_has_an_id_the_one_of_the_request_if_it_is_valid(service: Served) -> None:
    seen = set()
    with httpx.Client(base_url=service.url, trust_env=False) as http:
        for path in ("/health/live", "/v1/policies", "/nowhere", "/"):
            seen.add(http.get(path).headers["x-request-id"])
            assert (
                http.get(path, headers={"X-Request-Id": "cart-7.a_b"}).headers["x-request-id"] == "cart-7.a_b"
            )
        for hostile in ("a" * 65, "a b", '"}', "é"):
            found = http.get("/health/live", headers=[(b"X-Request-Id", hostile.encode())])
            assert found.headers["x-request-id"] not in ("", hostile)
    for _ in range(2):
        (mine,) = [line for line in in_one_piece(service).splitlines() if line.startswith("x-request-id: ")]
        seen.add(mine)
    assert len(seen) == 6
    assert "\r\nx-request-id: cart-8\r\n" in in_one_piece(service, "X-Request-Id: cart-8")


def test_at_debug_each_request_has_a_line_that_names_no_user(
    service: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="coterie.service.http.request_log"):
        in_one_piece(service, "X-Request-Id: fast")
        with httpx.Client(base_url=service.url, trust_env=False) as http:
            http.get("/v1/policies/default/users/alice", headers={"X-Request-Id": "slow"})
            http.get("/v1/policies/default/users/nobody", headers={"X-Request-Id": "missing"})
    lines = [json.loads(JSONFormatter().format(one)) for one in caplog.records if hasattr(one, "fields")]
    assert [
        (one["request_id"], one["method"], one["route"], one["policy"], one["status"]) for one in lines
    ] == [
        ("fast", "POST", "/v1/policies/{policy}/decisions", "default", 200),
        ("slow", "GET", "/v1/policies/{policy}/users/{user:path}", "default", 200),
        ("missing", "GET", "/v1/policies/{policy}/users/{user:path}", "default", 404),
    ]
    assert all(one["level"] == "debug" and 0 < one["seconds"] < 60 for one in lines)
    assert "alice" not in json.dumps(lines)


def test_what_nobody_expected_is_logged_with_the_id_of_its_request(
    service: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(service.engine.find("default"), "decide", fail)
    assert " 500 " in in_one_piece(service, "X-Request-Id: fast")
    slow = httpx.post(
        service.url + DECISIONS, json={"user": "bob"}, headers={"X-Request-Id": "slow"}, trust_env=False
    )
    assert slow.status_code == 500
    lines = [json.loads(JSONFormatter().format(one)) for one in caplog.records if hasattr(one, "fields")]
    assert [one["request_id"] for one in lines] == ["fast", "slow"]
    assert all("ValueError: broken" in one["error"] for one in lines)


def test_each_request_is_a_span_in_the_trace_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = need_package("opentelemetry.trace", distribution="opentelemetry-api")
    written: list[dict[str, Any]] = []

    class Span:
        """Keeps how it ended."""

        def set_status(self, status: Any) -> None:
            written[-1]["error"] = not status.is_ok

        def end(self, end_time: int) -> None:
            written[-1]["end"] = end_time

    class Tracer:
        """Keeps what spans are made with."""

        def start_span(self, name: str, *, context: Any, **options: Any) -> Span:
            parent = trace.get_current_span(context).get_span_context()
            written.append({"name": name, "parent": format(parent.trace_id, "032x"), **options})
            return Span()

    monkeypatch.setattr(trace, "get_tracer", lambda name: Tracer())
    with served(None, dim=2, traces=True) as one, Client(one.url) as client:
        client.put_items(ITEMS)
        written.clear()
        in_one_piece(one, f"traceparent: {PARENT}", "X-Request-Id: fast")
        httpx.get(f"{one.url}/v1/policies/default", headers={"traceparent": PARENT}, trust_env=False)
        httpx.get(f"{one.url}/health/live", trust_env=False)
    assert [(span["name"], span["parent"]) for span in written] == [
        ("POST /v1/policies/{policy}/decisions", PARENT[3:35]),
        ("GET /v1/policies/{policy}", PARENT[3:35]),
        ("GET /health/live", "0" * 32),
    ]
    assert written[0]["attributes"] == {
        "http.request.method": "POST",
        "http.route": "/v1/policies/{policy}/decisions",
        "http.response.status_code": 200,
        "coterie.request_id": "fast",
        "coterie.policy": "default",
    }
    assert all(span["start_time"] < span["end"] for span in written)


def test_the_command_writes_json_lines_of_its_requests(tmp_path: Path) -> None:
    words = [
        "serve",
        "--store",
        str(tmp_path / "a.db"),
        "--port",
        "0",
        "--log-level",
        "debug",
        "--log-format",
        "json",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "coterie", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stderr is not None
        url = ""
        while not url:
            line = process.stderr.readline()
            url = next((word.rstrip(";") for word in line.split() if word.startswith("http://")), "")
        httpx.get(f"{url}/v1/policies", headers={"X-Request-Id": "mine"}, trust_env=False)
        process.send_signal(signal.SIGTERM)
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert process.returncode == 0
    (mine,) = [line for line in lines if line.get("request_id") == "mine"]
    assert mine["message"].startswith("GET /v1/policies 200 in ")
    assert mine["time"].endswith("Z")


def test_another_format_is_refused() -> None:
    with pytest.raises(ArgumentError, match="log_format must be text or json, got 'xml'"):
        ServerSettings(log_format="xml")
