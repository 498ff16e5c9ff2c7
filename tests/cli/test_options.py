"""What the shell completes is what there is."""

from __future__ import annotations

from typing import get_args, get_type_hints

from coterie.cli import options
from coterie.datasets import names
from coterie.datasets.factorise import SCALES
from coterie.experiments.figures import FIGURES, PAPER_DATASETS
from coterie.experiments.run_plan import DEFAULT_POLICIES
from coterie.experiments.runner import ENGINES
from coterie.experiments.specs import EnvironmentSpec
from coterie.policies.registry import REGISTRY


def test_completion_knows_everything_that_has_a_name() -> None:
    assert sorted(options.policy_names()) == sorted(REGISTRY)
    assert names() == options.DATASETS
    assert PAPER_DATASETS == options.PAPER_DATASETS
    played = {name for figure in FIGURES.values() for name in figure.datasets}
    assert played == set(options.FIGURE_DATASETS)
    assert tuple(FIGURES) == options.FIGURES
    assert tuple(ENGINES) == options.ENGINES
    assert f"{', '.join(DEFAULT_POLICIES[:-1])} and {DEFAULT_POLICIES[-1]}" == options.DEFAULT_POLICY_NAMES
    assert tuple(SCALES) == options.SCALES
    assert get_args(get_type_hints(EnvironmentSpec)["setting"]) == options.SETTINGS


def test_completion_does_not_care_about_case() -> None:
    assert options.complete_policy("uni") == ["UniCLUB", "UniSCLUB"]
    assert options.complete_dataset("MOVIEL") == ["movielens"]
    assert options.complete_figure("FIG-5") == ["fig-5"]


def test_a_dataset_that_is_named_is_not_offered_again() -> None:
    assert options.complete_datasets("") == list(options.FIGURE_DATASETS)
    assert options.complete_datasets("yelp,")[:3] == ["yelp,synthetic", "yelp,movielens", "yelp,lastfm"]
    assert options.complete_datasets("yelp,y") == []
