"""The figure `real`, on generated files in the original formats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from coterie.experiments.claims import Below
from coterie.experiments.figures import Figure, find_figure
from coterie.experiments.reproduction import ReproduceOptions, available, reproduce
from coterie.experiments.runner import DataFiles, NoCallback, find_engine
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.tuning import TuningProtocol
from coterie.policies.registry import REGISTRY


def small(figure: Figure) -> Figure:
    """The same with short vectors, few arms and a few quick policies."""
    variations = tuple(
        replace(
            one,
            environment=replace(env, dim=4, n_arms=5, default_payoff=6 * env.default_payoff),
            horizon=None,
        )
        for one, env in ((one, one.environment) for one in figure.variations)
    )
    quick = ("LinUCBOne", "AutoCLUB")
    once = EnvironmentSpec(n_users=8, n_clusters=2, n_arms=5, dim=4, pool_users=12, pool_items=20)
    return replace(
        figure,
        policies=quick,
        tuned_in=once,
        variations=tuple(
            replace(v, policies=("AutoCLUB", "GOBLin") if v.policies else None) for v in variations
        ),
    )


def test_everyone_who_needs_no_clusters_takes_part() -> None:
    figure = find_figure("real")
    assert {"AutoCLUB", "CLUB", "DynUCB", "LinTSInd"} <= set(figure.policies)
    assert not {"LinUCBOracle", "LinTSOracle", "GOBLin"} & set(figure.policies)
    assert set(figure.policies) <= set(REGISTRY)
    assert {"GOBLin", "GraphUCB"} <= set(figure.variations[-1].policies or ())
    assert Below("AutoCLUB", "CLUB") in figure.claims
    assert all(variation.environment.is_real for variation in figure.variations)


def test_the_figure_is_played_on_every_world(feedback: Path, tmp_path: Path) -> None:
    options = ReproduceOptions(
        figures=(small(find_figure("real")),),
        out=tmp_path / "out",
        protocol=TuningProtocol(n_seeds=1),
        data=DataFiles(feedback),
        horizon=60,
        seeds=2,
    )
    found = reproduce(options, find_engine("local")(1), NoCallback())
    (result,) = found.figures
    assert len(result.panels) == 20
    assert {panel.dataset for panel in result.panels} == set(find_figure("real").datasets)
    relative, _, clusters, *_ = result.tables
    assert [row[0] for row in clusters.rows] == ["LinUCBOne", "AutoCLUB"]
    assert clusters.heading[1:3] == ("Polis, votes", "Polis, votes, each once")
    assert all(title.startswith("Polis") for title in clusters.heading[1:])
    assert "uniform play" in relative.title
    cells = {row[0]: row[1:] for row in relative.rows}
    assert "±" in cells["MovieLens, ratings"][0]
    assert set(cells["Last.fm, one heard of 25, else −1/24"][:2]) == {"–"}  # uniform play earns nothing there
    assert "least regret" in result.sentence
    assert (tmp_path / "out" / "real" / "real.png").exists()


def test_a_dataset_without_its_files_is_left_out(feedback: Path, tmp_path: Path) -> None:
    (feedback / "hetrec" / "user_artists.dat").unlink()
    options = ReproduceOptions(
        figures=(small(find_figure("real")),),
        out=tmp_path / "out",
        protocol=TuningProtocol(n_seeds=1),
        data=DataFiles(feedback),
        horizon=30,
        seeds=1,
    )
    found = reproduce(options, find_engine("local")(1), NoCallback())
    others = set(find_figure("real").datasets) - {"lastfm"}
    assert {panel.dataset for panel in found.figures[0].panels} == others
    assert "user_artists.dat" in found.skipped[0]
    assert available([find_figure("real").on(("synthetic",))], ()) == []
