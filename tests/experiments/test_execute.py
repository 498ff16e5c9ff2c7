from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.experiments.engines.local import Local
from coterie.experiments.execute import Engine, Played, cost, execute
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.specs import PolicySpec
from coterie.experiments.store import Store
from coterie.experiments.watching import Silence, Watch
from coterie.simulation import Trace


class Counting:
    """A local engine that remembers what it was asked to play."""

    def __init__(self) -> None:
        self.played: list[Run] = []

    def play(self, runs: Sequence[Run], shelf: Shelf, watch: Watch) -> Iterator[Played]:
        self.played += runs
        return Local(2).play(runs, shelf, watch)


class Impatient(Silence):
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


def go(runs: Sequence[Run], folder: Path, engine: Engine, watch: Watch | None = None) -> dict[str, bytes]:
    store = Store(folder)
    execute("test", runs, store=store, engine=engine, shelf=Shelf(), watch=watch or Silence())
    return {path.name: path.read_bytes() for path in store.folder.iterdir()}


def test_one_job_and_two_write_the_same_bytes(runs: list[Run], tmp_path: Path) -> None:
    assert go(runs, tmp_path / "one", Local(1)) == go(runs, tmp_path / "two", Local(2))


def test_finished_runs_are_not_repeated(runs: list[Run], tmp_path: Path) -> None:
    go(runs[:4], tmp_path, Local(2))
    engine = Counting()
    go([*runs, *runs], tmp_path, engine)
    assert {run.id for run in engine.played} == {run.id for run in runs[4:]}
    assert len(engine.played) == 5


def test_an_interrupted_experiment_goes_on_where_it_stopped(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(runs, tmp_path / "cut", Local(2), Impatient(3))
    kept = {finished.id for finished in Store(tmp_path / "cut")}
    assert len(kept) == 3
    engine = Counting()
    assert go(runs, tmp_path / "cut", engine) == go(runs, tmp_path / "whole", Local(2))
    assert kept.isdisjoint(run.id for run in engine.played)


def test_a_failing_run_stops_the_others_and_keeps_what_is_finished(runs: list[Run], tmp_path: Path) -> None:
    wrong = replace(runs[0], policy=PolicySpec("CLUB", {"alpha": -1.0, "beta": 0.1}))
    with pytest.raises(ValueError, match="alpha"):
        go([*runs, wrong], tmp_path, Local(1))


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
