from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

from coterie.errors import ArgumentError
from coterie.experiments.run_store import Run, read_description
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from inspection import change_all_code

OTHER = {
    "threshold": 3.0,
    "offers": "known",
    "vectors": "text",
    "conversation": "taxes",
    "once": True,
    "dataset": "yelp",
    "setting": "smoothed",
    "rewards": "uniform",
    "scale": "raw",
    "sizes": "zipf",
    "adversary": "one",
    "spread": 0.5,
    "late": 0.5,
    "corruption": "random",
    "attraction": 0.5,
}


CLICKS = ("list_length", "attraction")
"""These are for rewards of 0 or 1."""


def test_the_same_run_has_the_same_id(run: Run) -> None:
    assert run.id == replace(run).id == read_description(run.description).id


@pytest.mark.parametrize("field", EnvironmentSpec.names())
def test_every_parameter_of_the_environment_changes_the_id(run: Run, field: str) -> None:
    before = replace(run.environment, rewards="bernoulli") if field in CLICKS else run.environment
    changed: dict[str, Any] = {field: OTHER[field] if field in OTHER else getattr(before, field) + 1}
    after = replace(run, environment=replace(before, **changed))
    assert after.id != replace(run, environment=before).id


@pytest.mark.parametrize("name", ["alpha", "beta", "explore", "ridge"])
def test_every_parameter_of_the_policy_changes_the_id(run: Run, name: str) -> None:
    policy = replace(run.policy, params={**run.policy.params, name: 7})
    assert replace(run, policy=policy).id != run.id


def test_policy_horizon_seed_record_and_data_change_the_id(run: Run) -> None:
    others = [
        replace(run, policy=replace(run.policy, name="UniSCLUB")),
        replace(run, horizon=401),
        replace(run, seed=4),
        replace(run, record=11),
        replace(run, data="ab" * 32),
    ]
    assert len({run.id, *(other.id for other in others)}) == 6


def test_the_code_changes_the_id(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run.id
    change_all_code(monkeypatch)
    assert replace(run).id != before


def test_the_description_is_json_of_one_form(run: Run) -> None:
    other = replace(run, policy=PolicySpec("UniCLUB", dict(reversed(list(run.policy.params.items())))))
    assert other.description == run.description
    told = json.loads(run.description)
    assert told["policy"] == {"name": "UniCLUB", "params": {"alpha": 1.0, "beta": 0.1, "explore": 20}}


def test_a_run_can_be_sent_to_another_process(run: Run) -> None:
    assert pickle.loads(pickle.dumps(run)) == run


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"horizon": 0}, {"record": 1.5}, {"horizon": True}])
def test_a_run_that_cannot_be_is_refused(run: Run, wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="must be a whole number of at least"):
        replace(run, **wrong)


def test_playing_twice_finds_the_same(run: Run, data: DataFiles) -> None:
    first, second = (run.play(data.dataset(run.environment)) for _ in range(2))
    assert first.regret.tolist() == second.regret.tolist()


def test_all_policies_of_a_seed_meet_the_same_rounds(run: Run, data: DataFiles) -> None:
    dataset = data.dataset(run.environment)
    blocks = [run.environment.make(dataset, run.seed).block(0) for _ in range(2)]
    assert (blocks[0].picks == blocks[1].picks).all()
    assert (blocks[0].noise == blocks[1].noise).all()
