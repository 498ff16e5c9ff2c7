from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from coterie.errors import ArgumentError
from coterie.experiments import versions
from coterie.experiments.contenders import Contender
from coterie.experiments.runs import Run, read_description
from coterie.experiments.shelf import Shelf
from coterie.experiments.worlds import World

OTHER = {
    "dataset": "yelp",
    "setting": "smoothed",
    "rewards": "uniform",
    "scale": "raw",
    "sizes": "zipf",
    "adversary": "one",
    "spread": 0.5,
    "late": 0.5,
}


def test_the_same_run_has_the_same_id(run: Run) -> None:
    assert run.id == replace(run).id == read_description(run.description).id


@pytest.mark.parametrize("field", [field.name for field in fields(World)])
def test_every_parameter_of_the_world_changes_the_id(run: Run, field: str) -> None:
    changed: dict[str, Any] = {field: OTHER[field] if field in OTHER else getattr(run.world, field) + 1}
    assert replace(run, world=replace(run.world, **changed)).id != run.id


@pytest.mark.parametrize("field", ["alpha", "beta", "explore", "phase", "growth", "ridge"])
def test_every_constant_changes_the_id(run: Run, field: str) -> None:
    changed: dict[str, Any] = {field: 7}
    assert replace(run, contender=replace(run.contender, **changed)).id != run.id


def test_policy_horizon_seed_record_and_data_change_the_id(run: Run) -> None:
    others = [
        replace(run, contender=replace(run.contender, policy="UniSCLUB")),
        replace(run, horizon=401),
        replace(run, seed=4),
        replace(run, record=11),
        replace(run, data="ab" * 32),
    ]
    assert len({run.id, *(other.id for other in others)}) == 6


def test_the_algorithm_changes_the_id(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run.id
    monkeypatch.setattr("coterie.experiments.runs.algorithm", lambda *about: "another")
    assert replace(run).id != before


def test_a_version_covers_policy_kernels_and_environment() -> None:
    closure = versions._closure(
        ("coterie.policies.club", "coterie.simulation", "coterie.environments.smoothed")
    )
    wanted = {
        "coterie.kernels.club",
        "coterie.kernels.ridge",
        "coterie.environments.population",
        "coterie.seeding",
    }
    assert wanted <= closure


def test_a_version_leaves_out_files_of_other_policies() -> None:
    closure = versions._closure(("coterie.policies.club", "coterie.simulation"))
    assert not {"coterie.policies.sclub", "coterie.policies.phase", "coterie.policies.catalogue"} & closure


def test_versions_cover_how_worlds_and_contenders_are_made() -> None:
    closure = versions._closure(("coterie.experiments.worlds", "coterie.experiments.contenders"))
    assert {"coterie.environments.lifting", "coterie.experiments.contenders"} <= closure
    assert not any(name.startswith("coterie.policies") for name in closure)


def test_versions_ignore_remarks() -> None:
    assert '"""' not in versions._source("coterie.kernels.club")


def test_playing_twice_finds_the_same(run: Run, shelf: Shelf) -> None:
    first, second = (run.play(shelf.dataset(run.world)) for _ in range(2))
    assert first.regret.tolist() == second.regret.tolist()


def test_all_policies_of_a_seed_meet_the_same_rounds(run: Run, shelf: Shelf) -> None:
    data = shelf.dataset(run.world)
    blocks = [run.world.environment(data, run.seed).block(0) for _ in range(2)]
    assert (blocks[0].picks == blocks[1].picks).all()
    assert (blocks[0].noise == blocks[1].noise).all()


@pytest.mark.parametrize("rewards", ["gaussian", "uniform", "bernoulli"])
@pytest.mark.parametrize("setting", ["stochastic", "smoothed"])
def test_every_kind_of_world_can_be_played(run: Run, shelf: Shelf, setting: str, rewards: str) -> None:
    if (setting, rewards) == ("smoothed", "bernoulli"):
        return  # blurred arms have means outside [0, 1], which the environment refuses itself
    changed: dict[str, Any] = {"setting": setting, "rewards": rewards}
    world = replace(run.world, **changed)
    assert replace(run, world=world, horizon=100).play(shelf.dataset(world)).rounds[-1] == 100


@pytest.mark.parametrize(
    "policy",
    ["LinUCBOne", "LinUCBInd", "LinUCBOracle", "CLUB", "SCLUB", "PhaseUniCLUB", "GOBLin", "GraphUCB"],
)
def test_every_kind_of_policy_can_be_made(run: Run, shelf: Shelf, policy: str) -> None:
    contender = Contender(policy=policy, alpha=1.0, beta=0.1, explore=5, phase=5)
    trace = replace(run, contender=contender, horizon=60).play(shelf.dataset(run.world))
    assert trace.policy == policy


def test_spread_multiplies_the_gap(small: World, shelf: Shelf) -> None:
    data = shelf.dataset(small)
    whole, half = (replace(small, spread=s).environment(data, 1).gamma for s in (1.0, 0.5))
    assert half == pytest.approx(whole / 2)


@pytest.mark.parametrize("wrong", [{"setting": "odd"}, {"rewards": "odd"}, {"spread": 0.0}])
def test_a_world_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        World(**wrong)
