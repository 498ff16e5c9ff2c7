"""Frames for the page: splits and merges, how many may look on, and an end that does not wait for them."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from coterie.service.http.page import ClusterChanges, changes_between
from coterie.service.limits import Limits
from service.serving import served
from service.shops import ITEMS


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], (0, 0)),
        ([0, 0, 1, 1], [5, 5, 3, 3], (0, 0)),  # other names for the same
        ([0, 0, 1, 1], [0, 0, 0, 0], (0, 1)),
        ([0, 0, 0, 0], [0, 1, 2, 2], (2, 0)),
        ([0, 0, 1, 1], [0, 1, 1, 1], (1, 1)),  # one user moved
        ([0, 1, 2], [0, 0, 0], (0, 2)),
        ([], [], (0, 0)),
    ],
)
def test_splits_and_merges_are_counted(
    before: list[int], after: list[int], expected: tuple[int, int]
) -> None:
    assert changes_between(np.array(before, np.int64), np.array(after, np.int64)) == expected


def test_users_who_join_or_leave_are_no_splits() -> None:
    changes = ClusterChanges()
    changes.compare(np.array([0, 1]), 0)
    changes.compare(np.array([0, 1, 2, 3]), 0)
    assert (changes.splits, changes.merges) == (0, 0)
    changes.compare(np.array([0, 0, 1]), 1)  # a user was removed: the others have other numbers
    assert (changes.splits, changes.merges) == (0, 0)


def frames_of(url: str, count: int) -> list[dict[str, Any]]:
    found = []
    with httpx.stream("GET", f"{url}/v1/policies/default/live", trust_env=False, timeout=10) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line[6:]))
            if len(found) == count:
                break
    return found


def test_frames_tell_what_happens(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), dim=2) as one:
        live = one.engine.find("default")
        live.change_items(ITEMS)
        live.reward(live.decide("alice").result.id, 0.5)
        live.decide("<b>")
        (first, second) = frames_of(one.url, 2)
    assert [point[0] for point in second["points"]] == ["alice", "<b>"]
    assert (second["users"], second["rounds"], second["waiting"], second["own"]) == (2, 1, 1, [0.5, 2])
    assert second["at"] > first["at"]


def test_so_many_may_look_on_and_requests_are_answered_meanwhile(tmp_path: Path) -> None:
    limits = Limits(stream_limit=2, in_flight_limit=1)
    with served(str(tmp_path / "a.db"), dim=2, limits=limits) as one:
        url = f"{one.url}/v1/policies/default/live"
        with (
            httpx.stream("GET", url, trust_env=False) as first,
            httpx.stream("GET", url, trust_env=False) as second,
        ):
            reading = [first.iter_lines(), second.iter_lines()]
            assert all(next(lines) for lines in reading)
            refused = httpx.get(url, trust_env=False, timeout=5)
            assert refused.status_code == 503
            assert "the limit of 2 open pages is reached (stream_limit)" in refused.json()["detail"]
            assert httpx.get(f"{one.url}/v1/policies", trust_env=False).status_code == 200
        time.sleep(1.5)
        assert frames_of(one.url, 1)


def test_a_page_that_is_open_does_not_hold_up_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(str(tmp_path / "a.db"), dim=2) as one:
        watching = threading.Thread(target=frames_of, args=(one.url, 1000))
        watching.start()
        time.sleep(1.5)
    watching.join()
    # uvicorn says so when its time for open connections is over and it cancels them.
    assert "graceful shutdown exceeded" not in caplog.text
