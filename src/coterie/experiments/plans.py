"""From a figure to runs and back: which studies tune its constants, which runs it shows, its panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from coterie.experiments.figures import Figure
from coterie.experiments.results import Panel, PolicyResult
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.experiments.store import Run, Store
from coterie.experiments.tuning import Choice, Study, TuningProtocol, Widths
from coterie.experiments.variations import Variation
from coterie.simulation import Trace


class PanelSpec(NamedTuple):
    """A panel before it is played: the environments to report and to tune in, the policies, the horizon."""

    label: str
    environment: EnvironmentSpec
    tuned_in: EnvironmentSpec
    policies: tuple[str, ...]
    horizon: int
    widths: Widths
    variation: Variation


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePlan:
    """A figure, for seeds and for datasets that are there; a horizon, if given, holds for all of it."""

    figure: Figure
    horizon: int | None = None
    seeds: tuple[int, ...]
    protocol: TuningProtocol
    widths: tuple[Widths, ...] = ("tuned",)
    record: int = 200

    def panel_specs(self) -> list[PanelSpec]:
        """Every dataset with every variation; those that a given horizon makes equal, once."""
        every = (
            self._panel_spec(dataset, variation, widths)
            for widths in self.widths
            for dataset in self.figure.datasets
            for variation in self.figure.variations
            if variation.datasets is None or dataset in variation.datasets
        )
        return list({spec[:-1]: spec for spec in every}.values())

    def _panel_spec(self, dataset: str, variation: Variation, widths: Widths) -> PanelSpec:
        own = variation.horizon if self.horizon is None else None
        parts = [variation.label, f"T = {own:,}" if own is not None else ""]
        parts.append("theory's β" if widths == "theory" else "")
        return PanelSpec(
            label=", ".join(part for part in parts if part),
            environment=replace(variation.environment, dataset=dataset),
            tuned_in=replace(self.figure.tuned_in or variation.environment, dataset=dataset),
            policies=self.figure.policies if variation.policies is None else variation.policies,
            horizon=self.horizon or own or self.figure.horizon,
            widths=widths,
            variation=variation,
        )

    def study(self, panel: PanelSpec, policy: str, data: DataFiles) -> Study:
        """Where the constants of a policy in a panel come from."""
        rounds = self.protocol.rounds(panel.horizon)
        files, seeds = data.sha256(panel.tuned_in), self.figure.trial_seeds
        return Study(panel.tuned_in, policy, rounds, files, panel.widths, seeds)

    def studies(self, data: DataFiles) -> list[Study]:
        """All studies, each once."""
        every = (self.study(panel, policy, data) for panel in self.panel_specs() for policy in panel.policies)
        return list(dict.fromkeys(every))

    def runs(self, data: DataFiles, choices: Mapping[Study, Choice]) -> list[Run]:
        """All reported runs."""
        return [
            run
            for panel in self.panel_specs()
            for policy in panel.policies
            for run in self._runs_of(panel, choices[self.study(panel, policy, data)].spec, data)
        ]

    def _runs_of(self, panel: PanelSpec, spec: PolicySpec, data: DataFiles) -> list[Run]:
        return [
            Run(
                environment=panel.environment,
                policy=spec,
                horizon=panel.horizon,
                seed=seed,
                record=min(self.record, panel.horizon),
                data=data.sha256(panel.environment),
            )
            for seed in self.seeds
        ]

    def panels(
        self, data: DataFiles, choices: Mapping[Study, Choice], store: Store, seconds: Mapping[str, float]
    ) -> tuple[Panel, ...]:
        """The finished runs, arranged as the figure shows them."""
        return tuple(self._panel(spec, data, choices, store, seconds) for spec in self.panel_specs())

    def _panel(
        self,
        panel: PanelSpec,
        data: DataFiles,
        choices: Mapping[Study, Choice],
        store: Store,
        seconds: Mapping[str, float],
    ) -> Panel:
        results = []
        for policy in panel.policies:
            spec = choices[self.study(panel, policy, data)].spec
            runs = self._runs_of(panel, spec, data)
            results.append(PolicyResult(spec, tuple(_read_trace(run, store, seconds) for run in runs)))
        worlds = [panel.environment.make(data.dataset(panel.environment), seed) for seed in self.seeds]
        gamma = sum(world.gamma for world in worlds) / len(worlds)
        varied, dataset = panel.variation, panel.environment.dataset
        return Panel(
            dataset,
            panel.label,
            varied.quantity,
            varied.value,
            gamma,
            tuple(results),
            limit=varied.limit,
            headlines=varied.headlines,
        )


def _read_trace(run: Run, store: Store, seconds: Mapping[str, float]) -> Trace:
    trace = store.read(run)
    return replace(trace, seconds=seconds[run.id]) if run.id in seconds else trace


def available(figures: Sequence[Figure], missing: Sequence[str]) -> list[Figure]:
    """The figures without the datasets that are missing, and without those that have none left."""
    kept = (f.on(tuple(name for name in f.datasets if name not in missing)) for f in figures)
    return [figure for figure in kept if any(_is_played(one, figure) for one in figure.variations)]


def _is_played(variation: Variation, figure: Figure) -> bool:
    """Is there a dataset for this variation?"""
    wanted = figure.datasets if variation.datasets is None else variation.datasets
    return bool(set(wanted) & set(figure.datasets))
