"""From names of figures to files: tune, play, measure, draw, sum up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from coterie import datasets
from coterie.errors import MissingData
from coterie.experiments import bounds, markdown, tables
from coterie.experiments.execute import Engine, execute
from coterie.experiments.figures import Figure
from coterie.experiments.findings import Finding, find_out, sentence
from coterie.experiments.plan import Plan, available
from coterie.experiments.results import Panel
from coterie.experiments.shelf import Shelf
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.store import Store
from coterie.experiments.timing import Clock
from coterie.experiments.tuning import Choice, Protocol, Study, check_reported, choose, needed
from coterie.experiments.watching import Watch
from coterie.storage import atomic_write


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be reproduced, from which data, how long, and where to."""

    figures: tuple[Figure, ...]
    out: Path
    protocol: Protocol
    data: Path | None = None
    horizon: int | None = None
    seeds: int = 5
    command: str = ""


class Outcome(NamedTuple):
    """All that was found for a figure, and the files that show it."""

    plan: Plan
    panels: tuple[Panel, ...]
    choices: tuple[Choice, ...]
    findings: tuple[Finding, ...]
    sentence: str
    tables: tuple[tables.Table, ...]
    files: tuple[Path, ...]


class Outcomes(NamedTuple):
    """Everything a command found, and what it had to leave out."""

    request: Request
    figures: tuple[Outcome, ...]
    skipped: tuple[str, ...]
    report: Path


def reproduce(request: Request, engine: Engine, watch: Watch) -> Outcomes:
    """Reproduce figures; finished runs are not repeated: an interrupted call goes on where it stopped."""
    from coterie.experiments.report import write

    shelf, store = Shelf(request.data), Store(request.out)
    missing = _missing(request.figures, shelf)
    plans = [_plan(figure, request) for figure in available(request.figures, tuple(missing))]
    if not plans:
        why = "; ".join(f"{name} is missing, {hint}" for name, hint in missing.items())
        raise MissingData(f"nothing is left to reproduce: {why}")
    skipped = tuple(f"{name} is skipped: {hint}" for name, hint in missing.items())
    for line in skipped:
        watch.say(line)
    choices = _tune(plans, request, store=store, engine=engine, shelf=shelf, watch=watch)
    runs = [run for plan in plans for run in plan.runs(shelf, choices)]
    execute("playing", runs, store=store, engine=engine, shelf=shelf, watch=watch)
    seconds = _measure(plans, choices, shelf, request.out, watch)
    outcomes = tuple(_show(plan, choices, store, shelf, seconds, request.out) for plan in plans)
    found = Outcomes(request, outcomes, skipped, request.out / "report.html")
    write(found)
    return found


def _missing(figures: Sequence[Figure], shelf: Shelf) -> dict[str, str]:
    """The datasets whose files are not there, with how to get them."""
    missing = {}
    for name in dict.fromkeys(name for figure in figures for name in figure.datasets):
        try:
            shelf.dataset(EnvironmentSpec(dataset=name))
        except MissingData:
            missing[name] = datasets.about(name).hint()
    return missing


def _plan(figure: Figure, request: Request) -> Plan:
    seeds = tuple(range(request.seeds))
    check_reported(seeds)
    return Plan(figure=figure, horizon=request.horizon, seeds=seeds, protocol=request.protocol)


def _tune(
    plans: Sequence[Plan], request: Request, *, store: Store, engine: Engine, shelf: Shelf, watch: Watch
) -> dict[Study, Choice]:
    studies = list(dict.fromkeys(study for plan in plans for study in plan.studies(shelf)))
    wanted = needed(studies, request.protocol)
    execute("tuning", wanted, store=store, engine=engine, shelf=shelf, watch=watch)
    return {study: choose(study, request.protocol, store) for study in studies}


def _measure(
    plans: Sequence[Plan], choices: Mapping[Study, Choice], shelf: Shelf, out: Path, watch: Watch
) -> dict[str, float]:
    """The seconds of every run of the timed figures, one at a time, always on this machine."""
    clock = Clock(out)
    runs = [run for plan in plans if plan.figure.timed for run in plan.runs(shelf, choices)]
    known = {run.id: clock.known(run) for run in runs}
    missing = [run for run in runs if known[run.id] is None]
    watch.begin("timing", missing, len(runs) - len(missing))
    seconds = {name: found for name, found in known.items() if found is not None}
    for run in missing:
        trace = clock.measure(run, shelf.dataset(run.environment))
        seconds[run.id] = trace.seconds
        watch.advance(run, run.horizon, float(trace.regret[-1]))
        watch.finish(run, trace)
    return seconds


def _show(
    plan: Plan,
    choices: Mapping[Study, Choice],
    store: Store,
    shelf: Shelf,
    seconds: Mapping[str, float],
    out: Path,
) -> Outcome:
    from coterie.experiments.render import draw

    figure, folder = plan.figure, out / plan.figure.name
    panels = plan.panels(shelf, choices, store, seconds) if figure.policies else ()
    findings = find_out(figure.claims, panels)
    files = draw(figure.view, figure.title, panels, folder, figure.name)
    own = tuple(choices[study] for study in plan.studies(shelf))
    shown = tuple(_tables(plan, panels, shelf))
    listed = tables.as_csv(tables.rows(panels)) if panels else tables.plain_csv(shown)
    atomic_write(folder / "summary.csv", listed.encode())
    told = sentence(findings, () if figure.timed else panels)
    atomic_write(folder / "results.md", markdown.page(told, shown, findings).encode())
    files += [folder / "summary.csv", folder / "results.md"]
    return Outcome(plan, panels, own, findings, told, shown, tuple(files))


def _tables(plan: Plan, panels: Sequence[Panel], shelf: Shelf) -> list[tables.Table]:
    """What the figure's view lists; a figure in which nobody plays is one of bounds."""
    return tables.listed(plan.figure.view, panels) if panels else bounds.tables(plan, shelf)
