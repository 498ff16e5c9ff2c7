from __future__ import annotations

from typing import Any

import pytest

from coterie.errors import ArgumentError
from coterie.experiments.engines.local import Local
from coterie.experiments.execute import execute
from coterie.experiments.figures import FIGURES
from coterie.experiments.makers import find_maker
from coterie.experiments.shelf import Shelf
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.store import Store
from coterie.experiments.tuning import (
    BUDGET,
    FIRST_SEED,
    Protocol,
    Study,
    candidates,
    check_reported,
    choose,
    needed,
    trials,
    usual_spec,
)
from coterie.experiments.watching import Silence
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
    maker = find_maker(policy)
    for spec in (usual_spec(policy, EnvironmentSpec()), *candidates(policy, EnvironmentSpec())):
        maker.check(spec.params)


def test_reported_seeds_are_never_tuned_on(small: EnvironmentSpec) -> None:
    study = Study(small, "CLUB", 100, None)
    seeds = {run.seed for run in needed([study], Protocol())}
    assert min(seeds) >= FIRST_SEED
    check_reported(range(FIRST_SEED))
    with pytest.raises(ArgumentError, match="for tuning"):
        check_reported([0, FIRST_SEED])


def test_every_policy_is_tried_on_the_same_seeds_and_rounds(small: EnvironmentSpec) -> None:
    played = {
        tuple(
            (run.seed, run.horizon)
            for point in trials(Study(small, policy, 100, None), Protocol())
            for run in point
        )
        for policy in WITH_GRID
    }
    assert len(played) == 1


def test_trials_are_as_long_as_what_is_reported() -> None:
    assert (Protocol().rounds(500), Protocol().rounds(10**7)) == (500, 100_000)


def test_the_point_of_least_regret_is_chosen(small: EnvironmentSpec, store: Store, shelf: Shelf) -> None:
    study, protocol = Study(small, "LinUCBInd", 300, None), Protocol(n_seeds=1)
    execute("t", needed([study], protocol), store=store, engine=Local(2), shelf=shelf, watch=Silence())
    choice = choose(study, protocol, store)
    finals = [store.read(point[0]).regret[-1] for point in trials(study, protocol)]
    assert choice.regret == min(finals)
    assert choice.tried == BUDGET


def test_a_policy_without_constants_needs_no_trial(small: EnvironmentSpec, store: Store) -> None:
    study = Study(small, "AutoCLUB", 300, None)
    assert needed([study], Protocol()) == []
    assert choose(study, Protocol(), store).tried == 1
