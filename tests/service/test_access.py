"""Who gets in: with which key, under which name, from which page, and with which headers."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from coterie.errors import StoreError
from coterie.service.http import api_keys
from coterie.service.http.admission import Admission
from coterie.service.http.api_keys import APIKeys, create_key, keys_required, list_keys, revoke_key
from coterie.service.http.problems import Refusal
from coterie.service.storage.event_store import EventStore
from service.serving import Served, served
from service.shops import ITEMS

DECISIONS = "/v1/policies/default/decisions"
BODY = json.dumps({"user": "alice"}).encode()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(str(tmp_path_factory.mktemp("access") / "a.db"), dim=2, allowed_host="shop.example") as one:
        one.engine.find("default").change_items(ITEMS)
        yield one


def raw(*headers: str, path: str = DECISIONS, body: bytes = BODY, version: str = "1.1") -> bytes:
    """The bytes of a POST with exactly these headers, and a length."""
    lines = [f"POST {path} HTTP/{version}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def whole(connection: socket.socket, request: bytes) -> None:
    """Send a request in one piece, which takes the fast path if it may."""
    connection.sendall(request)


def pieces(connection: socket.socket, request: bytes) -> None:
    """Send a request in two pieces, which takes the path through uvicorn and Starlette."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(request[:20])
    time.sleep(0.05)
    connection.sendall(request[20:])


BOTH_WAYS = pytest.mark.parametrize("send", [whole, pieces])
Send = Callable[[socket.socket, bytes], None]


def answer(one: Served, request: bytes, send: Send = whole) -> tuple[int, str]:
    """The status and the body of an answer."""
    with socket.create_connection(("127.0.0.1", int(one.url.rpartition(":")[2])), timeout=10) as connection:
        send(connection, request)
        read = b""
        while b"\r\n\r\n" not in read:
            piece = connection.recv(65_536)
            assert piece, read
            read += piece
        head, _, body = read.partition(b"\r\n\r\n")
        length = next(
            int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
        )
        while len(body) < length:
            body += connection.recv(65_536)
        return int(head.split()[1]), body.decode()


HOST, JSON = "Host: localhost", "Content-Type: application/json"


# Keys.


def test_revoking_the_last_key_opens_nothing(tmp_path: Path) -> None:
    with (
        served(str(tmp_path / "a.db"), dim=2) as one,
        httpx.Client(base_url=one.url, trust_env=False) as http,
    ):
        store, keys = one.engine.store, one.keys
        assert http.get("/v1/policies").status_code == 200  # no key was ever made
        made = one.engine.journal.run(lambda: create_key(store, "admin"))
        keys.refresh()
        assert http.get("/v1/policies").status_code == 401
        assert http.get("/v1/policies", headers={"Authorization": f"Bearer {made}"}).status_code == 200
        one.engine.journal.run(lambda: revoke_key(store, made.split("_")[1]))
        keys.refresh()
        assert list_keys(store) == []
        for method, path in (
            ("GET", "/v1/policies"),
            ("GET", "/v1/policies/default/export"),
            ("POST", "/v1/policies"),
            ("POST", DECISIONS),
            ("DELETE", "/v1/policies/default"),
        ):
            assert http.request(method, path, headers={"Content-Type": "application/json"}).status_code == 401
        assert http.get("/v1/policies", headers={"Authorization": f"Bearer {made}"}).status_code == 401
        assert http.get("/health/ready").status_code == 200
    with served(str(tmp_path / "a.db")) as one:  # a new process remembers it
        assert httpx.get(f"{one.url}/v1/policies", trust_env=False).status_code == 401
    with served(str(tmp_path / "a.db"), insecure=True) as one:
        assert httpx.get(f"{one.url}/v1/policies", trust_env=False).status_code == 200


def test_insecure_does_not_pass_over_keys_that_there_are(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), insecure=True) as one:
        one.engine.journal.run(lambda: create_key(one.engine.store, "reader"))
        one.keys.refresh()
        assert httpx.get(f"{one.url}/v1/policies", trust_env=False).status_code == 401


def test_a_store_remembers_that_it_had_a_key(store: EventStore) -> None:
    assert not keys_required(store)
    made = create_key(store, "reader")
    assert keys_required(store)
    revoke_key(store, made.split("_")[1])
    assert (list_keys(store), keys_required(store)) == ([], True)


