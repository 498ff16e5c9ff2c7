"""Playing the runs that are not finished yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from coterie.experiments.makers import is_own
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.store import Store
from coterie.experiments.watching import Watch
from coterie.policies.registry import find
from coterie.simulation import Trace

SMOOTHED, OWN = 180.0, 100.0
"""Rough microseconds a round: smoothed arms besides the policy, and a policy in plain Python."""

CROWD, SHARE = 50, 0.3
"""Policies that look for clusters take this share longer for each further 50 users."""


class Played(NamedTuple):
    """A run and what it found, as it comes from an engine."""

    run: Run
    trace: Trace


class Engine(Protocol):
    """Where runs are played."""

    def play(self, runs: Sequence[Run], shelf: Shelf, watch: Watch) -> Iterator[Played]:
        """Every run once, in whatever order they finish; closing the iterator stops the rest."""


def cost(run: Run) -> float:
    """About how many microseconds a round of this run takes: the order of work and the time left."""
    environment = run.environment
    arms = SMOOTHED * environment.n_arms / 100 if environment.setting == "smoothed" else 0.0
    if is_own(run.policy.name):
        return OWN + arms
    entry = find(run.policy.name)
    crowd = max(0.0, environment.n_users / CROWD - 1) if entry.clusters else 0.0
    return entry.cost * (1 + SHARE * crowd) + arms


def execute(
    title: str, runs: Iterable[Run], *, store: Store, engine: Engine, shelf: Shelf, watch: Watch
) -> None:
    """Play what is missing, longest first, and keep each result as soon as it comes."""
    wanted = {run.id: run for run in runs}
    missing = [run for run in wanted.values() if run not in store]
    missing.sort(key=lambda run: -cost(run) * run.horizon)
    watch.begin(title, missing, len(wanted) - len(missing))
    for run, trace in engine.play(missing, shelf, watch):
        store.keep(run, trace)
        watch.finish(run, trace)
