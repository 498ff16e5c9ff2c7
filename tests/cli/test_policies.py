"""`coterie policies`."""

from __future__ import annotations

import json

import pytest

from cli.conftest import Call
from coterie.cli.policies import parameters
from coterie.policies.registry import REGISTRY


def test_all_policies_are_listed_with_when_to_use_them(coterie: Call) -> None:
    page = coterie("policies").output
    for name in REGISTRY:
        assert name in page
    assert "the gap is not known" in page


@pytest.mark.parametrize("name", REGISTRY)
def test_every_parameter_of_every_policy_is_explained(name: str) -> None:
    """A new parameter needs a sentence in `coterie.cli.policies.MEANINGS`."""
    assert [one["name"] for one in parameters(REGISTRY[name]) if not one["meaning"]] == []


def test_one_policy_is_shown_with_its_parameters(coterie: Call) -> None:
    page = coterie("policies", "GOBLin").output
    assert "must be given" in page
    assert "Weight of the friendship between two users" in page
    assert "`coterie run GOBLin:key=value` takes alpha, ridge, growing." in page
    assert ">>>" not in page


def test_json_has_the_same_as_the_page(coterie: Call) -> None:
    told = json.loads(coterie("policies", "--json").stdout)
    assert [one["name"] for one in told] == list(REGISTRY)
    one = json.loads(coterie("policies", "CLUB", "--json").stdout)
    assert one["run_takes"] == ["alpha", "beta", "growing", "ridge", "items"]
    assert {parameter["name"] for parameter in one["parameters"]} >= {"confidence", "ridge", "seed"}


@pytest.mark.parametrize("name", REGISTRY)
def test_when_to_use_a_policy_goes_on_from_use_it_when(coterie: Call, name: str) -> None:
    first = REGISTRY[name].use_when.split()[0]
    assert first not in ("as", "by", "for", "when", "in")
    assert f"Use it when {first} " in " ".join(coterie("policies", name).stdout.split())
