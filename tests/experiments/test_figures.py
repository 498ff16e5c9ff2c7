from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.errors import UnknownName
from coterie.experiments.claims import AsLong, Below
from coterie.experiments.figures import FIGURES, find_figure, find_figures
from coterie.experiments.plotting import styles_of
from coterie.experiments.reproduction import FigurePlan, available
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.experiments.tuning import TuningProtocol
from coterie.policies.registry import REGISTRY

NAMES = ["fig-1", "fig-2", "fig-3", "fig-4", "fig-5", "table-1", "table-2", "clusters", "gap"]
NAMES += ["auto", "real", "field"]
FIG_1 = {"LinUCBOne", "LinUCBInd", "CLUB", "SCLUB", "UniCLUB", "UniSCLUB"}


def test_everything_the_paper_shows_is_declared() -> None:
    assert set(NAMES) <= set(FIGURES)
    assert [figure.name for figure in find_figures(("all",))] == list(FIGURES)
    assert [figure.name for figure in find_figures(("fig-2", "fig-1", "fig-2"))] == ["fig-2", "fig-1"]


def test_a_wrong_name_suggests_the_right_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'fig-1'"):
        find_figure("fig1")


def test_figure_1_is_as_the_paper_has_it() -> None:
    figure = find_figure("fig-1")
    assert set(figure.policies) == {*FIG_1, "PhaseUniCLUB", "AutoCLUB"}
    assert figure.datasets == ("synthetic", "movielens", "lastfm", "yelp")
    world = figure.variations[0].environment
    assert (world.pool_users, world.n_users, world.n_clusters, world.n_arms) == (200, 50, 10, 100)
    assert (world.noise, figure.horizon) == (0.1, 100_000)


def test_figure_2_is_blurred_by_a_tenth() -> None:
    world = find_figure("fig-2").variations[0].environment
    assert world.setting == "smoothed"
    assert world.sigma**2 == pytest.approx(0.1)


def test_sweeps_are_those_of_the_paper() -> None:
    assert [v.environment.n_arms for v in find_figure("fig-3").variations] == [80, 100, 120, 140]
    assert [v.environment.n_users for v in find_figure("fig-4").variations] == [40, 50, 60, 70]
    assert {v.environment.n_clusters for v in find_figure("fig-4").variations} == {10}
    assert find_figure("fig-3").datasets == find_figure("fig-4").datasets == ("yelp",)


def test_table_2_times_the_runs_of_figure_5() -> None:
    five, two = find_figure("fig-5"), find_figure("table-2")
    assert (five.policies, five.variations, five.horizon) == (two.policies, two.variations, two.horizon)
    world = five.variations[0].environment
    assert (world.n_users, world.n_clusters, world.n_arms) == (20, 4, 20)


def test_what_the_pages_say_of_figures_4_and_5_and_table_2_is_judged() -> None:
    alone = ("LinUCBOne", "LinUCBInd")
    four = {Below(policy, other) for policy in ("UniCLUB", "UniSCLUB") for other in alone}
    five = {Below(policy, other) for policy in find_figure("fig-5").policies[2:] for other in alone}
    assert four <= set(find_figure("fig-4").claims)
    assert five <= set(find_figure("fig-5").claims)
    assert {AsLong("UniCLUB", "CLUB"), AsLong("UniSCLUB", "SCLUB")} <= set(find_figure("table-2").claims)


def test_clusters_shares_its_runs_with_figure_1(data: DataFiles) -> None:
    plans = [
        FigurePlan(
            figure=find_figure(name).on(("synthetic",)), horizon=1000, seeds=(0, 1), protocol=TuningProtocol()
        )
        for name in ("fig-1", "clusters")
    ]
    first, second = (set(plan.studies(data)) for plan in plans)
    assert second < first


def test_sweeps_are_tuned_once_a_dataset_and_the_gap_in_each_world(data: DataFiles) -> None:
    def tuned_in(name: str) -> set[EnvironmentSpec]:
        figure = find_figure(name).on(("synthetic",))
        plan = FigurePlan(figure=figure, horizon=1000, seeds=(0,), protocol=TuningProtocol())
        studies = plan.studies(data)
        assert len(studies) == len({study.environment for study in studies}) * len(figure.policies)
        return {study.environment for study in studies}

    assert tuned_in("fig-3") == {EnvironmentSpec()}
    assert tuned_in("gap") == {varied.environment for varied in find_figure("gap").variations}


def test_every_policy_has_its_own_look() -> None:
    used = {policy for figure in FIGURES.values() for policy in figure.policies}
    assert used <= set(REGISTRY)
    looks = [entry.style[1:] for entry in REGISTRY.values()]
    assert len(set(looks)) == len(looks)


def test_own_policies_are_drawn_in_colours_of_their_own() -> None:
    greedy, club, random = styles_of([PolicySpec(name) for name in ("mine:Greedy", "CLUB", "mine:Random")])
    assert [style.label for style in (greedy, club, random)] == ["Greedy", "CLUB", "Random"]
    ours = {entry.style.colour for entry in REGISTRY.values()}
    assert greedy.colour != random.colour
    assert not ours & {greedy.colour, random.colour}


def test_the_same_policy_with_other_parameters_keeps_its_colour_and_gets_another_line() -> None:
    one, two = styles_of([PolicySpec("CLUB", {"alpha": 1.0}), PolicySpec("CLUB", {"alpha": 2.0})])
    assert one.colour == two.colour
    assert (one.label, two.label) == ("CLUB (alpha 1)", "CLUB (alpha 2)")
    assert one.line != two.line


def test_a_missing_dataset_leaves_the_others() -> None:
    figures = [find_figure("fig-1"), find_figure("fig-3")]
    (left,) = available(figures, ("yelp", "lastfm"))
    assert left == replace(figures[0], datasets=("synthetic", "movielens"))
