"""Uniform rounds come when Alg. 2 says, seen round by round through a policy."""

from __future__ import annotations

import subprocess
import sys
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import PhaseUniCLUB, Tuned, UniCLUB
from coterie.policies.confidence import Schedule
from inspection import set_rounds

CASES = settings(deadline=None, derandomize=True, max_examples=60)


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


def explored(first: int, phase: int, growth: float, rounds: int) -> list[bool]:
    """What a policy says before each round."""
    policy = PhaseUniCLUB(1, 1, confidence=Tuned(1.0, 0.1, explore=first, phase=phase, growth=growth))
    seen, x = [], np.ones(1)
    for _ in range(rounds):
        seen.append(policy.exploring)
        policy.update(0, x, 0.5)
    return seen


@CASES
@given(
    first=st.integers(0, 300),
    phase=st.integers(0, 40),
    growth=st.sampled_from([0.1, 0.5, 1.0, 1.7, 2.0, 3.0]),
)
def test_a_schedule_is_the_papers_nested_loops(first: int, phase: int, growth: float) -> None:
    assert explored(first, phase, growth, 1000) == played(first, phase, growth, 1000)


def test_a_schedule_on_paper() -> None:
    # 2 rounds first; phase 0: 3 of 3; phase 1: 6 of 2·6 = 12; phase 2: 12 of 4·12 = 48
    uniform = "uu" + "uuu" + "uuuuuu......" + "u" * 12 + "." * 36 + "u"
    assert "".join("u" if u else "." for u in explored(2, 3, 1.0, len(uniform))) == uniform


def test_a_schedule_knows_whether_it_ever_explores() -> None:
    assert not Schedule().ever
    assert not Schedule(0, 0.0, 2.0).ever
    assert Schedule(first=3).ever
    assert Schedule(phase=0.5).ever


def test_uniform_rounds_are_those_in_which_a_number_is_drawn() -> None:
    policy = PhaseUniCLUB(2, 2, confidence=Tuned(1.0, 0.1, explore=5, phase=3, growth=1))
    for t in range(200):
        before, uniform = policy.generator.bit_generator.state, policy.exploring
        arm = policy.recommend(t % 2, np.eye(2))
        assert (policy.generator.bit_generator.state != before) == uniform
        policy.update(t % 2, np.eye(2)[arm], 0.5)


def test_lengths_beyond_anyones_patience_are_no_trouble() -> None:
    assert UniCLUB(2, 2, confidence=Tuned(1.0, 0.1, explore=2**62)).exploring
    assert not UniCLUB(2, 2, confidence=Tuned(1.0, 0.1, explore=0)).exploring
    policy = PhaseUniCLUB(2, 2, confidence=Tuned(1.0, 0.1, explore=5, phase=10**15))
    set_rounds(policy, 10**12)
    assert policy.exploring
    set_rounds(policy, 2**62)
    assert isinstance(policy.exploring, bool)


@pytest.mark.parametrize(("phase", "growth"), [(1, 70.0), (3, 1e6), (10**18, 2.0)])
def test_phases_too_long_to_count_in_64_bits_are_answered_all_the_same(phase: int, growth: float) -> None:
    # phase 0 explores all its rounds, phase 1 its first ones; in a process of its own, lest it never ends
    after = min(phase, 10**9)
    asking = (
        f"import coterie; tuned = coterie.Tuned(1.0, 0.1, phase={phase}, growth={growth}); "
        "policy = coterie.PhaseUniCLUB(5, 2, confidence=tuned); "
        f"policy.learner.rounds = {after}; print(policy.exploring)"
    )
    answer = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, timeout=30)
    assert answer.stdout == "True\n"
