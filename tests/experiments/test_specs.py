"""Policies and environments as data."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coterie import environments
from coterie.errors import ArgumentError, UnknownName
from coterie.experiments.results import labels_of
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import NOISES, EnvironmentSpec, PolicySpec, World, same_cluster
from coterie.experiments.tuning import usual_spec
from coterie.policies.registry import REGISTRY


@pytest.fixture
def world(small: EnvironmentSpec, data: DataFiles) -> World:
    return small.make(data.dataset(small), 3)


def test_the_order_of_parameters_does_not_matter() -> None:
    one, two = PolicySpec("CLUB", {"alpha": 1.5, "beta": 2}), PolicySpec("CLUB", {"beta": 2, "alpha": 1.5})
    assert (one, hash(one), str(one)) == (two, hash(two), str(two))
    assert list(two.params) == ["alpha", "beta"]
    assert one != PolicySpec("CLUB", {"alpha": 1.5})


def test_a_spec_is_data() -> None:
    params: dict[str, Any] = {"size": np.int64(3), "rate": np.float64(0.5), "kind": "odd", "on": True}
    spec = PolicySpec("mine:Greedy", params)
    assert json.loads(json.dumps(dict(spec.params))) == {"kind": "odd", "on": True, "rate": 0.5, "size": 3}
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert (spec.label, str(spec)) == ("Greedy", "mine:Greedy (kind odd, on True, rate 0.5, size 3)")


def test_a_spec_does_not_change_with_what_it_was_made_from() -> None:
    params: dict[str, Any] = {"alpha": 1.0}
    spec = PolicySpec("CLUB", params)
    params["alpha"] = 2.0
    assert spec.params == {"alpha": 1.0}
    frozen: Any = spec.params
    with pytest.raises(TypeError):
        frozen["alpha"] = 2.0


@pytest.mark.parametrize("wrong", [None, [1], float("nan"), float("inf"), 1j])
def test_a_parameter_that_json_cannot_hold_is_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="alpha must be a finite number, text, true or false, got"):
        PolicySpec("CLUB", {"alpha": wrong})


def test_labels_are_as_short_as_they_can_be() -> None:
    specs = [PolicySpec("CLUB"), PolicySpec("a:Mine"), PolicySpec("b:Mine"), PolicySpec("a:Mine", {"c": 1})]
    assert labels_of(specs) == ("CLUB", "a:Mine", "b:Mine", "Mine (c 1)")


@pytest.mark.parametrize("name", REGISTRY)
def test_every_registered_policy_can_be_made(world: World, small: EnvironmentSpec, name: str) -> None:
    policy = usual_spec(name, small).make(world, 7)
    assert (policy.name, policy.n_users, policy.dim) == (name, 8, 4)
    assert policy.arguments["seed"] == 7


def test_flat_parameters_become_a_confidence(world: World) -> None:
    params = {"alpha": 1.0, "beta": 0.2, "explore": 5, "phase": 6, "growth": 3.0, "ridge": 2.0}
    arguments = PolicySpec("PhaseUniCLUB", params).make(world, 0).arguments
    confidence = arguments["confidence"]
    assert {name: getattr(confidence, name) for name in params if name != "ridge"} == {
        name: value for name, value in params.items() if name != "ridge"
    }
    assert arguments["ridge"] == 2.0


def test_only_who_is_present_at_the_start_is_known_to_a_policy(
    small: EnvironmentSpec, data: DataFiles
) -> None:
    late = replace(small, late=0.5).make(data.dataset(small), 1)
    oracle = PolicySpec("LinUCBOracle", {"beta": 0.1}).make(late, 0)
    assert late.labels is not None
    assert oracle.n_users == 4
    assert oracle.arguments["labels"].tolist() == late.labels[:4].tolist()


def test_the_graph_joins_users_of_one_cluster() -> None:
    assert same_cluster(np.array([0, 1, 0])).astype(int).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("spec", "error", "sentence"),
    [
        (PolicySpec("CLBU"), UnknownName, "did you mean 'CLUB'?"),
        (PolicySpec("CLUB", {"alfa": 1}), UnknownName, "did you mean 'alpha'"),
        (PolicySpec("CLUB", {"seed": 1}), UnknownName, "no parameter of CLUB: 'seed'"),
        (PolicySpec("CLUB", {"beta": 1}), ArgumentError, "CLUB needs alpha, such as CLUB"),
        (PolicySpec("CLUB"), ArgumentError, "CLUB needs alpha and beta, such as CLUB"),
        (PolicySpec("CLUB", {"alpha": "much", "beta": 1}), ArgumentError, "alpha must be at least 0"),
    ],
)
def test_a_policy_that_cannot_be_made_is_refused(
    world: World, spec: PolicySpec, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        spec.make(world, 0)


@pytest.mark.parametrize("rewards", NOISES)
@pytest.mark.parametrize("setting", ["stochastic", "smoothed"])
def test_every_kind_of_environment_can_be_made(
    small: EnvironmentSpec, data: DataFiles, setting: Any, rewards: Any
) -> None:
    spec = replace(small, setting=setting, rewards=rewards)
    made = spec.make(data.dataset(spec), 5)
    assert type(made).__name__.lower() == setting
    assert (made.seed, made.n_users, made.n_arms) == (5, 8, 6)


def test_every_argument_of_an_environment_is_passed_on(small: EnvironmentSpec, data: DataFiles) -> None:
    changed: dict[str, Any] = {
        "sizes": "zipf",
        "zipf": 0.5,
        "late": 0.25,
        "settled": 99,
        "drift": 0.1,
        "jumps": 9.0,
    }
    spec = replace(small, setting="smoothed", sigma=0.2, truncation=0.7, adversary="one", delay=3, **changed)
    made = spec.make(data.dataset(spec), 0)
    assert isinstance(made, environments.Smoothed)
    assert (made.sigma, made.truncation, made.longest_delay) == (0.2, 0.7, 3)
    assert made.adversary is environments.smoothed.ADVERSARIES["one"]
    assert {name: getattr(made.population, name) for name in changed} == changed


def test_spread_multiplies_the_gap(small: EnvironmentSpec, data: DataFiles) -> None:
    dataset = data.dataset(small)
    whole, half = (replace(small, spread=s).make(dataset, 1).gamma for s in (1.0, 0.5))
    assert half == pytest.approx(whole / 2)


def test_disturbances_are_passed_on(small: EnvironmentSpec, data: DataFiles) -> None:
    spec = replace(small, liars=2, liar_sd=9.0, outlier=7.0, uneven=3.0, within=0.2)
    made = spec.make(data.dataset(spec), 5)
    assert isinstance(made, environments.Disturbed)
    assert (made.n_liars, made.liar_sd, made.outlier, made.uneven, made.within) == (2, 9.0, 7.0, 3.0, 0.2)
    assert isinstance(replace(small, liar_sd=9.0).make(data.dataset(small), 5), environments.Stochastic)
    assert isinstance(replace(spec, offset=5.0).make(data.dataset(spec), 5), environments.Shifted)


def test_features_and_preferences_are_those_asked_for(small: EnvironmentSpec, data: DataFiles) -> None:
    dataset = data.dataset(small)
    plain, scaled = small.make(dataset, 1), replace(small, feature_scale=0.5, feature_spread=4.0)
    np.testing.assert_allclose(
        scaled.make(dataset, 1).block(0).items, plain.block(0).items * [0.5, 1.0, 2.0, 0.5]
    )
    continuum = replace(small, rank=2, n_clusters=8).make(dataset, 1)
    assert isinstance(continuum, environments.Stochastic)
    assert np.linalg.matrix_rank(continuum.preferences) == 2
    square = replace(small, onehot=True, pool_items=4, n_arms=4)
    assert square.make(data.dataset(square), 1).block(0).items.tolist() == np.eye(4).tolist()
    with pytest.raises(ArgumentError, match="as many items as dimensions, got 40 items of dimension 4"):
        replace(small, onehot=True).make(dataset, 1)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"liars": 1, "within": 0.1, "rewards": "bernoulli"},
            "liars and within: only for simulated rewards that",
        ),
        ({"outlier": 1.0, "setting": "rated"}, "outlier: only for simulated rewards"),
        ({"rank": 2, "setting": "rated"}, "'rated' has features and users of its own"),
    ],
)
def test_what_cannot_be_disturbed_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        EnvironmentSpec(**wrong)


@pytest.mark.parametrize(
    ("rewards", "sigma"),
    [
        ("gaussian", 0.2),
        ("uniform", 0.2 / np.sqrt(3)),
        ("bernoulli", 0.5),
        ("cauchy", 0.2),
        ("contaminated", 0.2),
    ],
)
def test_the_unit_of_tuning_is_the_deviation_of_most_rewards(rewards: Any, sigma: float) -> None:
    assert EnvironmentSpec(rewards=rewards, noise=0.2).reward_deviation == pytest.approx(sigma)
    assert EnvironmentSpec(rewards=rewards, noise=0.0).reward_deviation == 0.5


@pytest.mark.parametrize("wrong", [{"setting": "odd"}, {"rewards": "odd"}, {"spread": 0.0}])
def test_an_environment_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        EnvironmentSpec(**wrong)
