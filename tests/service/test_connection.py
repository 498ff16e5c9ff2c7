"""Requests for decisions and rewards by the byte: whole, in pieces, several at once, and strange ones."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.service.http.admission import Admission
from coterie.service.http.connection import Head, HeadReader
from coterie.service.limits import Limits
from inspection import before_commits
from service.serving import Served, served
from service.shops import ITEMS

PATH = "/v1/policies/default/decisions"
BODY = json.dumps({"user": "alice"}).encode()


def request(body: bytes = BODY, path: str = PATH, **headers: str) -> bytes:
    """The bytes of a request."""
    fields = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **headers,
    }
    lines = [
        f"POST {path} HTTP/1.1",
        *(f"{name.replace('_', '-')}: {text}" for name, text in fields.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(
        str(tmp_path_factory.mktemp("protocol") / "a.db"), dim=2, limits=Limits(body_limit=2_000)
    ) as one:
        one.engine.find("default").change_items(ITEMS)
        yield one


@pytest.fixture
def connection(service: Served) -> Iterator[socket.socket]:
    host, _, port = service.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as one:
        yield one


def answers(connection: socket.socket, count: int) -> list[tuple[int, dict[str, str], bytes]]:
    """So many answers: status, headers and body of each."""
    found: list[tuple[int, dict[str, str], bytes]] = []
    read = b""
    while len(found) < count:
        head, mark, rest = read.partition(b"\r\n\r\n")
        if mark:
            first, *lines = head.decode().split("\r\n")
            headers = {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines}
            length = int(headers["content-length"])
            if len(rest) >= length:
                found.append((int(first.split()[1]), headers, rest[:length]))
                read = rest[length:]
                continue
        piece = connection.recv(65_536)
        assert piece, f"closed after {len(found)} answers"
        read += piece
    assert not read
    return found


def test_a_request_in_one_piece_and_in_many_get_the_same_headers(connection: socket.socket) -> None:
    connection.sendall(request())
    ((status, headers, body),) = answers(connection, 1)
    whole = request()
    for start in range(0, len(whole), 7):
        connection.sendall(whole[start : start + 7])
    ((again, others, text),) = answers(connection, 1)
    assert status == again == 200
    assert set(headers) == set(others)
    assert headers["x-frame-options"] == "DENY"
    assert json.loads(body).keys() == json.loads(text).keys()


def test_requests_that_come_at_once_are_answered_in_order(connection: socket.socket) -> None:
    ids = [f"pipelined-{n}" for n in range(5)]
    bodies = [json.dumps({"user": "bob", "decision_id": one}).encode() for one in ids]
    connection.sendall(b"".join(map(request, bodies)))
    found = answers(connection, 5)
    assert [json.loads(body)["decision_id"] for _, _, body in found] == ids
    for body in bodies:  # one packet each, without waiting for answers
        connection.sendall(request(body))
    assert [json.loads(body)["decision_id"] for _, _, body in answers(connection, 5)] == ids
    connection.sendall(request() + b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n" + request())
    assert [status for status, _, _ in answers(connection, 3)] == [200, 200, 200]


def test_the_connection_is_closed_when_that_is_asked_for(connection: socket.socket) -> None:
    connection.sendall(request(Connection="close"))
    assert answers(connection, 1)[0][0] == 200
    assert connection.recv(1) == b""


def test_a_body_that_is_too_long_is_refused_whole_or_in_pieces(connection: socket.socket) -> None:
    connection.sendall(request(b'"%s"' % (b"x" * 3_000)))
    status, _, body = answers(connection, 1)[0]
    assert (status, json.loads(body)["detail"]) == (
        413,
        "the limit of 2000 bytes of a body is reached (body_limit)",
    )


def test_a_wrong_body_gets_a_sentence(connection: socket.socket) -> None:
    for body, status in ((b"{", 400), (b'{"user": 1}', 422), (b'{"user": "a", "items": ["none"]}', 404)):
        connection.sendall(request(body))
        found, headers, text = answers(connection, 1)[0]
        assert (found, headers["content-type"]) == (status, "application/problem+json")
        assert json.loads(text)["status"] == status
    connection.sendall(request(path="/v1/policies/nobody/decisions"))
    assert answers(connection, 1)[0][0] == 404


@pytest.mark.parametrize(
    "strange",
    [
        request(Transfer_Encoding="chunked"),
        request(Connection="Upgrade", Upgrade="websocket"),
        request(Expect="100-continue"),
        request(content_length="3"),
        request(path="/v1/policies/default/items"),
        request(path="/v1/policies/a%2Fb/decisions"),
        request(path="/v1/policies/default/decisions?k=1"),
        request().replace(b"Host: localhost", b"Content-Length: 3\r\nHost: localhost"),
        request().replace(b"Host: localhost", b"Host: localhost\nX-Bare: line feed"),
        request() + b"x",
        request()[:-1],
        request().replace(b"Host: localhost", b"Host : localhost"),
        request().replace(b"Host: localhost", b" folded"),
        request().replace(b"HTTP/1.1", b"HTTP/1.0"),
        request().replace(b"\r\n", b"\n"),
    ],
)
def test_what_is_not_plainly_one_request_is_left_to_the_parser(strange: bytes) -> None:
    heads = HeadReader(Admission())
    headers = [
        (b"host", b"localhost"),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(BODY)),
    ]
    assert heads.request(request()) == (Head("default", "decisions", headers, len(BODY)), BODY)
    assert heads.request(strange) is None


def test_an_answer_under_way_is_sent_before_the_service_stops(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), dim=2) as one:
        one.engine.find("default").change_items(ITEMS)
        one.engine.wait()
        host, _, port = one.url.removeprefix("http://").partition(":")
        connection = socket.create_connection((host, int(port)), timeout=10)
        committing = threading.Event()

        def wait() -> None:
            committing.set()
            time.sleep(0.5)

        before_commits(one.engine, wait)
        connection.sendall(request())
        assert committing.wait(10)
    with connection:
        assert answers(connection, 1)[0][0] == 200
        assert connection.recv(1) == b""


def test_a_connection_is_closed_when_it_is_idle_and_not_while_it_is_used(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), dim=2, limits=Limits(idle_timeout=1)) as one:
        one.engine.find("default").change_items(ITEMS)
        host, _, port = one.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            for _ in range(8):  # longer than the timeout, all in all
                connection.sendall(request())
                assert answers(connection, 1)[0][0] == 200
                time.sleep(0.2)
            began = time.monotonic()
            assert connection.recv(1) == b""
            assert time.monotonic() - began > 0.4
