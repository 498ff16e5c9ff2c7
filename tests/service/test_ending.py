"""A service ends at SIGTERM whatever hangs: its database, or whoever should read its log."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import httpx

from coterie.service.storage.location import open_store
from service.test_serve import server_process

DECISIONS = "/v1/policies/default/decisions"
ARMS = [{"id": "a", "x": [1.0, 0.0]}]
IMPATIENT = """
from coterie.cli import main
from coterie.service.storage import postgresql
postgresql.LONGEST_STATEMENT = 1.0
main()
"""
SAFETY = 120.0
"""Seconds after which a test fails that would wait for ever."""


def decide(url: str, name: str | None = None) -> int:
    """The status of a request for a decision; 0 if the connection was closed instead."""
    body = {"user": "alice", "arms": ARMS, "decision_id": name}
    try:
        return httpx.post(url + DECISIONS, json=body, trust_env=False, timeout=SAFETY).status_code
    except httpx.HTTPError:
        return 0


def is_ready(url: str) -> bool:
    """Whether the service is ready, and no event waits for its commit."""
    answer = httpx.get(f"{url}/health/ready", trust_env=False, timeout=SAFETY)
    return answer.status_code == 200 and answer.json()["uncommitted_seconds"] == 0


def backends(url: str) -> list[int]:
    """The processes of PostgreSQL that serve this database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return [int(pid) for (pid,) in found]


def test_sigterm_ends_a_service_whose_database_hangs(postgres: str, tmp_path: Path) -> None:
    options = ("--store", postgres, "--dim", "2", "--log-level", "warning", "--stop-timeout", "1")
    with server_process(tmp_path, *options, program=("-c", IMPATIENT)) as (url, running):
        acknowledged = [f"d{n}" for n in range(20)]
        assert [decide(url, name) for name in acknowledged] == [200] * 20
        stopped = backends(postgres)
        for one in stopped:
            os.kill(one, signal.SIGSTOP)
        try:
            statuses: list[int] = []
            hanging = threading.Thread(target=lambda: statuses.append(decide(url)))
            hanging.start()
            while is_ready(url):
                pass
            running.send_signal(signal.SIGTERM)
            _, told = running.communicate(timeout=SAFETY)
            hanging.join()
        finally:
            for one in stopped:
                os.kill(one, signal.SIGCONT)
    assert running.returncode == 0
    assert statuses[0] != 200
    store = open_store(postgres)
    store.open(lock=False)
    assert {event.decision for event in store.read("default") if event.kind == "decision"} >= {*acknowledged}
    store.close()
    assert b"the service ends while its store cannot be written" in told


def test_a_log_that_nobody_reads_stops_neither_requests_nor_the_end(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with server_process(tmp_path, "--dim", "2", stderr=writing) as (url, running):
        # Of its own, so that only these writes do not wait; those of the service do.
        filling = os.open(f"/proc/self/fd/{writing}", os.O_WRONLY | os.O_NONBLOCK)
        try:
            while True:
                os.write(filling, b"x" * 1024)
        except BlockingIOError:
            pass
        os.close(filling)
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=SAFETY) as other:
            other.sendall(b"\x00 is no request\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 400")
        assert decide(url, "d1") == 200
        assert httpx.get(f"{url}/health/live", trust_env=False, timeout=SAFETY).status_code == 200
        running.send_signal(signal.SIGTERM)
        assert running.wait(SAFETY) == 0
    for one in (reading, writing):
        os.close(one)
    assert not (tmp_path / "coterie.db-wal").exists()
