"""`coterie theory`."""

from __future__ import annotations

import json

import pytest

from cli.conftest import Call
from coterie.theory import Setup, t0, table_1

PAPER = Setup(n_users=50, dim=50, n_clusters=10, n_arms=100, horizon=100_000, gamma=0.5, lambda_x=0.017)


def test_the_paper_setup_cannot_be_used(coterie: Call) -> None:
    page = coterie("theory").output
    assert "These constants cannot be used" in page
    for row in table_1(PAPER):
        assert row.algorithms[0] in page


def test_json_has_the_numbers_of_the_formulas(coterie: Call) -> None:
    told = json.loads(coterie("theory", "--json").stdout)
    assert told["t0"] == pytest.approx(t0(50, 50, gamma=0.5, lambda_x=0.017, delta=1e-5, norm=1.0))
    assert told["radius"]["1000"] == pytest.approx(PAPER.radius(1000))
    assert [bound["algorithm"] for bound in told["bounds"]] == [
        "UniCLUB",
        "UniSCLUB",
        "PhaseUniCLUB",
        "SACLUB",
        "SASCLUB",
    ]
    assert all(bound["vacuous"] for bound in told["bounds"])
    assert told["table_1"][1]["clustering"] is None


def test_an_easy_problem_with_a_long_horizon_can_be_used(coterie: Call) -> None:
    easy = ("--users", 5, "--dim", 2, "--clusters", 2, "--gamma", 1.5, "--horizon", 10**8)
    assert "These constants can be used" in coterie("theory", *easy).output
