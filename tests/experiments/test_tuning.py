from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coterie.errors import ArgumentError
from coterie.experiments.figures import FIGURES
from coterie.experiments.run_store import Store
from coterie.experiments.runner import DataFiles, LocalEngine, NoCallback, Runner
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.tuning import (
    BUDGET,
    FIRST_SEED,
    Study,
    TuningProtocol,
    candidates,
    check_reported,
    choose,
    theory_beta,
    trials,
    tuning_runs,
    usual_spec,
)
from coterie.policies.factories import find_factory
from coterie.policies.registry import REGISTRY

WITH_GRID = [name for name, entry in REGISTRY.items() if list(entry.grid.axes())]


@pytest.mark.parametrize("policy", WITH_GRID)
def test_every_policy_has_the_same_budget(policy: str) -> None:
    tried = candidates(policy, EnvironmentSpec())
    assert len(tried) == len(set(tried)) == BUDGET


def test_every_policy_of_a_figure_is_known_and_tuned() -> None:
    used = {policy for figure in FIGURES.values() for policy in figure.policies}
    assert used <= set(REGISTRY)


def test_factors_scale_with_the_noise_and_lengths_with_the_users() -> None:
    one = candidates("PhaseUniCLUB", EnvironmentSpec())
    two = candidates("PhaseUniCLUB", EnvironmentSpec(noise=0.2, n_users=100))
    for quiet, loud in zip(one, two, strict=True):
        assert dict(loud.params) == {name: 2 * float(value) for name, value in quiet.params.items()}
        assert [type(loud.params[name]) for name in ("alpha", "explore")] == [float, int]


@pytest.mark.parametrize("rewards", ["uniform", "bernoulli"])
def test_the_unit_is_the_deviation_of_rewards(rewards: Any) -> None:
    (least, *_) = candidates("LinUCBInd", EnvironmentSpec(rewards=rewards, noise=0.3))
    assert least.params["beta"] == pytest.approx({"uniform": 0.03 / 3**0.5, "bernoulli": 0.05}[rewards], 1e-4)


@pytest.mark.parametrize("policy", REGISTRY)
def test_every_policy_takes_what_is_tried_and_what_is_usual(policy: str) -> None:
    maker = find_factory(policy)
    for spec in (usual_spec(policy, EnvironmentSpec()), *candidates(policy, EnvironmentSpec())):
        maker.check(spec.params)


def test_reported_seeds_are_never_tuned_on(small: EnvironmentSpec) -> None:
    study = Study(small, "CLUB", 100, None)
    seeds = {run.seed for run in tuning_runs([study], TuningProtocol())}
    assert min(seeds) >= FIRST_SEED
    check_reported(range(FIRST_SEED))
    with pytest.raises(ArgumentError, match="for tuning"):
        check_reported([0, FIRST_SEED])


def test_every_policy_is_tried_on_the_same_seeds_and_rounds(small: EnvironmentSpec) -> None:
    played = {
        tuple(
            (run.seed, run.horizon)
            for point in trials(Study(small, policy, 100, None), TuningProtocol())
            for run in point
        )
        for policy in WITH_GRID
    }
    assert len(played) == 1


def test_trials_are_as_long_as_what_is_reported() -> None:
    assert (TuningProtocol().rounds(500), TuningProtocol().rounds(10**7)) == (500, 100_000)


def test_the_point_of_least_regret_is_chosen(small: EnvironmentSpec, store: Store, data: DataFiles) -> None:
    study, protocol = Study(small, "LinUCBInd", 300, None), TuningProtocol(n_seeds=1)
    Runner(store, LocalEngine(2), data, NoCallback()).play("t", tuning_runs([study], protocol))
    choice = choose(study, protocol, store)
    finals = [store.read(point[0]).regret[-1] for point in trials(study, protocol)]
    assert choice.regret == min(finals)
    assert choice.tried == BUDGET


def test_a_policy_without_constants_needs_no_trial(small: EnvironmentSpec, store: Store) -> None:
    study = Study(small, "AutoCLUB", 300, None)
    assert tuning_runs([study], TuningProtocol()) == []
    assert choose(study, TuningProtocol(), store).tried == 1


def test_with_the_theorys_widths_beta_is_the_same_for_all_and_the_rest_is_tuned() -> None:
    world = EnvironmentSpec()
    beta = 0.1 * (2 * np.log(60_000) + 50 * np.log(1 + 60_000 / 50)) ** 0.5 + 1.0
    for policy, points in (("LinUCBInd", 1), ("CLUB", 6), ("AutoCLUB", 1)):
        tried = candidates(policy, world, widths="theory", horizon=60_000)
        assert len(tried) == points
        assert all(spec.params.get("beta", beta) == pytest.approx(beta, rel=1e-5) for spec in tried)
    graphs = candidates("GOBLin", world, widths="theory", horizon=60_000)
    assert {spec.params["ridge"]: spec.params["alpha"] for spec in graphs} == {
        ridge: theory_beta(world, 60_000, ridge=ridge) for ridge in (0.1, 1.0)
    }
    alphas = {spec.params["alpha"] for spec in candidates("CLUB", world)}
    assert {spec.params["alpha"] for spec in candidates("CLUB", world, widths="theory")} == alphas


def test_a_study_with_the_theorys_widths_is_another_study(small: EnvironmentSpec) -> None:
    tuned, theory = Study(small, "CLUB", 100, None), Study(small, "CLUB", 100, None, "theory")
    first, second = ({run.id for run in tuning_runs([s], TuningProtocol())} for s in (tuned, theory))
    assert len(second) < len(first)
    assert not first & second
