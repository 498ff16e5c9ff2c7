"""From settings to runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.plan import WARM, contender, plan, taken, world_of
from coterie.cli.settings import Settings
from coterie.errors import ArgumentError
from coterie.experiments.contenders import Contender
from coterie.experiments.engines.local import Local
from coterie.experiments.engines.ray import Ray
from coterie.experiments.execute import Played
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.store import Store
from coterie.experiments.watching import Silence, Watch
from coterie.policies import CATALOGUE

SMALL = Settings(users=8, clusters=2, arms=10, dim=5, horizon=64, seeds=(0, 1))


def made(spec: str, settings: Settings = SMALL) -> Contender:
    return contender(spec, settings, world_of(settings))


def test_the_default_is_autoclub() -> None:
    assert plan(SMALL).labels == ("AutoCLUB",)


def test_constants_come_from_the_spec_then_the_options_then_the_noise() -> None:
    assert made("CLUB") == Contender(policy="CLUB", alpha=1.5, beta=0.1)
    told = Settings(users=8, alpha=2.0, noise=0.5)
    assert made("CLUB:beta=0.3", told) == Contender(policy="CLUB", alpha=2.0, beta=0.3)
    assert made("UniCLUB").explore == 80


def test_the_alpha_of_graph_policies_is_what_beta_is_elsewhere() -> None:
    assert made("GOBLin") == Contender(policy="GOBLin", alpha=0.1)
    assert made("GraphUCB:alpha=0.7").alpha == 0.7


def test_a_policy_is_given_only_what_it_takes() -> None:
    assert taken("LinUCBInd") == ("beta", "ridge")
    assert taken("CLUB") == ("alpha", "beta", "ridge")
    assert taken("PhaseUniCLUB") == ("alpha", "beta", "explore", "phase", "ridge", "growth")
    assert made("LinUCBInd", Settings(explore=5, phase=3)) == Contender(policy="LinUCBInd", beta=0.1)


@pytest.mark.parametrize(
    ("policies", "given"),
    [
        ((), {"alpha": 2.0}),
        (("LinUCBInd", "CLUB"), {"beta": 0.1, "explore": 5}),
        (("GOBLin",), {"alpha": 2.0}),
        (("UniCLUB",), {"growth": 3.0}),
    ],
)
def test_a_constant_that_no_policy_takes_is_refused(policies: tuple[str, ...], given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=f"^{list(given)[-1]} is for policies that take it, and none"):
        plan(replace(SMALL, policies=policies, **given))


@pytest.mark.parametrize(
    ("policies", "given"),
    [
        ((), {"ridge": 2.0}),
        (("LinUCBInd", "UniCLUB"), {"alpha": 2.0, "explore": 5}),
        (("GOBLin",), {"beta": 2.0}),
    ],
)
def test_a_constant_that_one_policy_takes_will_do(policies: tuple[str, ...], given: dict[str, Any]) -> None:
    assert dict(plan(replace(SMALL, policies=policies, **given)).contenders[-1].constants())


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_policy_of_the_catalogue_can_be_run(name: str) -> None:
    planned = plan(Settings(policies=(name,), users=8, clusters=2, arms=10, dim=5, horizon=64, seeds=(0,)))
    trace = planned.runs[0].play(planned.shelf.dataset(planned.world))
    assert trace.rounds[-1] == 64


def test_contenders_of_one_policy_are_told_apart_by_their_constants() -> None:
    planned = plan(
        Settings(policies=("CLUB:alpha=1", "CLUB:alpha=2", "SCLUB", "SCLUB"), users=8, clusters=2, dim=5)
    )
    assert planned.labels == ("CLUB (alpha 1, beta 0.1)", "CLUB (alpha 2, beta 0.1)", "SCLUB")
    assert {planned.label(run) for run in planned.runs} == set(planned.labels)


def test_all_contenders_meet_the_same_worlds() -> None:
    planned = plan(Settings(policies=("CLUB", "SCLUB"), users=8, clusters=2, dim=5, seeds=(0, 1)))
    assert {run.world for run in planned.runs} == {planned.world}
    assert [run.seed for run in planned.runs] == [0, 1, 0, 1]


class Elsewhere:
    """An engine whose runs are played by other processes."""

    here = False

    def prepare(self, runs: Iterable[Run], watch: Watch) -> None:
        assert len(list(runs)) == 1

    def play(self, runs: Sequence[Run], shelf: Shelf, watch: Watch) -> Iterator[Played]:
        return iter(())


def test_nothing_is_warmed_up_here_for_runs_that_are_played_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planned, played = plan(replace(SMALL, policies=("LinUCBOne",))), []
    monkeypatch.setattr(Run, "play", lambda run, dataset: played.append(run.horizon))
    planned.warm_up(Store(tmp_path), Elsewhere(), Silence())
    assert played == []
    planned.warm_up(Store(tmp_path), Local(1), Silence())
    assert played == [WARM]
    assert not Ray.here
