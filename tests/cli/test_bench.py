"""`coterie bench`."""

from __future__ import annotations

import json

import pytest

from cli.conftest import Call
from coterie.cli.bench import best
from coterie.policies import REGISTRY


def test_each_policy_is_compared_with_its_own_yardstick(coterie: Call) -> None:
    result = coterie("bench", "CLUB", "LinUCBOracle", "GOBLin", "--rounds", 512, "--repeats", 1, "--json")
    told = {one["policy"]: one for one in json.loads(result.stdout)}
    assert list(told) == ["CLUB", "LinUCBOracle", "GOBLin"]
    assert told["CLUB"]["yardstick"] == told["LinUCBOracle"]["yardstick"] != told["GOBLin"]["yardstick"]
    for one in told.values():
        assert one["ratio"] == one["microseconds"] / one["yardstick"] > 0


def test_every_policy_is_timed_unless_some_are_named(coterie: Call) -> None:
    result = coterie("bench", "--rounds", 256, "--repeats", 1, "--json")
    assert [one["policy"] for one in json.loads(result.stdout)] == list(REGISTRY)


def test_the_table_names_the_yardstick(coterie: Call) -> None:
    page = coterie("bench", "LinUCBOne", "--rounds", 256, "--repeats", 1).output
    assert "X·M⁻¹" in page
    assert "BLAS µs" in page


def test_best_is_the_least_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 3.0, 10.0, 10.5, 20.0, 22.0])  # three, half a second, two
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    done: list[None] = []
    assert best(lambda: done.append(None), 3) == 0.5e6
    assert len(done) == 3
