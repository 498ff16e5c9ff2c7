from __future__ import annotations

import subprocess
import sys
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels.schedule import Schedule, explores

CASES = settings(deadline=None, derandomize=True, max_examples=100)


def played(first: int, phase: float, growth: float, rounds: int) -> list[bool]:
    """Alg. 2 as nested loops: is each round uniform?"""
    uniform: list[bool] = [True] * first
    s = 0
    while phase > 0 and len(uniform) < rounds:
        exploring = ceil(2**s * phase)
        for t in range(ceil(2 ** (growth * s) * exploring)):
            uniform.append(t < exploring)
            if len(uniform) >= rounds:
                break
        s += 1
    return (uniform + [False] * rounds)[:rounds]


@CASES
@given(
    first=st.integers(0, 300),
    phase=st.one_of(st.just(0.0), st.floats(0.1, 40.0)),
    growth=st.sampled_from([0.1, 0.5, 1.0, 1.7, 2.0, 3.0]),
)
def test_a_schedule_is_the_papers_nested_loops(first: int, phase: float, growth: float) -> None:
    schedule = Schedule(first, phase, growth)
    assert [explores(schedule, t) for t in range(1000)] == played(first, phase, growth, 1000)


def test_a_schedule_on_paper() -> None:
    # 2 rounds first; phase 0: 3 of 3; phase 1: 6 of 2·6 = 12; phase 2: 12 of 4·12 = 48
    uniform = "uu" + "uuu" + "uuuuuu......" + "u" * 12 + "." * 36 + "u"
    schedule = Schedule(2, 3.0, 1.0)
    assert "".join("u" if explores(schedule, t) else "." for t in range(len(uniform))) == uniform


def test_lengths_beyond_anyones_patience_are_no_trouble() -> None:
    assert explores(Schedule(2**62, 0.0, 2.0), 2**61)
    assert not explores(Schedule(0, 0.0, 2.0), 2**61)
    assert explores(Schedule(5, 1e15, 2.0), 10**12)


@pytest.mark.parametrize(("phase", "growth"), [(1, 70.0), (3, 1e6), (10**18, 2.0)])
def test_phases_too_long_to_count_in_64_bits_are_answered_all_the_same(phase: int, growth: float) -> None:
    # phase 0 explores all its rounds, phase 1 its first ones; in a process of its own, lest it never ends
    after = min(phase, 10**9)
    asking = (
        "from coterie.kernels.schedule import explores; from coterie import Tuned; "
        f"print(explores(Tuned(1.0, 0.1, phase={phase}, growth={growth}).phases(5, 2), {after}))"
    )
    answer = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, timeout=30)
    assert answer.stdout == "True\n"
