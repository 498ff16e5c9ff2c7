from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from coterie.theory import Setup, markdown, table_1, theorem_1, theorem_2, theorem_3
from theory.setups import PAPER, SMALL, setups

DOCS = Path(__file__).parents[2] / "docs" / "explanation" / "theory.md"


def test_the_rows_and_their_order_are_the_papers() -> None:
    firsts = [row.algorithms[0] for row in table_1(SMALL)]
    assert firsts == ["CLUB", "RCLUMB", "UniCLUB", "PhaseUniCLUB", "SACLUB"]


def test_the_numbers_are_the_formulas_on_paper() -> None:
    # u = 8, d = 4, γ = ½, λ_x = ¼, K = 2
    club, rclumb, uniclub, phase, smoothed = table_1(replace(SMALL, n_arms=2))
    assert club.clustering == 8 * (4 / (0.25 * 0.25) + 16)
    assert rclumb.eigenvalue == 1 / 1024
    assert rclumb.clustering == 8 * (4 / 0.25 * 1024 + 1024**2)
    assert uniclub.clustering == 32 / (0.25 * 0.25)
    assert phase.clustering == 32 / (0.5**5 * 0.25**2)
    assert smoothed.clustering == pytest.approx(32 / (0.25 * 0.25 / math.log(2)))


def test_a_number_too_large_for_a_float_is_inf() -> None:
    rclumb = table_1(PAPER)[1]
    assert rclumb.clustering == math.inf
    assert rclumb.eigenvalue < 1e-300


def test_only_the_papers_own_algorithms_have_an_explicit_bound() -> None:
    for row in table_1(SMALL):
        named = tuple(bound.algorithm for bound in row.bounds)
        assert named in ((), row.algorithms)
    _, _, known, unknown, _ = table_1(SMALL)
    assert known.bounds == (theorem_1(SMALL), theorem_2(SMALL))
    assert unknown.bounds == (theorem_3(SMALL),)


@given(setups())
def test_no_bound_is_below_the_order_it_is_named_after(setup: Setup) -> None:
    for row in table_1(setup):
        for bound in row.bounds:
            assert bound.total > row.clustering


def test_markdown_has_a_line_for_each_row() -> None:
    lines = markdown(table_1(SMALL)).splitlines()
    assert len(lines) == 2 + 5
    assert {line.count("|") for line in lines} == {8}


def test_the_documentation_shows_the_table_that_the_code_computes() -> None:
    assert markdown(table_1(PAPER)) in DOCS.read_text(encoding="utf-8")
