"""AutoCLUB's own table: its worlds, what they share with the paper's figures, and what comes out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coterie.cli.reproduce import show_files, show_tables
from coterie.environments.blocks import BLOCK
from coterie.environments.disturbed import OUTLIER_ROUND
from coterie.experiments.figures import HARD_WORLDS, Figure, find_figure
from coterie.experiments.reproduction import FigurePlan, PanelSpec, ReproduceOptions, Reproduction, reproduce
from coterie.experiments.results import Limit
from coterie.experiments.runner import DataFiles, LocalEngine, NoCallback
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.tuning import TuningProtocol

pytestmark = pytest.mark.slow


def plan(name: str, horizon: int | None = None, *, datasets: tuple[str, ...] | None = None) -> FigurePlan:
    figure = find_figure(name) if datasets is None else find_figure(name).on(datasets)
    return FigurePlan(figure=figure, horizon=horizon, seeds=(0, 1), protocol=TuningProtocol())


def panels_of(label: str, horizon: int | None = None) -> list[PanelSpec]:
    return [spot for spot in plan("auto", horizon).panel_specs() if spot.label == label]


def small(world: EnvironmentSpec) -> EnvironmentSpec:
    clusters, items = min(8, world.n_clusters), 4 if world.onehot else 40
    return replace(
        world,
        n_users=8,
        n_clusters=clusters,
        n_arms=min(world.n_arms, 4),
        dim=4,
        pool_users=12,
        pool_items=items,
    )


def shrunk() -> Figure:
    """The figure in small worlds, with the cheapest policies of each."""
    figure = find_figure("auto")
    kept = ("LinUCBOne", "LinUCBInd", "AutoCLUB", "LinUCBOracle")
    variations = [
        replace(
            varied,
            environment=small(varied.environment),
            policies=tuple(policy for policy in varied.policies or kept if policy in kept),
        )
        for varied in figure.variations
    ]
    once = small(EnvironmentSpec())  # grids are played in one world, not in each
    return replace(figure, datasets=("synthetic",), variations=tuple(variations), tuned_in=once)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    request = ReproduceOptions(
        figures=(shrunk(),),
        out=tmp_path_factory.mktemp("auto"),
        horizon=120,
        seeds=2,
        protocol=TuningProtocol(n_seeds=1),
        command="coterie reproduce auto",
    )
    return reproduce(request, LocalEngine(1), NoCallback())


def test_a_world_is_played_on_its_own_datasets_by_its_own_policies_for_its_own_time() -> None:
    assert [spot.environment.dataset for spot in panels_of("no clusters")] == ["synthetic", "movielens"]
    assert [spot.environment.dataset for spot in panels_of("clusters")] == list(find_figure("auto").datasets)
    (bernoulli,) = panels_of("0/1 rewards")
    assert (bernoulli.environment.dataset, bernoulli.horizon) == ("synthetic", 20_000)
    assert set(bernoulli.policies) == {"LinUCBOne", "LinUCBInd", "CLUB", "SCLUB", "AutoCLUB", "LinUCBOracle"}
    assert {spot.horizon for spot in panels_of("clusters, T = 100,000")} == {100_000}


def test_a_given_horizon_holds_for_all_and_what_it_makes_equal_is_played_once() -> None:
    assert {spot.horizon for spot in plan("auto", 300).panel_specs()} == {300}
    once = {(spot.environment, spot.policies) for spot in plan("auto").panel_specs()}
    assert len(plan("auto", 300).panel_specs()) == len(once) < len(plan("auto").panel_specs())
    assert [spot.environment.dataset for spot in panels_of("clusters", 300)] == list(
        find_figure("auto").datasets
    )
    labels = [spot.label for spot in plan("gap", 300).panel_specs()]
    assert labels == [varied.label for varied in find_figure("gap").variations]


def test_the_runs_are_those_of_the_panels_of(data: DataFiles) -> None:
    ours = plan("auto", datasets=("synthetic",))
    wanted = {
        (spot.tuned_in, policy, spot.horizon) for spot in ours.panel_specs() for policy in spot.policies
    }
    assert {study[:3] for study in ours.studies(data)} == wanted


@pytest.mark.parametrize(("name", "label"), [("fig-1", "clusters, T = 100,000"), ("fig-2", "smoothed")])
def test_the_studies_of_the_papers_figures_are_used_again(name: str, label: str, data: DataFiles) -> None:
    theirs, ours = plan(name, datasets=("synthetic",)), plan("auto", datasets=("synthetic",))
    assert set(theirs.studies(data)) < set(ours.studies(data))
    worlds = [(spot.environment, spot.tuned_in, spot.horizon) for spot in plan(name).panel_specs()]
    assert [(spot.environment, spot.tuned_in, spot.horizon) for spot in panels_of(label)] == worlds


def test_every_world_has_our_policy_and_the_oracle_and_somebody_to_be_measured_against() -> None:
    for spot in plan("auto").panel_specs():
        assert {"AutoCLUB", "LinUCBOracle"} < set(spot.policies)
        limit = spot.variation.limit
        assert limit is None or limit.of is None or limit.of in spot.policies


def test_hard_worlds_are_played_on_the_synthetic_data_for_the_figures_time() -> None:
    hard = {varied.label for varied in HARD_WORLDS}
    assert len(hard) == len(HARD_WORLDS) == 29
    spots = [spot for spot in plan("auto").panel_specs() if spot.label in hard]
    assert {(spot.environment.dataset, spot.horizon) for spot in spots} == {("synthetic", 20_000)}
    assert len({spot.environment for spot in spots}) == len(HARD_WORLDS)
    (liar,) = panels_of("a liar of sd 5")
    assert (liar.environment.liars, liar.environment.liar_sd, liar.environment.dim) == (1, 5.0, 20)
    (alone,) = panels_of("1,000 users, none alike")
    assert alone.variation.limit == Limit(1.15, of="LinUCBInd")


@pytest.mark.parametrize("label", [varied.label for varied in HARD_WORLDS])
def test_every_hard_world_can_be_made(label: str, data: DataFiles) -> None:
    (spot,) = panels_of(label)
    world = spot.environment.make(data.dataset(spot.environment), 0)
    block = world.block(OUTLIER_ROUND // BLOCK)
    assert np.isfinite(block.means).all()
    assert np.isfinite(block.noise).all()
    assert world.n_users == spot.environment.n_users


def test_there_is_a_table_a_picture_a_summary_and_a_report(found: Reproduction) -> None:
    (outcome,) = found.figures
    table = outcome.tables[0]
    assert len(table.rows) == len(outcome.panels) == len({v.label for v in shrunk().variations})
    folder = found.options.out / "auto"
    for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert (folder / f"auto.{kind}").read_bytes().startswith(magic)
    lines = (folder / "summary.csv").read_text().splitlines()
    assert len(lines) == 1 + sum(len(panel.results) for panel in outcome.panels)
    page = found.report.read_text()
    assert "AutoCLUB at most 0.65 × the best other" in page
    assert "T = 120; seeds 0 to 1" in page


def test_the_table_divides_means(found: Reproduction) -> None:
    (outcome,) = found.figures
    row = next(row for row in outcome.tables[0].rows if row[0] == "one cluster")
    panel = next(panel for panel in outcome.panels if panel.label == "one cluster")
    own = panel.result("AutoCLUB")
    assert own is not None
    means = {entry.policy: float(entry.finals.mean()) for entry in panel.results}
    assert row[2] == str(own.final("regret"))
    assert row[3:5] == ("LinUCBOne", f"{means['LinUCBOne']:,.0f}")
    assert row[5] == f"{means['AutoCLUB'] / means['LinUCBOne']:.2f}"
    assert row[6:8] == ("≤ 2.00", "yes" if means["AutoCLUB"] <= 2 * means["LinUCBOne"] else "no")
    assert row[9] == f"{means['AutoCLUB'] / means['LinUCBOracle']:.2f}"


def test_only_worlds_with_a_limit_are_judged(found: Reproduction) -> None:
    (outcome,) = found.figures
    verdicts = outcome.findings[0].verdicts
    assert len(verdicts) == len(outcome.panels) - 1
    assert "Synthetic, 0/1 rewards" not in {verdict.where for verdict in verdicts}
    unjudged = [row[0] for row in outcome.tables[0].rows if row[6:8] == ("–", "–")]
    assert unjudged == ["0/1 rewards"]


def test_the_terminal_ends_with_what_was_kept(
    found: Reproduction, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    show_tables(found)
    show_files(found)
    lines = capsys.readouterr().out.strip().splitlines()
    report = next(k for k, line in enumerate(lines) if line.startswith("report: "))
    assert "AutoCLUB keeps its limit in " in " ".join(lines[report + 1 :])
    assert any(line.endswith(str(Path("auto") / "auto.png")) for line in lines)
    assert any("LinUCBOne" in line and "≤ 2.00" in line for line in lines)
