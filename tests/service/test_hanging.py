"""A store that hangs, and work that takes long, never stop the event loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie.service.http import routes
from coterie.service.limits import Limits
from service.serving import served
from service.shops import ITEMS

DECISIONS = "/v1/policies/default/decisions"
READS = ("", "/items", "/users", "/users/alice", "/history/alice", "/clusters", "/clusters/0")


def test_a_commit_that_hangs_gets_503_and_the_service_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "STALLED", 0.5)
    limits = Limits(commit_timeout=1)
    with (
        served(str(tmp_path / "a.db"), dim=2, limits=limits) as one,
        httpx.Client(base_url=one.url, trust_env=False) as http,
    ):
        one.engine.find("default").change_items(ITEMS)
        assert http.post(DECISIONS, json={"user": "alice"}).status_code == 200
        ready = http.get("/health/ready").json()
        assert ready["uncommitted_seconds"] < 0.5
        append, hanging = one.engine.store.append, threading.Event()

        def hang(events: Sequence[Any]) -> None:
            hanging.wait(10)
            append(events)

        monkeypatch.setattr(one.engine.store, "append", hang)
        answers: list[httpx.Response] = []

        def decide() -> None:
            answers.append(
                httpx.post(one.url + DECISIONS, json={"user": "bob", "decision_id": "d1"}, trust_env=False)
            )

        deciding = threading.Thread(target=decide)
        deciding.start()
        slowest = 0.0
        ready_answers: list[httpx.Response] = []
        began = time.monotonic()
        while deciding.is_alive():
            before = time.monotonic()
            assert http.get("/health/live").status_code == 200
            slowest = max(slowest, time.monotonic() - before)
            ready_answers.append(http.get("/health/ready"))
        deciding.join()
        assert slowest < 0.5
        assert time.monotonic() - began < 6
        refused = [one.json()["detail"] for one in ready_answers if one.status_code == 503]
        assert "an event has waited" in refused[-1]
        assert answers[0].status_code == 503
        assert "it may still be counted; send it again with the same id" in answers[0].json()["detail"]
        hanging.set()
        again = http.post(DECISIONS, json={"user": "bob", "decision_id": "d1"})
        assert (again.status_code, again.json()["decision_id"]) == (200, "d1")
        assert http.get("/health/ready").status_code == 200


def test_the_event_loop_does_not_wait_for_a_thread_that_has_the_state(tmp_path: Path) -> None:
    with (
        served(str(tmp_path / "a.db"), dim=2) as one,
        httpx.Client(base_url=one.url, trust_env=False, timeout=10) as http,
    ):
        one.engine.find("default").change_items(ITEMS)
        one.engine.requests.patience = 30  # in the loop, one of the requests would take all of it
        assert http.post(DECISIONS, json={"user": "alice"}).status_code == 200
        statuses: list[int] = []

        def ask(path: str) -> None:
            if path == DECISIONS:
                statuses.append(
                    httpx.post(
                        one.url + path, json={"user": "alice"}, trust_env=False, timeout=60
                    ).status_code
                )
            else:
                where = f"{one.url}/v1/policies/default{path}"
                statuses.append(httpx.get(where, trust_env=False, timeout=60).status_code)

        with one.engine.requests:  # as a thread does that takes long
            asking = [threading.Thread(target=ask, args=(path,)) for path in (DECISIONS, *READS)]
            for thread in asking:
                thread.start()
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                assert http.get("/health/live").status_code == 200
        for thread in asking:
            thread.join()
        assert set(statuses) == {200}
