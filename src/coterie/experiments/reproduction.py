"""Reproduction of figures: plan, tune, play, time, draw and sum up."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from coterie import datasets
from coterie.atomic_files import atomic_write
from coterie.errors import ArgumentError, MissingData
from coterie.experiments.claims import judge_claims, summary_sentence
from coterie.experiments.figures import Figure, Variation
from coterie.experiments.report import FigureResult, write_report
from coterie.experiments.results import Panel, PolicyResult
from coterie.experiments.run_store import Run, Store
from coterie.experiments.runner import Callback, DataFiles, Engine, Runner
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.experiments.tables import (
    SummaryRow,
    TextTable,
    bounds_table,
    markdown_page,
    summary_csv,
    summary_rows,
    tables_csv,
    tables_of,
    verdict_table,
)
from coterie.experiments.tuning import (
    Choice,
    Study,
    TuningProtocol,
    Widths,
    check_reported,
    choose,
    chosen_before,
    tuning_runs,
)
from coterie.simulation import Trace

Constants: TypeAlias = Mapping[tuple[str, str, str], Mapping[str, float]]
"""Constants by name, for each dataset, panel and policy."""


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
    """A figure as runs: its panels, tuning studies and seeds; a given horizon is that of every panel."""

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
        # Variations that differ only in their horizon become equal when one horizon is given for all.
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
        """The tuning study of a policy in a panel."""
        rounds = self.protocol.rounds(panel.horizon)
        files, seeds = data.sha256(panel.tuned_in), self.figure.trial_seeds
        return Study(panel.tuned_in, policy, rounds, files, panel.widths, seeds)

    def studies(self, data: DataFiles) -> list[Study]:
        """All studies, each once."""
        every = (self.study(panel, policy, data) for panel in self.panel_specs() for policy in panel.policies)
        return list(dict.fromkeys(every))

    def choices(self, rows: Constants, data: DataFiles) -> Iterator[tuple[Study, Choice]]:
        """The studies that have a row in an earlier summary, with its constants; the rest is tuned."""
        for panel in self.panel_specs():
            for policy in panel.policies:
                key = (panel.environment.dataset, panel.label, policy)
                if key not in rows:
                    continue
                study = self.study(panel, policy, data)
                choice = chosen_before(study, rows[key])
                if choice is None:
                    where = ", ".join(part for part in key[:2] if part)
                    raise ArgumentError(f"--constants has none of the grid of {policy} for {where}")
                yield study, choice

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
    """Whether the figure has a dataset for this variation."""
    wanted = figure.datasets if variation.datasets is None else variation.datasets
    return bool(set(wanted) & set(figure.datasets))


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproduceOptions:
    """Options of a reproduction: figures, data, length and output.

    Parameters
    ----------
    figures : tuple of Figure
        Figures, from `coterie.experiments.figures.find_figure`.
    out : Path
        Folder for runs, pictures, tables and the report.
    protocol : TuningProtocol
        How parameters are tuned.
    widths : tuple of {"tuned", "theory"}, default ("tuned",)
        Whether β is tuned, as the theory has it, or both side by side.
    data : DataFiles, optional
        Where the datasets are.
    horizon : int, optional
        Number of rounds; by default that of each figure.
    seeds : int, default 5
        Number of seeds.
    constants : Path, optional
        `summary.csv` of an earlier reproduction of the same figure, whose constants are used; only policies
        and environments that are not in it are tuned.
    command : str, default ""
        Command line that is named in the report.

    Examples
    --------
    >>> from coterie.experiments.figures import find_figure
    >>> one = (find_figure("fig-1"),)
    >>> options = ReproduceOptions(figures=one, out=Path("demo"), protocol=TuningProtocol())
    >>> options.seeds
    5
    """

    figures: tuple[Figure, ...]
    out: Path
    protocol: TuningProtocol
    widths: tuple[Widths, ...] = ("tuned",)
    data: DataFiles = field(default_factory=DataFiles)
    horizon: int | None = None
    seeds: int = 5
    constants: Path | None = None
    command: str = ""


class Reproduction(NamedTuple):
    """Results of `reproduce`.

    Parameters
    ----------
    options : ReproduceOptions
        The options.
    figures : tuple of FigureResult
        Results of each figure.
    skipped : tuple of str
        What had to be left out, and why.

    Examples
    --------
    >>> Reproduction._fields
    ('options', 'figures', 'skipped')
    """

    options: ReproduceOptions
    figures: tuple[FigureResult, ...]
    skipped: tuple[str, ...]

    @property
    def report(self) -> Path:
        """File of the report, `report.html`, once `write_files` has been called."""
        return self.options.out / "report.html"


def reproduce(options: ReproduceOptions, engine: Engine, callback: Callback) -> Reproduction:
    """Reproduce figures, and write their pictures, tables and report.

    Finished runs are not repeated: repeat an interrupted call to continue where it stopped.

    Parameters
    ----------
    options : ReproduceOptions
        What to reproduce.
    engine : Engine
        Where runs are played, such as `LocalEngine()`.
    callback : Callback
        Told of progress, such as `NoCallback()`.

    Returns
    -------
    Reproduction
        The results, and what was skipped because its data is missing.

    Raises
    ------
    MissingData
        If the data of every figure is missing.

    Examples
    --------
    >>> import tempfile
    >>> from coterie.experiments.runner import LocalEngine
    >>> from coterie.experiments.figures import find_figure
    >>> from coterie.experiments.runner import NoCallback
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     options = ReproduceOptions(
    ...         figures=(find_figure("table-1"),), out=Path(folder), protocol=TuningProtocol()
    ...     )
    ...     done = reproduce(options, LocalEngine(), NoCallback())
    ...     sorted(path.name for path in done.figures[0].files)
    ['bounds.csv', 'results.md']
    """
    return write_files(play_figures(options, engine, callback))


def play_figures(options: ReproduceOptions, engine: Engine, callback: Callback) -> Reproduction:
    """Tune, play and judge figures.

    Finished runs are not repeated: repeat an interrupted call to continue where it stopped.
    """
    data = options.data
    # All data is looked for first: a missing file should not stop a reproduction after hours.
    lacking = [(figure, _missing(figure, data)) for figure in options.figures]
    missing = {name: hint for _, hints in lacking for name, hint in hints.items()}
    plans = [_plan(one, options) for figure, hints in lacking for one in available([figure], tuple(hints))]
    if not plans:
        why = "; ".join(f"{name} is missing, {hint}" for name, hint in missing.items())
        raise MissingData(f"nothing is left to reproduce: {why}")
    skipped = tuple(f"{name} is skipped: {hint}" for name, hint in missing.items())
    for line in skipped:
        log.warning(line)
    runner = Runner(Store(options.out), engine, data, callback)
    choices = _tune(plans, options, runner)
    runner.play("playing", [run for plan in plans for run in plan.runs(data, choices)])
    # Timed runs are played again, one at a time: the parallel runs above share processors.
    timed = [run for plan in plans if plan.figure.timed for run in plan.runs(data, choices)]
    seconds = runner.time(timed, options.out)
    results = tuple(_figure_result(plan, choices, runner, seconds) for plan in plans)
    return Reproduction(options, results, skipped)


def write_files(found: Reproduction) -> Reproduction:
    """Draw the figures, write their tables and the report; the results then name their files."""
    options = found.options
    written = tuple(result._replace(files=_write_figure(result, options.out)) for result in found.figures)
    write_report(
        found.report,
        written,
        command=options.command,
        skipped=found.skipped,
        protocol=options.protocol,
        constants=options.constants,
    )
    return found._replace(figures=written)


def _missing(figure: Figure, data: DataFiles) -> dict[str, str]:
    """Datasets of a figure whose files are missing, with instructions to get them."""
    missing: dict[str, str] = {}
    for environment in dict.fromkeys(_environments(figure)):
        try:
            data.dataset(environment)
        except MissingData as error:
            name = environment.dataset
            missing[name] = str(error) if environment.is_real else datasets.about(name).hint()
    return missing


def _environments(figure: Figure) -> Iterator[EnvironmentSpec]:
    """The environments of a figure, on each of its datasets."""
    for variation in figure.variations:
        for name in figure.datasets:
            if variation.datasets is None or name in variation.datasets:
                yield replace(variation.environment, dataset=name)


def _plan(figure: Figure, options: ReproduceOptions) -> FigurePlan:
    """Plan a figure."""
    seeds = tuple(range(options.seeds))
    check_reported(seeds)
    return FigurePlan(
        figure=figure,
        horizon=options.horizon,
        seeds=seeds,
        protocol=options.protocol,
        widths=options.widths if figure.has_widths else ("tuned",),
    )


def _tune(plans: Sequence[FigurePlan], options: ReproduceOptions, runner: Runner) -> dict[Study, Choice]:
    """Choose the parameters of all figures: as in an earlier summary where it has them, else by tuning."""
    rows = {} if options.constants is None else read_constants(options.constants)
    known = {study: choice for plan in plans for study, choice in plan.choices(rows, runner.data)}
    studies = [study for plan in plans for study in plan.studies(runner.data) if study not in known]
    studies = list(dict.fromkeys(studies))
    runner.play("tuning", tuning_runs(studies, options.protocol))
    return known | {study: choose(study, options.protocol, runner.store) for study in studies}


def read_constants(path: Path) -> Constants:
    """The constants of a summary.csv, to six digits."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ArgumentError(f"--constants cannot be read: {path}: {error}") from None
    columns = set(SummaryRow._fields) - {"params"}
    if not table or not columns <= set(table[0]):
        raise ArgumentError(f"--constants must be the summary.csv of a figure, got {path}")
    try:
        return {
            (row["dataset"], row["variation"], row["policy"]): {
                name: float(f"{float(value):.6g}")
                for name, value in row.items()
                if value and name not in columns
            }
            for row in table
        }
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"--constants must hold numbers: {path}: {error}") from None


