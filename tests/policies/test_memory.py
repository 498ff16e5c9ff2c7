"""`policy.memory()`, the growth of arrays, and graphs that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import ALL, grow, make, play
from coterie import CLUB, ArgumentError, PhaseUniCLUB, Tuned
from coterie.policies import memory_use
from coterie.policies.memory_use import MemoryUse, available_memory, readable
from inspection import allocated_bytes, array_names, state_arrays

TUNED = Tuned(alpha=1.0, beta=0.1, explore=1, phase=1, growth=2)


@pytest.mark.parametrize("example", ALL)
def test_every_byte_of_the_state_is_counted_once(example: str) -> None:
    policy = make(example)
    play(policy, 50)
    told = policy.memory()
    used = sum(array.nbytes for array in state_arrays(policy).values())
    given = sum(value.nbytes for value in policy.arguments.values() if isinstance(value, np.ndarray))
    assert told.total == sum(told.parts.values())
    assert told.parts.get("arguments", 0) == given
    assert told.total - given - told.parts["work space"] == sum(allocated_bytes(policy).values()) >= used
    assert set(told.parts) <= {
        *("statistics of users", "statistics of clusters", "graph", "labels and counts"),
        *("effects of items", "work space", "arguments"),
    }


@pytest.mark.parametrize("example", ALL)
def test_room_for_users_to_come_is_counted(example: str) -> None:
    policy = make(example)
    before = policy.memory().total
    grow(policy, 10)
    used = sum(array.nbytes for array in state_arrays(policy).values())
    assert policy.memory().total >= max(before, used)


def test_a_graph_is_a_bit_for_each_pair_of_users() -> None:
    policy = CLUB(640, 2, confidence=TUNED)
    assert policy.memory().parts["graph"] == 640 * 640 // 8


def test_memory_is_shown_line_by_line_the_largest_first() -> None:
    shown = str(MemoryUse({"labels and counts": 12, "graph": 1_250_000_000}))
    assert shown.splitlines() == [
        "graph               1.2 GB",
        "labels and counts     12 B",
        "in all              1.3 GB",
    ]
    assert [readable(size) for size in (0, 999, 1000, 9_960, 2.5e15)] == [
        *("0 B", "999 B", "1 kB", "10 kB", "2.5 PB"),
    ]


@pytest.mark.parametrize(("maker", "bits"), [(CLUB, "125 GB"), (PhaseUniCLUB, "250 GB")])
def test_a_graph_that_does_not_fit_is_refused_by_a_sentence_before_it_is_allocated(
    maker: Any, bits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_use, "available_memory", lambda: 16 * 10**9)
    with pytest.raises(ArgumentError) as caught:
        maker(1_000_000, 50, confidence=TUNED)
    assert str(caught.value) == (
        f"a graph of 1,000,000 users needs {bits} and statistics of up to 62 GB, but 16 GB of memory are "
        "free; AutoCLUB, SCLUB and LinUCBInd keep no graph"
    )


def test_users_for_whom_the_graph_has_no_room_are_refused_and_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = CLUB(100, 2, confidence=TUNED)
    monkeypatch.setattr(memory_use, "available_memory", lambda: 10**6)
    with pytest.raises(ArgumentError, match=r"a graph of 100,100 users needs 1\.3 GB"):
        policy.add_users(100_000)
    assert policy.n_users == 100
    assert policy.add_users(100).tolist() == list(range(100, 200))


def test_policies_without_a_graph_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_use, "available_memory", lambda: 0)
    assert coterie.SCLUB(50, 2, confidence=TUNED).n_users == 50
    with pytest.raises(ArgumentError):
        CLUB(2, 2, confidence=TUNED)


def test_the_memory_that_is_free_is_a_number_or_unknown() -> None:
    found = available_memory()
    assert found is None or found > 0


@pytest.mark.parametrize("name", ["LinUCBInd", "SCLUB", "CLUB", "PhaseUniCLUB", "AutoCLUB", "HierUCB"])
def test_arrays_are_allocated_anew_a_few_times_while_users_join_one_by_one(name: str) -> None:
    """Capacity doubles: 1,000 newcomers cause at most log2(1,000) allocations of each array, not 1,000."""
    options: dict[str, Any] = {} if name in ("LinUCBInd", "AutoCLUB", "HierUCB") else {"confidence": TUNED}
    policy = getattr(coterie, name)(2, 2, **options)
    sizes: dict[str, set[int]] = {field: set() for field in array_names(policy)}
    while policy.n_users < 1_000:
        policy.add_users(1)
        for field, held in allocated_bytes(policy).items():
            sizes[field].add(held)
    for field, seen in sizes.items():
        assert len(seen) <= 15, field  # users and, of graphs, words grow each by doubling
