from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.experiments.run_store import Run, Store
from coterie.experiments.runner import (
    Callback,
    DataFiles,
    Engine,
    LocalEngine,
    NoCallback,
    PlayedRun,
    Runner,
    cost,
)
from coterie.experiments.specs import PolicySpec
from coterie.simulation import Trace


class Counting:
    """A local engine that remembers what it was asked to play."""

    def __init__(self) -> None:
        self.played: list[Run] = []

    def play(self, runs: Sequence[Run], data: DataFiles, callback: Callback) -> Iterator[PlayedRun]:
        self.played += runs
        return LocalEngine(2).play(runs, data, callback)


class Impatient(NoCallback):
    """Somebody who presses Ctrl-C when some runs are finished."""

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def finish(self, run: Run, trace: Trace) -> None:
        self.patience -= 1
        if self.patience == 0:
            raise KeyboardInterrupt


@pytest.fixture
def runs(run: Run) -> list[Run]:
    makers = [
        run.policy,
        PolicySpec("SCLUB", {"alpha": 1.0, "beta": 0.1}),
        PolicySpec("LinUCBInd", {"beta": 0.1}),
    ]
    return [replace(run, policy=maker, seed=seed) for maker in makers for seed in range(3)]


def go(
    runs: Sequence[Run], folder: Path, engine: Engine, callback: Callback | None = None
) -> dict[str, bytes]:
    store = Store(folder)
    Runner(store, engine, DataFiles(), callback or NoCallback()).play("test", runs)
    return {path.name: path.read_bytes() for path in store.folder.iterdir()}


def test_one_job_and_two_write_the_same_bytes(runs: list[Run], tmp_path: Path) -> None:
    assert go(runs, tmp_path / "one", LocalEngine(1)) == go(runs, tmp_path / "two", LocalEngine(2))


def test_finished_runs_are_not_repeated(runs: list[Run], tmp_path: Path) -> None:
    go(runs[:4], tmp_path, LocalEngine(2))
    engine = Counting()
    go([*runs, *runs], tmp_path, engine)
    assert {run.id for run in engine.played} == {run.id for run in runs[4:]}
    assert len(engine.played) == 5


def test_an_interrupted_experiment_goes_on_where_it_stopped(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(runs, tmp_path / "cut", LocalEngine(2), Impatient(3))
    kept = {finished.id for finished in Store(tmp_path / "cut")}
    assert len(kept) == 3
    engine = Counting()
    assert go(runs, tmp_path / "cut", engine) == go(runs, tmp_path / "whole", LocalEngine(2))
    assert kept.isdisjoint(run.id for run in engine.played)


def test_a_failing_run_stops_the_others_and_keeps_what_is_finished(runs: list[Run], tmp_path: Path) -> None:
    wrong = replace(runs[0], policy=PolicySpec("CLUB", {"alpha": -1.0, "beta": 0.1}))
    with pytest.raises(ValueError, match="alpha"):
        go([*runs, wrong], tmp_path, LocalEngine(1))


def test_slow_runs_begin_first(run: Run, tmp_path: Path) -> None:
    slow = replace(run, policy=PolicySpec("GraphUCB", {"alpha": 0.1}))
    engine = Counting()
    go([run, slow], tmp_path, engine)
    assert engine.played[0] == slow
    assert cost(slow) > cost(run)


def test_a_crowd_costs_more_where_clusters_are_looked_for(run: Run) -> None:
    def at(policy: str, n_users: int) -> float:
        world = replace(run.environment, n_users=n_users)
        return cost(replace(run, environment=world, policy=PolicySpec(policy)))

    assert at("CLUB", 20) == at("CLUB", 50) < at("AutoCLUB", 50) == at("SASCLUB", 50)
    assert 30 < at("CLUB", 500) < 55
    assert 70 < at("AutoCLUB", 500) < 150
    assert at("LinUCBInd", 500) == at("LinUCBInd", 50)


@pytest.mark.parametrize("named", ["~/data", "data"])
def test_the_variable_finds_what_a_folder_finds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: str
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COTERIE_DATA", named)
    found = DataFiles().path("movielens")
    assert found == DataFiles(Path(named)).path("movielens")
    assert found is not None
    assert found.samefile(tmp_path / "data")


def test_a_dataset_may_have_a_place_of_its_own(tmp_path: Path) -> None:
    data = DataFiles(tmp_path, files={"movielens": tmp_path / "ml.zip"})
    assert data.path("movielens") == tmp_path / "ml.zip"
    assert data.path("lastfm") == tmp_path
    assert data.path("synthetic") is None