def _figure_result(
    plan: FigurePlan, choices: Mapping[Study, Choice], runner: Runner, seconds: Mapping[str, float]
) -> FigureResult:
    """The panels of a figure, the verdicts on its claims, and its tables."""
    figure, data = plan.figure, runner.data
    panels = plan.panels(data, choices, runner.store, seconds) if figure.policies else ()
    findings = judge_claims(figure.claims, panels)
    specs = plan.panel_specs()
    return FigureResult(
        figure=figure,
        environments=tuple(spec.environment for spec in specs),
        horizons=tuple(spec.horizon for spec in specs),
        seeds=plan.seeds,
        panels=panels,
        choices=tuple(choices[study] for study in plan.studies(data)),
        findings=findings,
        sentence=summary_sentence(findings, () if figure.timed else panels),
        tables=(*_tables(plan, panels, data), verdict_table(findings)),
    )


def _write_figure(result: FigureResult, out: Path) -> tuple[Path, ...]:
    """Write the tables of a figure and draw it."""
    from coterie.experiments.plotting import draw

    figure, folder = result.figure, out / result.figure.name
    if result.panels:
        numbers, content = folder / "summary.csv", summary_csv(summary_rows(result.panels))
    else:
        numbers, content = folder / "bounds.csv", tables_csv(result.tables[:-1])
    page = folder / "results.md"
    atomic_write(numbers, content.encode())
    atomic_write(page, markdown_page(result.sentence, result.tables).encode())
    return (*draw(figure.view, figure.title, result.panels, folder, figure.name), numbers, page)


def _tables(plan: FigurePlan, panels: Sequence[Panel], data: DataFiles) -> list[TextTable]:
    """Build the tables of a figure; one without policies shows bounds."""
    if panels:
        return tables_of(plan.figure.view, panels)
    return [
        bounds_table(spec.environment, spec.environment.make(data.dataset(spec.environment), 0), spec.horizon)
        for spec in plan.panel_specs()
    ]
