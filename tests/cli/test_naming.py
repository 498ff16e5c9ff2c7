"""What the shell completes is what there is."""

from __future__ import annotations

from typing import get_args, get_type_hints

from coterie.cli import naming
from coterie.datasets import names
from coterie.datasets.scales import SCALES
from coterie.experiments.engines import ENGINES
from coterie.experiments.figures import FIGURES
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.variations import PAPER
from coterie.policies.registry import REGISTRY


def test_completion_knows_everything_that_has_a_name() -> None:
    assert sorted(naming.policy_names()) == sorted(REGISTRY)
    assert names() == naming.DATASETS
    assert PAPER == naming.PAPER
    assert tuple(FIGURES) == naming.FIGURES
    assert tuple(ENGINES) == naming.ENGINES
    assert tuple(SCALES) == naming.SCALES
    assert get_args(get_type_hints(EnvironmentSpec)["setting"]) == naming.SETTINGS


def test_completion_does_not_care_about_case() -> None:
    assert naming.complete_policy("uni") == ["UniCLUB", "UniSCLUB"]
    assert naming.complete_dataset("MOV") == ["movielens"]
    assert naming.complete_figure("FIG-5") == ["fig-5"]


def test_a_dataset_that_is_named_is_not_offered_again() -> None:
    assert naming.complete_datasets("") == list(PAPER)
    assert naming.complete_datasets("yelp,") == ["yelp,synthetic", "yelp,movielens", "yelp,lastfm"]
    assert naming.complete_datasets("yelp,y") == []
