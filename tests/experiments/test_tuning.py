from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.errors import ArgumentError
from coterie.experiments.engines.local import Local
from coterie.experiments.execute import execute
from coterie.experiments.figures import FIGURES
from coterie.experiments.grids import BUDGET, GRIDS, candidates
from coterie.experiments.shelf import Shelf
from coterie.experiments.store import Store
from coterie.experiments.tuning import FIRST_SEED, Protocol, Study, check_reported, choose, needed, trials
from coterie.experiments.watching import Silence
from coterie.experiments.worlds import World
from coterie.policies.catalogue import CATALOGUE


@pytest.mark.parametrize("policy", GRIDS)
def test_every_policy_has_the_same_budget(policy: str) -> None:
    tried = candidates(policy, World())
    assert len(tried) == len(set(tried)) == BUDGET


def test_every_policy_of_a_figure_is_known_and_tuned() -> None:
    used = {policy for figure in FIGURES.values() for policy in figure.policies}
    assert used <= set(CATALOGUE)


def test_constants_scale_with_the_noise() -> None:
    for quiet, loud in zip(candidates("CLUB", World()), candidates("CLUB", World(noise=0.2)), strict=True):
        assert (loud.alpha, loud.beta) == (2 * (quiet.alpha or 0), 2 * (quiet.beta or 0))


def test_reported_seeds_are_never_tuned_on(small: World) -> None:
    study = Study(small, "CLUB", 100, None)
    seeds = {run.seed for run in needed([study], Protocol())}
    assert min(seeds) >= FIRST_SEED
    check_reported(range(FIRST_SEED))
    with pytest.raises(ArgumentError, match="for tuning"):
        check_reported([0, FIRST_SEED])


def test_every_policy_is_tried_on_the_same_seeds_and_rounds(small: World) -> None:
    played = {
        tuple(
            (run.seed, run.horizon)
            for point in trials(Study(small, policy, 100, None), Protocol())
            for run in point
        )
        for policy in GRIDS
    }
    assert len(played) == 1


def test_trials_are_as_long_as_what_is_reported() -> None:
    assert (Protocol().rounds(500), Protocol().rounds(10**7)) == (500, 100_000)


def test_the_point_of_least_regret_is_chosen(small: World, store: Store, shelf: Shelf) -> None:
    study, protocol = Study(small, "LinUCBInd", 300, None), Protocol(n_seeds=1)
    execute("t", needed([study], protocol), store=store, engine=Local(2), shelf=shelf, watch=Silence())
    choice = choose(study, protocol, store)
    finals = [store.read(point[0]).regret[-1] for point in trials(study, protocol)]
    assert choice.regret == min(finals)
    assert choice.tried == BUDGET


def test_a_policy_without_constants_needs_no_trial(small: World, store: Store) -> None:
    study = Study(replace(small), "Unheard", 300, None)
    assert needed([study], Protocol()) == []
    assert choose(study, Protocol(), store).tried == 1
