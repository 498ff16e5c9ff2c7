"""From settings to runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from coterie.cli.run_settings import (
    RunSettings,
    environment_of,
    parse_policy,
    plan_settings,
    read_settings,
)
from coterie.errors import ArgumentError, UnknownName
from coterie.experiments.run_plan import SharedParameters
from coterie.experiments.specs import PolicySpec
from coterie.policies.registry import REGISTRY

WORLD = {"n_users": 8, "n_clusters": 2, "n_arms": 10, "dim": 5}
SMALL = RunSettings(environment=WORLD, horizon=64, seeds=(0, 1))


def made(word: str, settings: RunSettings = SMALL) -> PolicySpec:
    shared = SharedParameters(settings.constants, settings.params)
    return shared.complete(parse_policy(word), environment_of(settings))


def test_the_default_is_autoclub_and_something_to_measure_it_by() -> None:
    assert plan_settings(SMALL).labels == ("AutoCLUB", "LinUCBInd", "ItemUCB")


def test_parameters_come_from_the_word_then_the_options_then_the_noise() -> None:
    assert made("CLUB") == PolicySpec("CLUB", {"alpha": 1.5, "beta": 0.1})
    told = RunSettings(environment={"noise": 0.5}, constants={"alpha": 2.0})
    assert made("CLUB:beta=0.3", told) == PolicySpec("CLUB", {"alpha": 2.0, "beta": 0.3})
    assert made("UniCLUB").params["explore"] == 80


def test_param_is_above_an_option_and_below_the_word() -> None:
    told = msgspec.structs.replace(
        SMALL, constants={"alpha": 2.0, "beta": 2.0}, params={"alpha": 3.0, "ridge": 3.0}
    )
    assert made("CLUB:ridge=4", told).params == {"alpha": 3.0, "beta": 2.0, "ridge": 4}


def test_the_alpha_of_graph_policies_is_what_beta_is_elsewhere() -> None:
    assert made("GOBLin") == PolicySpec("GOBLin", {"alpha": 0.1})
    assert made("GraphUCB:alpha=0.7").params["alpha"] == 0.7
    told = msgspec.structs.replace(SMALL, constants={"alpha": 9.0, "beta": 0.3})
    assert made("GOBLin", told).params == {"alpha": 0.3}
    assert made("GOBLin", msgspec.structs.replace(SMALL, params={"alpha": 0.4, "growing": True})).params == {
        "alpha": 0.4,
        "growing": True,
    }


def test_a_policy_is_given_only_what_it_takes() -> None:
    told = msgspec.structs.replace(SMALL, constants={"explore": 5}, params={"phase": 3})
    assert made("LinUCBInd", told) == PolicySpec("LinUCBInd", {"beta": 0.1})


@pytest.mark.parametrize("where", ["constants", "params"])
@pytest.mark.parametrize(
    ("policies", "given"),
    [
        (("AutoCLUB",), {"alpha": 2.0}),
        (("LinUCBInd", "CLUB"), {"beta": 0.1, "explore": 5}),
        (("UniCLUB",), {"growth": 3.0}),
        (("CLUB",), {"seed": 3}),
    ],
)
def test_a_parameter_that_no_policy_takes_is_refused(
    policies: tuple[str, ...], given: dict[str, Any], where: str
) -> None:
    settings = msgspec.structs.replace(SMALL, policies=policies, **{where: given})
    with pytest.raises(ArgumentError, match=f"^{list(given)[-1]} is for policies that take it, and none"):
        plan_settings(settings)


def test_the_option_alpha_is_not_the_alpha_of_graph_policies() -> None:
    with pytest.raises(ArgumentError, match=r"^alpha is for policies that take it"):
        plan_settings(msgspec.structs.replace(SMALL, policies=("GOBLin",), constants={"alpha": 2.0}))


@pytest.mark.parametrize(
    ("policies", "given"),
    [
        ((), {"ridge": 2.0}),
        (("LinUCBInd", "UniCLUB"), {"alpha": 2.0, "explore": 5}),
        (("GOBLin",), {"beta": 2.0}),
    ],
)
def test_a_parameter_that_one_policy_takes_will_do(policies: tuple[str, ...], given: dict[str, Any]) -> None:
    assert (
        plan_settings(msgspec.structs.replace(SMALL, policies=policies, constants=given)).policies[-1].params
    )


@pytest.mark.parametrize("name", REGISTRY)
def test_every_registered_policy_can_be_run(name: str) -> None:
    planned = plan_settings(msgspec.structs.replace(SMALL, policies=(name,), seeds=(0,)))
    trace = planned.runs[0].play(planned.data.dataset(planned.environment))
    assert trace.rounds[-1] == 64


def test_specs_of_one_policy_are_told_apart_by_their_parameters() -> None:
    planned = plan_settings(
        msgspec.structs.replace(SMALL, policies=("CLUB:alpha=1", "CLUB:alpha=2", "SCLUB", "SCLUB"))
    )
    assert planned.labels == ("CLUB (alpha 1, beta 0.1)", "CLUB (alpha 2, beta 0.1)", "SCLUB")
    assert {planned.label(run) for run in planned.runs} == set(planned.labels)


def test_all_policies_meet_the_same_environments() -> None:
    planned = plan_settings(msgspec.structs.replace(SMALL, policies=("CLUB", "SCLUB")))
    assert {run.environment for run in planned.runs} == {planned.environment}
    assert [run.seed for run in planned.runs] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("word", "name", "params"),
    [
        ("CLUB", "CLUB", {}),
        ("CLUB:alpha=1,ridge=0.5", "CLUB", {"alpha": 1, "ridge": 0.5}),
        ("mine:Greedy", "mine:Greedy", {}),
        (
            "my.mine:Greedy:size=3,kind=odd,fast=true",
            "my.mine:Greedy",
            {"size": 3, "kind": "odd", "fast": True},
        ),
    ],
)
def test_a_word_names_a_policy_and_its_parameters(word: str, name: str, params: dict[str, Any]) -> None:
    assert parse_policy(word) == PolicySpec(name, params)


def test_what_follows_a_registered_name_is_a_parameter() -> None:
    with pytest.raises(ArgumentError, match="needs key=value, got 'alpha'"):
        parse_policy("CLUB:alpha")
    with pytest.raises(UnknownName, match="did you mean 'CLUB'"):
        plan_settings(msgspec.structs.replace(SMALL, policies=("CLBU:alpha=1",)))


def test_positional_policies_come_before_those_of_the_option() -> None:
    assert read_settings(None, {"policies": ["CLUB"], "policy": ["SCLUB", "a:B"]}).policies == (
        "CLUB",
        "SCLUB",
        "a:B",
    )
