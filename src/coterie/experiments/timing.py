"""Running times, measured one run at a time after a warm-up; never part of a run's own file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from coterie.datasets.dataset import Dataset
from coterie.experiments.machine import processor
from coterie.experiments.runs import Run
from coterie.simulation import Trace
from coterie.storage import atomic_write

WARM_UP = 300
"""Rounds played before the clock starts, so that nothing is loaded under it."""


class Clock:
    """Seconds of runs in a folder `times/`; a measurement is used again on the same processor only."""

    def __init__(self, folder: Path) -> None:
        """Open a folder; it is made by the first measurement."""
        self.folder = folder / "times"

    def path(self, run: Run) -> Path:
        """Where the measurement of a run is, or will be."""
        return self.folder / f"{run.id}.json"

    def known(self, run: Run) -> float | None:
        """The seconds measured earlier on this kind of processor."""
        try:
            facts = json.loads(self.path(run).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return float(facts["seconds"]) if facts.get("processor") == processor() else None

    def measure(self, run: Run, dataset: Dataset) -> Trace:
        """Play the run again with nothing beside it, and keep how long it took."""
        replace(run, horizon=min(WARM_UP, run.horizon), record=1).play(dataset)
        trace = run.play(dataset)
        facts = json.dumps({"seconds": trace.seconds, "processor": processor(), "horizon": run.horizon})
        atomic_write(self.path(run), facts.encode())
        return trace
