"""Playing the runs that are not finished yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.store import Store
from coterie.experiments.watching import Watch
from coterie.traces import Trace

PACE = {
    "GOBLin": 250.0,
    "GraphUCB": 400.0,
    "PhaseUniCLUB": 40.0,
    **dict.fromkeys(("AutoCLUB", "SCLUB", "UniSCLUB", "SASCLUB"), 25.0),
}
SMOOTHED = 180.0
"""Rough microseconds a round (others: 12), smoothed arms besides: the order of work and the time left."""

FIXED = frozenset({"LinUCBOne", "LinUCBInd", "LinUCBOracle", "GOBLin", "GraphUCB"})
CROWD, SHARE = 50, 0.3
"""Policies not in `FIXED` look for clusters: they take this share longer for each further 50 users."""


class Played(NamedTuple):
    """A run and what it found, as it comes from an engine."""

    run: Run
    trace: Trace


class Engine(Protocol):
    """Where runs are played."""

    @property
    def here(self) -> bool:
        """Does this process play them, so that what is compiled in it serves them?"""

    def prepare(self, runs: Iterable[Run], watch: Watch) -> None:
        """Runs like these will be played soon."""

    def play(self, runs: Sequence[Run], shelf: Shelf, watch: Watch) -> Iterator[Played]:
        """Every run once, in whatever order they finish; closing the iterator stops the rest."""


def cost(run: Run) -> float:
    """About how many microseconds a round of this run takes."""
    policy, world = run.contender.policy, run.world
    arms = SMOOTHED * world.n_arms / 100 if world.setting == "smoothed" else 0.0
    crowd = 0.0 if policy in FIXED else max(0.0, world.n_users / CROWD - 1)
    return PACE.get(policy, 12.0) * (1 + SHARE * crowd) + arms


def execute(
    title: str, runs: Iterable[Run], *, store: Store, engine: Engine, shelf: Shelf, watch: Watch
) -> None:
    """Play what is missing, longest first, and keep each result as soon as it comes."""
    wanted = {run.id: run for run in runs}
    missing = [run for run in wanted.values() if run not in store]
    missing.sort(key=lambda run: -cost(run) * run.horizon)
    watch.begin(title, missing, len(wanted) - len(missing))
    engine.prepare(missing, watch)
    for run, trace in engine.play(missing, shelf, watch):
        store.keep(run, trace)
        watch.finish(run, trace)