def test_keys_that_cannot_be_read_again_open_nothing_after_their_age(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create_key(store, "reader")
    keys = APIKeys(store)
    keys.close()
    headers = [(b"authorization", f"Bearer {made}".encode())]
    key = keys.authorise(headers, "reader", None)
    assert key is not None
    monkeypatch.setattr(api_keys, "MOST_AGE", 0.0)
    time.sleep(0.01)
    with pytest.raises(
        Refusal, match="the store did not answer for 0 s, so no key can be checked"
    ) as refused:
        keys.authorise(headers, "reader", None)
    assert refused.value.status == 503


def test_a_store_that_hangs_while_keys_are_read_holds_up_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "FRESH", 0.05)
    with (
        served(str(tmp_path / "a.db"), dim=2) as one,
        httpx.Client(base_url=one.url, trust_env=False) as http,
    ):
        query, seen, released = one.engine.store.query, [], threading.Event()

        def hang(statement: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
            if "FROM key" in statement:
                seen.append(statement)
                released.wait(60)
                raise StoreError("the database hangs")
            return query(statement, values)

        monkeypatch.setattr(one.engine.store, "query", hang)
        while not seen:
            time.sleep(0.01)
        for _ in range(20):
            assert http.get("/health/live").status_code == 200
            assert http.get("/v1/policies/default/items").status_code == 200
        released.set()
        monkeypatch.undo()


# Names, pages and content types.


@BOTH_WAYS
@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "LOCALHOST.", "127.0.0.1:1", "[::1]:80", "shop.example"]
)
def test_the_service_is_called_by_its_names(service: Served, send: Send, host: str) -> None:
    assert answer(service, raw(f"Host: {host}", JSON), send)[0] == 200


@BOTH_WAYS
def test_another_name_that_leads_here_is_refused(service: Served, send: Send) -> None:
    for host in ("evil.example", "localhost.evil.example", "10.1.2.3", "shop.example.evil"):
        status, body = answer(service, raw(f"Host: {host}", JSON), send)
        assert (status, "is not a name of this service" in body) == (421, True)
    for path in ("/v1/policies", "/v1/policies/default/export", "/", "/openapi.json", "/metrics"):
        request = f"GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n".encode()
        assert answer(service, request, send)[0] == 421


def test_a_service_on_all_addresses_is_called_by_any_address_and_by_allowed_names() -> None:
    everywhere = Admission.to("0.0.0.0", "shop, api.example")
    for host in (b"10.1.2.3:8000", b"[2001:db8::1]", b"shop", b"api.example:1", b"localhost"):
        everywhere.check("GET", "/v1/policies", [(b"host", host)])
    with pytest.raises(Refusal, match=r"'evil\.example' is not a name"):
        everywhere.check("GET", "/v1/policies", [(b"host", b"evil.example")])
    Admission.to("127.0.0.1", "*").check("GET", "/v1/policies", [(b"host", b"evil.example")])
    Admission.to("10.0.0.7").check("GET", "/v1/policies", [(b"host", b"10.0.0.7:80")])
    Admission.to("::").check("GET", "/v1/policies", [(b"host", b"[2001:db8::1]:80")])


def test_health_checks_need_no_name_of_the_service() -> None:
    rule = Admission()
    rule.check("GET", "/health/ready", [(b"host", b"10.2.3.4:8000")])
    rule.check("GET", "/health/live", [], version="1.0")
    with pytest.raises(Refusal, match="needs a Host"):
        rule.check("GET", "/health/live", [])


@BOTH_WAYS
@pytest.mark.parametrize(
    "foreign",
    [
        ("Origin: http://evil.example",),
        ("Origin: null",),
        ("Origin: http://localhost:3000",),
        ("Sec-Fetch-Site: cross-site",),
        ("Sec-Fetch-Site: same-site", "Origin: http://localhost:3000"),
    ],
)
def test_a_page_of_another_site_cannot_send_requests(
    service: Served, send: Send, foreign: tuple[str, ...]
) -> None:
    status, body = answer(service, raw(HOST, JSON, *foreign), send)
    assert (status, "a page of another site" in body) == (403, True)
    get = "\r\n".join(["GET /v1/policies/default/export HTTP/1.1", HOST, *foreign, "", ""]).encode()
    assert answer(service, get, send)[0] == 403


@BOTH_WAYS
@pytest.mark.parametrize(
    "own",
    [
        ("Sec-Fetch-Site: same-origin", "Origin: http://localhost"),
        ("Origin: http://localhost",),
        ("Sec-Fetch-Site: none",),
    ],
)
def test_the_page_itself_can_send_requests(service: Served, send: Send, own: tuple[str, ...]) -> None:
    assert answer(service, raw(HOST, JSON, *own), send)[0] == 200


def test_anybody_may_follow_a_link_to_the_page(service: Served) -> None:
    request = f"GET / HTTP/1.1\r\n{HOST}\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n\r\n"
    assert answer(service, request.encode())[0] == 200


