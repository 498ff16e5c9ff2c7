"""Small worlds that take milliseconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from coterie.experiments.run_store import Run, Store
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from datasets import generated
from datasets.test_real_feedback import ROWS, lastfm_folder

SMALL = EnvironmentSpec(n_users=8, n_clusters=2, n_arms=6, dim=4, pool_users=12, pool_items=40)


@pytest.fixture
def small() -> EnvironmentSpec:
    return SMALL


@pytest.fixture
def run() -> Run:
    contender = PolicySpec("UniCLUB", {"alpha": 1.0, "beta": 0.1, "explore": 20})
    return Run(environment=SMALL, policy=contender, horizon=400, seed=3, record=10)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def data() -> DataFiles:
    return DataFiles()


@pytest.fixture
def feedback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of generated files in the formats of every dataset of real feedback."""
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
