"""From names of figures to files: tune, play, time, draw, sum up."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from coterie import datasets
from coterie.errors import MissingData
from coterie.experiments.claims import judge_claims, summary_sentence
from coterie.experiments.figures import Figure
from coterie.experiments.plans import FigurePlan, available
from coterie.experiments.report import FigureResult, write_report
from coterie.experiments.results import Panel
from coterie.experiments.runner import Callback, DataFiles, Engine, Runner
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.store import Store
from coterie.experiments.tables import (
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
    tuning_runs,
)
from coterie.storage import atomic_write

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproduceOptions:
    """What is to be reproduced, from which data, how long, and where to."""

    figures: tuple[Figure, ...]
    out: Path
    protocol: TuningProtocol
    widths: tuple[Widths, ...] = ("tuned",)
    data: DataFiles = field(default_factory=DataFiles)
    horizon: int | None = None
    seeds: int = 5
    command: str = ""


class Reproduction(NamedTuple):
    """Everything that was found, and what had to be left out."""

    options: ReproduceOptions
    figures: tuple[FigureResult, ...]
    skipped: tuple[str, ...]
    report: Path


def reproduce(options: ReproduceOptions, engine: Engine, callback: Callback) -> Reproduction:
    """Reproduce figures; finished runs are not repeated: an interrupted call goes on where it stopped."""
    data = options.data
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
    timed = [run for plan in plans if plan.figure.timed for run in plan.runs(data, choices)]
    seconds = runner.time(timed, options.out)
    results = tuple(_write_figure(plan, choices, runner, seconds, options.out) for plan in plans)
    report = options.out / "report.html"
    write_report(report, results, command=options.command, skipped=skipped, protocol=options.protocol)
    return Reproduction(options, results, skipped, report)


def _missing(figure: Figure, data: DataFiles) -> dict[str, str]:
    """The datasets of a figure whose files are not there, with how to get them."""
    missing: dict[str, str] = {}
    for environment in dict.fromkeys(_environments(figure)):
        try:
            data.dataset(environment)
        except MissingData as error:
            name = environment.dataset
            missing[name] = str(error) if environment.is_real else datasets.about(name).hint()
    return missing


def _environments(figure: Figure) -> Iterator[EnvironmentSpec]:
    """What a figure is played in, on each of its datasets."""
    for variation in figure.variations:
        for name in figure.datasets:
            if variation.datasets is None or name in variation.datasets:
                yield replace(variation.environment, dataset=name)


def _plan(figure: Figure, options: ReproduceOptions) -> FigurePlan:
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
    studies = list(dict.fromkeys(study for plan in plans for study in plan.studies(runner.data)))
    runner.play("tuning", tuning_runs(studies, options.protocol))
    return {study: choose(study, options.protocol, runner.store) for study in studies}


def _write_figure(
    plan: FigurePlan,
    choices: Mapping[Study, Choice],
    runner: Runner,
    seconds: Mapping[str, float],
    out: Path,
) -> FigureResult:
    """Draw a figure and write its tables."""
    from coterie.experiments.plotting import draw

    figure, folder, data = plan.figure, out / plan.figure.name, runner.data
    panels = plan.panels(data, choices, runner.store, seconds) if figure.policies else ()
    findings = judge_claims(figure.claims, panels)
    sentence = summary_sentence(findings, () if figure.timed else panels)
    tables = (*_tables(plan, panels, data), verdict_table(findings))
    files = draw(figure.view, figure.title, panels, folder, figure.name)
    if panels:
        files.append(folder / "summary.csv")
        atomic_write(files[-1], summary_csv(summary_rows(panels)).encode())
    else:
        files.append(folder / "bounds.csv")
        atomic_write(files[-1], tables_csv(tables[:-1]).encode())
    files.append(folder / "results.md")
    atomic_write(files[-1], markdown_page(sentence, tables).encode())
    own = tuple(choices[study] for study in plan.studies(data))
    return FigureResult(plan, panels, own, findings, sentence, tables, tuple(files))


def _tables(plan: FigurePlan, panels: Sequence[Panel], data: DataFiles) -> list[TextTable]:
    """The tables of the figure's view; a figure in which nobody plays shows bounds."""
    if panels:
        return tables_of(plan.figure.view, panels)
    return [
        bounds_table(spec.environment, spec.environment.make(data.dataset(spec.environment), 0), spec.horizon)
        for spec in plan.panel_specs()
    ]