@BOTH_WAYS
def test_a_body_needs_the_content_type_of_json(service: Served, send: Send) -> None:
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a",
        "",
        "application/jsonp",
    ):
        status, body = answer(service, raw(HOST, f"Content-Type: {kind}"), send)
        assert (status, "needs Content-Type: application/json" in body) == (415, True)
    assert answer(service, raw(HOST), send)[0] == 415
    assert answer(service, raw(HOST, "Content-Type: Application/JSON ; charset=utf-8"), send)[0] == 200
    lines = raw(HOST, "Content-Type: text/plain", path="/v1/policies/default/import", body=b"")
    assert answer(service, lines, send)[0] == 415


# Headers.


@pytest.mark.parametrize("value", [b"a\x00b", b"a\x01", b"a\rb", b"\x7f"])
def test_a_control_character_in_a_header_is_refused_even_if_the_parser_lets_it_pass(value: bytes) -> None:
    headers = [(b"host", b"localhost"), (b"x-a", value)]
    with pytest.raises(Refusal, match="the header 'x-a' has a control character in its value"):
        Admission().check("GET", "/v1/policies", headers)


@BOTH_WAYS
@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        (
            (HOST, JSON, "Authorization: Bearer a", "Authorization: Bearer b"),
            "at most one Authorization header, got 2",
        ),
        (
            (HOST, JSON, "authorization: Bearer a", "AUTHORIZATION: Bearer a"),
            "at most one Authorization header, got 2",
        ),
        ((HOST, JSON, "X-A: a\x00b"), ""),
        ((HOST, JSON, "Authorization: Bearer a\x01"), ""),
        ((JSON,), "needs a Host header"),
        ((HOST, HOST, JSON), "at most one Host header, got 2"),
        (("Host: a b", JSON), "Host must be a name or an address"),
        (("Host: user@localhost", JSON), "Host must be a name or an address"),
        (("Host:", JSON), "Host must be a name or an address"),
        ((HOST, JSON, JSON), "at most one Content-Type header, got 2"),
    ],
)
def test_headers_that_two_parsers_may_read_differently_are_refused(
    service: Served, send: Send, headers: tuple[str, ...], sentence: str
) -> None:
    status, body = answer(service, raw(*headers), send)
    assert status == 400
    assert sentence in body


@BOTH_WAYS
@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://evil.example", HOST, 421),
        ("HTTP://evil.example:80", HOST, 421),
        ("http://localhost@evil.example", HOST, 400),
        ("http://localhost", "Host: evil.example", 200),
        ("http://shop.example:8000", HOST, 200),
    ],
)
def test_the_host_of_the_target_counts_if_it_has_one(
    service: Served, send: Send, target: str, host: str, status: int
) -> None:
    assert answer(service, raw(host, JSON, path=target + DECISIONS), send)[0] == status


def test_reasons_that_name_files_need_a_key_where_requests_do(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), dim=2) as one:
        secret = f"the store {tmp_path} cannot be read"

        def ready(**headers: str) -> str:
            found = httpx.get(f"{one.url}/health/ready", headers=headers, trust_env=False)
            assert found.status_code == 503
            return str(found.json()["detail"])

        made = one.engine.journal.run(lambda: create_key(one.engine.store, "reader", policy="default"))
        one.engine.lifecycle.fail(StoreError(secret))
        assert secret in ready()
        one.keys.refresh()
        assert ready() == (
            "the store cannot be used now; a request with a key, and the log of the service, say why"
        )
        assert secret in ready(Authorization=f"Bearer {made}")


@BOTH_WAYS
def test_a_request_that_offers_another_protocol_keeps_its_body(service: Served, send: Send) -> None:
    offer = (
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQBAAAAAAIAAAAA",
    )
    status, body = answer(service, raw(HOST, JSON, *offer), send)
    assert (status, json.loads(body)["chosen"] in ITEMS) == (200, True)
    websocket = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: a",
    )
    assert answer(service, raw(HOST, JSON, *websocket), send)[0] == 200
    chunked = "\r\n".join(
        [f"POST {DECISIONS} HTTP/1.1", HOST, JSON, *offer, "Transfer-Encoding: chunked", "", ""]
    )
    assert answer(service, chunked.encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY), send)[0] == 200
    assert answer(service, b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", send)[0] == 400


def test_trailers_do_not_join_the_headers(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), dim=2) as one:
        made = one.engine.journal.run(lambda: create_key(one.engine.store, "admin"))
        one.keys.refresh()
        head = "\r\n".join(
            [f"POST {DECISIONS} HTTP/1.1", HOST, JSON, "Transfer-Encoding: chunked", "", ""]
        ).encode()
        tail = f"0\r\nAuthorization: Bearer {made}\r\nHost: evil.example\r\n\r\n".encode()
        assert answer(one, head + b"%x\r\n%b\r\n" % (len(BODY), BODY) + tail)[0] == 401
