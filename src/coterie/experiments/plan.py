"""From figures to runs: which studies tune their constants, which runs are reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from coterie.experiments.figures import Figure
from coterie.experiments.results import Entry, Panel
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.experiments.store import Store
from coterie.experiments.tuning import Choice, Protocol, Study
from coterie.experiments.variations import Variation
from coterie.simulation import Trace


class Spot(NamedTuple):
    """A place in a figure: the environments to report and to tune in, who plays there, and for how long."""

    label: str
    environment: EnvironmentSpec
    tuned_in: EnvironmentSpec
    policies: tuple[str, ...]
    horizon: int
    variation: Variation


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A figure for seeds and datasets that are there; a horizon, if given, holds for all of it."""

    figure: Figure
    horizon: int | None = None
    seeds: tuple[int, ...]
    protocol: Protocol
    record: int = 200

    def spots(self) -> list[Spot]:
        """Every dataset with every variation that is played on it; what a given horizon makes equal, once."""
        every = (
            self._spot(dataset, variation)
            for dataset in self.figure.datasets
            for variation in self.figure.variations
            if variation.datasets is None or dataset in variation.datasets
        )
        return list({spot[:-1]: spot for spot in every}.values())

    def _spot(self, dataset: str, variation: Variation) -> Spot:
        own = variation.horizon if self.horizon is None else None
        return Spot(
            label=variation.label if own is None else f"{variation.label}, T = {own:,}",
            environment=replace(variation.environment, dataset=dataset),
            tuned_in=replace(self.figure.tuned_in or variation.environment, dataset=dataset),
            policies=self.figure.policies if variation.policies is None else variation.policies,
            horizon=self.horizon or own or self.figure.horizon,
            variation=variation,
        )

    def study(self, spot: Spot, policy: str, shelf: Shelf) -> Study:
        """Where the constants of a policy for a spot come from."""
        rounds = self.protocol.rounds(spot.horizon)
        return Study(spot.tuned_in, policy, rounds, shelf.sha256(spot.tuned_in))

    def studies(self, shelf: Shelf) -> list[Study]:
        """All studies, each once."""
        every = (self.study(spot, policy, shelf) for spot in self.spots() for policy in spot.policies)
        return list(dict.fromkeys(every))

    def runs(self, shelf: Shelf, choices: Mapping[Study, Choice]) -> list[Run]:
        """All reported runs."""
        return [
            run
            for spot in self.spots()
            for policy in spot.policies
            for run in self._of(spot, choices[self.study(spot, policy, shelf)].spec, shelf)
        ]

    def _of(self, spot: Spot, spec: PolicySpec, shelf: Shelf) -> list[Run]:
        return [
            Run(
                environment=spot.environment,
                policy=spec,
                horizon=spot.horizon,
                seed=seed,
                record=min(self.record, spot.horizon),
                data=shelf.sha256(spot.environment),
            )
            for seed in self.seeds
        ]

    def panels(
        self, shelf: Shelf, choices: Mapping[Study, Choice], store: Store, seconds: Mapping[str, float]
    ) -> tuple[Panel, ...]:
        """The finished runs, arranged as the figure shows them."""
        return tuple(self._panel(spot, shelf, choices, store, seconds) for spot in self.spots())

    def _panel(
        self,
        spot: Spot,
        shelf: Shelf,
        choices: Mapping[Study, Choice],
        store: Store,
        seconds: Mapping[str, float],
    ) -> Panel:
        entries = []
        for policy in spot.policies:
            spec = choices[self.study(spot, policy, shelf)].spec
            runs = self._of(spot, spec, shelf)
            entries.append(Entry(spec, tuple(_trace(run, store, seconds) for run in runs)))
        worlds = [spot.environment.make(shelf.dataset(spot.environment), seed) for seed in self.seeds]
        gamma = sum(world.gamma for world in worlds) / len(worlds)
        varied, dataset = spot.variation, spot.environment.dataset
        return Panel(
            dataset, spot.label, varied.quantity, varied.value, gamma, tuple(entries), limit=varied.limit
        )


def _trace(run: Run, store: Store, seconds: Mapping[str, float]) -> Trace:
    trace = store.read(run)
    return replace(trace, seconds=seconds[run.id]) if run.id in seconds else trace


def available(figures: Sequence[Figure], missing: Sequence[str]) -> list[Figure]:
    """The figures without the datasets that are missing, and without those that nothing is left of."""
    kept = (f.on(tuple(name for name in f.datasets if name not in missing)) for f in figures)
    return [figure for figure in kept if figure.datasets]
