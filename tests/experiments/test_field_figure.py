"""The figure `field`: who takes part, what papers claim of its worlds, and the table of who wins where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coterie.experiments.claims import Headlines, judge_claims, summary_sentence
from coterie.experiments.figures import FIELD_POLICIES, FIELD_WORLDS, Figure, find_figure
from coterie.experiments.plotting import VIEWS
from coterie.experiments.reproduction import FigurePlan, ReproduceOptions, reproduce
from coterie.experiments.results import Headline, Panel, multiples
from coterie.experiments.runner import DataFiles, LocalEngine, NoCallback
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.tables import multiple_table, winner_table
from coterie.experiments.tuning import TuningProtocol, trials
from coterie.policies.registry import REGISTRY
from experiments.test_claims import result
from experiments.test_real_figure import folder as folder

CLAIMED = (Headline("RCLUMB", "CLUB", "a paper"), Headline("CLUB", "SCLUB", "another"))


def panel(label: str = "misspecified") -> Panel:
    """CLUB is best, RCLUMB above it beyond the error, SCLUB within it; the oracle below all."""
    return Panel(
        "synthetic",
        label,
        "",
        0.0,
        0.5,
        (
            result("CLUB", 9, 10, 11),
            result("SCLUB", 8, 14, 9.5),
            result("RCLUMB", 18.5, 20, 21.5),
            result("LinUCBOracle", 5, 5, 5),
        ),
        headlines=CLAIMED,
    )


def small(figure: Figure) -> Figure:
    """The same in small worlds, played by a few quick policies."""
    quick = ("LinUCBInd", "CLUB", "RCLUMB", "AutoCLUB")
    variations = [
        replace(
            varied,
            environment=replace(
                varied.environment,
                n_users=8,
                n_clusters=2,
                n_arms=4,
                dim=4,
                pool_users=12,
                pool_items=40,
                corrupted_rounds=50,
            ),
            policies=quick,
            horizon=None,
        )
        for varied in figure.variations
    ]
    once = EnvironmentSpec(n_users=8, n_clusters=2, n_arms=4, dim=4, pool_users=12, pool_items=40)
    return replace(figure, policies=quick, variations=tuple(variations), tuned_in=once)


def test_every_headline_is_about_policies_that_play_there() -> None:
    assert set(FIELD_POLICIES) <= set(REGISTRY)
    newer = {"CAB", "COFIBA", "CoDBand", "DyClu", "LOCB", "RCLUBWCU", "RCLUMB", "RSCLUMB"}
    assert newer <= set(FIELD_POLICIES)
    for varied in FIELD_WORLDS:
        playing = set(varied.policies or FIELD_POLICIES)
        assert {name for one in varied.headlines for name in (one.lower, one.higher)} <= playing
        assert set(FIELD_POLICIES) <= playing or varied.label in ("duels", "lists")
        assert varied.headlines


def test_nobody_is_told_clusters_but_the_oracle() -> None:
    told = {name for name in FIELD_POLICIES if {"labels", "graph"} & set(REGISTRY[name].parameters)}
    assert not told
    assert all("LinUCBOracle" not in (v.policies or ()) for v in FIELD_WORLDS if v.environment.is_real)


def test_worlds_are_those_of_the_papers() -> None:
    worlds = {varied.label: varied.environment for varied in FIELD_WORLDS}
    assert (worlds["Figure 1"].dim, worlds["Figure 1"].n_arms, worlds["Figure 1"].n_users) == (50, 100, 50)
    assert worlds["misspecified"].misspecification == 0.2
    assert worlds["corrupted users"].corrupted == 0.1
    assert (worlds["jumps"].jumps, worlds["jumps"].n_users, worlds["jumps"].n_clusters) == (1750, 10, 2)
    assert worlds["Zipf arrivals"].zipf == 1.0
    assert (worlds["lists"].list_length, worlds["lists"].rewards) == (4, "bernoulli")


def test_lists_are_shown_by_those_who_are_made_for_them() -> None:
    (lists,) = [varied for varied in FIELD_WORLDS if varied.environment.list_length > 1]
    assert {"CascadeLinUCB", "CLUBCascade"} <= set(lists.policies or ())
    assert Headline("CLUBCascade", "CascadeLinUCB", "Li and Zhang 2018") in lists.headlines
    assert Headline("AutoCLUB", "CLUBCascade", "ours") in lists.headlines


def test_points_of_grids_are_played_on_one_seed(data: DataFiles) -> None:
    plan = FigurePlan(
        figure=find_figure("field").on(("synthetic",)), seeds=(0,), protocol=TuningProtocol(n_seeds=2)
    )
    (study,) = [one for one in plan.studies(data)[:40] if one.policy == "CLUB"][:1]
    assert [[run.seed for run in point] for point in trials(study, plan.protocol)] == [[1000]] * 24
    both = study._replace(trial_seeds=None)
    assert [[run.seed for run in point] for point in trials(both, plan.protocol)] == [[1000, 1001]] * 24


def test_headlines_are_judged_where_they_are_claimed() -> None:
    unclaimed = panel()._replace(headlines=())
    (finding,) = judge_claims((Headlines(),), [panel(), unclaimed])
    first, second = finding.verdicts
    assert (first.claim, first.answer, first.evidence) == ("RCLUMB below CLUB (a paper)", "fails", "+100.0 %")
    assert (second.claim, second.answer) == ("CLUB below SCLUB (another)", "undecided")
    assert finding.clause == "of 2 headline claims 0 hold, 1 fail and 1 are undecided"
    assert finding.clause in summary_sentence((finding,), [panel()])


def test_the_table_says_who_wins_who_is_alike_and_who_comes_next() -> None:
    (row,) = winner_table([panel()]).rows
    assert row == ("Synthetic, misspecified", "CLUB", "10.0 ± 0.6", "SCLUB", "RCLUMB", "2.00")
    alone = panel()._replace(results=(result("CLUB", 1, 2),))
    assert winner_table([alone]).rows[0][3:] == ("–", "–", "–")


def test_multiples_are_of_the_least_but_the_oracles() -> None:
    other = panel("jumps")._replace(results=(result("CLUB", 30, 30, 30), result("SCLUB", 15, 15, 15)))
    found = multiples([panel(), other])
    assert list(found) == ["LinUCBOracle", "SCLUB", "CLUB", "RCLUMB"]
    assert found["CLUB"] == [1.0, 2.0]
    assert found["LinUCBOracle"][0] == 0.5
    rows = {row[0]: row[1:] for row in multiple_table([panel(), other]).rows}
    assert rows["RCLUMB"] == ("2.00", "–")


def test_the_least_of_each_world_is_drawn_in_bold() -> None:
    (axes,) = VIEWS["winners"]([panel(), panel("jumps")]).axes
    bold = [text for text in axes.texts if text.get_fontweight() == "bold"]
    assert [text.get_text() for text in bold] == ["1.00", "1.00"]
    assert len(axes.texts) == 8


def test_the_figure_is_played_in_every_world(folder: Path, tmp_path: Path) -> None:
    options = ReproduceOptions(
        figures=(small(find_figure("field")),),
        out=tmp_path / "out",
        protocol=TuningProtocol(),
        data=DataFiles(folder),
        horizon=60,
        seeds=2,
    )
    found = reproduce(options, LocalEngine(1), NoCallback())
    (outcome,) = found.figures
    assert len(outcome.panels) == 10
    assert len(outcome.tables[0].rows) == 10
    assert "headline claims" in outcome.sentence
    assert (tmp_path / "out" / "field" / "field.png").exists()
    assert "rounds each, on\nthe seeds 1000.</p>" in found.report.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["auto", "real", "fig-1"])
def test_other_figures_have_no_headlines_and_the_protocols_seeds(name: str) -> None:
    figure = find_figure(name)
    assert figure.trial_seeds is None
    assert not any(varied.headlines for varied in figure.variations)
