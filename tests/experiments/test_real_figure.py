"""The figure `real`, on generated files in the original formats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coterie.experiments.claims import Below
from coterie.experiments.figures import Figure, find_figure
from coterie.experiments.reproduction import ReproduceOptions, available, reproduce
from coterie.experiments.runner import DataFiles, NoCallback, find_engine
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.tuning import TuningProtocol
from coterie.policies.registry import REGISTRY
from datasets import generated
from datasets.test_real_feedback import ROWS, lastfm_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    lastfm_folder(tmp_path / "data" / "hetrec")
    timed = [f"{u},{i},{r:.1f},{1000 + k}" for k, (u, i, r) in enumerate(ROWS)]
    lines = "\n".join(["userId,movieId,rating,timestamp", *timed])
    generated.write(tmp_path / "data" / "ml" / "ratings.csv", lines)
    generated.write(tmp_path / "data" / "yelp_academic_dataset_review.json", generated.yelp(ROWS))
    generated.write(
        tmp_path / "data" / "jester" / "ratings.csv", generated.jester_csv(generated.jester_ratings())
    )
    generated.write(tmp_path / "data" / "jester" / "jokes.csv", generated.jokes_csv())
    for name, seed in (("vtaiwan.uberx", 0), ("water", 1)):
        votes = generated.polis_votes(seed=seed)
        generated.polis_conversation(tmp_path / "data" / "polis" / name, votes)
    generated.coat_folder(tmp_path / "data" / "coat")
    generated.write(tmp_path / "data" / "tweets" / "ratings.dat", generated.tweeted(ROWS))
    return tmp_path / "data"


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


def test_the_figure_is_played_on_every_world(folder: Path, tmp_path: Path) -> None:
    options = ReproduceOptions(
        figures=(small(find_figure("real")),),
        out=tmp_path / "out",
        protocol=TuningProtocol(n_seeds=1),
        data=DataFiles(folder),
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


def test_a_dataset_without_its_files_is_left_out(folder: Path, tmp_path: Path) -> None:
    (folder / "hetrec" / "user_artists.dat").unlink()
    options = ReproduceOptions(
        figures=(small(find_figure("real")),),
        out=tmp_path / "out",
        protocol=TuningProtocol(n_seeds=1),
        data=DataFiles(folder),
        horizon=30,
        seeds=1,
    )
    found = reproduce(options, find_engine("local")(1), NoCallback())
    others = set(find_figure("real").datasets) - {"lastfm"}
    assert {panel.dataset for panel in found.figures[0].panels} == others
    assert "user_artists.dat" in found.skipped[0]
    assert available([find_figure("real").on(("synthetic",))], ()) == []
