"""`coterie reproduce`: the paper's figures and tables by one command."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.guard import Interrupted
from coterie.cli.naming import FIGURES, PAPER, complete_datasets, complete_engine, complete_figure
from coterie.cli.places import existing, writable
from coterie.cli.teaching import examples
from coterie.cli.terminal import console, one_thread, table, write_json
from coterie.errors import ArgumentError, unknown

if TYPE_CHECKING:
    from rich.table import Table

    from coterie.experiments.execute import Engine
    from coterie.experiments.figures import Figure
    from coterie.experiments.reproduce import Outcome, Outcomes, Request
    from coterie.experiments.tables import Table as Text

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help=f"{', '.join(FIGURES)}, or all.", autocompletion=complete_figure),
]
Datasets = Annotated[
    str | None,
    typer.Option(
        help=f"Datasets, with commas between: {', '.join(PAPER)}.", autocompletion=complete_datasets
    ),
]
Data = Annotated[Path | None, typer.Option(help="The folder of data files, or $COTERIE_DATA.")]
Horizon = Annotated[int | None, typer.Option(min=1, help="Rounds of a run, instead of the figure's own.")]
Seeds = Annotated[int | None, typer.Option(min=1, max=1000, help="How many seeds are reported (5).")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Runs at a time (one a processor).")]
Out = Annotated[Path, typer.Option(help="Where results, figures and the report go.")]
Quick = Annotated[bool, typer.Option("--quick", help="10,000 rounds, 3 seeds, one seed of tuning: a minute.")]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="local: threads of this machine; ray: a Ray cluster.",
        autocompletion=complete_engine,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print a summary that programs can read.")]

FOOT = examples(
    ("the first figure, in a minute or two", "coterie reproduce fig-1 --datasets synthetic --quick"),
    ("everything, on your data", "coterie reproduce all --data ~/downloads --out results"),
)
QUICK_HORIZON, QUICK_SEEDS, SEEDS = 10_000, 3, 5


def reproduce(
    names: Names = None,
    datasets: Datasets = None,
    data: Data = None,
    horizon: Horizon = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    out: Out = Path("results"),
    quick: Quick = False,
    engine: EngineName = "local",
    as_json: Json = False,
) -> None:
    """Reproduce figures and tables of the paper; finished runs are never repeated."""
    one_thread()
    from coterie.cli.live import watching
    from coterie.experiments.reproduce import Request
    from coterie.experiments.reproduce import reproduce as run
    from coterie.experiments.tuning import Protocol

    figures, chosen = _figures(names or [], datasets), _engine(engine, jobs)
    request = Request(
        figures=figures,
        data=existing(data),
        out=writable(out),
        horizon=horizon or (QUICK_HORIZON if quick else None),
        seeds=seeds or (QUICK_SEEDS if quick else SEEDS),
        protocol=Protocol(n_seeds=1) if quick else Protocol(),
        command=_command(),
    )
    try:
        with watching() as watch:
            found = run(request, chosen, watch)
    except KeyboardInterrupt:
        raise Interrupted(_resumed(request)) from None
    if as_json:
        write_json(summary(found))
    else:
        show(found)


def _command() -> str:
    return shlex.join(["coterie", *sys.argv[1:]])


def _resumed(request: Request) -> str:
    return (
        f"interrupted; finished runs are kept in {request.out}, to go on where it stopped: {request.command}"
    )


def _figures(names: list[str], datasets: str | None) -> tuple[Figure, ...]:
    """The figures asked for, on the datasets asked for."""
    from coterie.experiments.figures import chosen

    if not names:
        raise ArgumentError(f"say what to reproduce, got nothing; there are {', '.join(FIGURES)}, and all")
    figures = chosen(tuple(names))
    return tuple(figures if datasets is None else (figure.on(_datasets(datasets)) for figure in figures))


def _datasets(told: str) -> tuple[str, ...]:
    """The names between commas, each once and each of the paper's."""
    names = tuple(dict.fromkeys(name.strip() for name in told.split(",") if name.strip()))
    if not names:
        raise ArgumentError(f"--datasets must name at least one of {', '.join(PAPER)}, got {told!r}")
    for name in names:
        if name not in PAPER:
            raise unknown("dataset", name, PAPER, f"The paper's are {', '.join(PAPER)}")
    return names


def _engine(name: str, jobs: int | None) -> Engine:
    from coterie.experiments.engines import find

    return find(name)(jobs)


def show(found: Outcomes) -> None:
    """For each figure its table, where it is, and what it says."""
    shown = console()
    for outcome in found.figures:
        for one in outcome.tables:
            if not one.aside:
                shown.print(f"[bold]{outcome.plan.figure.name}[/bold]: {one.title}", soft_wrap=True)
                shown.print(_drawn(one))
        paths = [path for path in outcome.files if path.suffix == ".png"] or list(outcome.files)
        for path in paths:
            shown.print(f"{outcome.plan.figure.name}: {path}", soft_wrap=True)
        if outcome is found.figures[-1]:
            shown.print(f"report: {found.report}", soft_wrap=True)
        if outcome.sentence:
            shown.print(f"[bold]{outcome.sentence}[/bold]", soft_wrap=True)


def _drawn(one: Text) -> Table:
    made = table(*one.heading)
    for row in one.rows:
        made.add_row(*row)
    return made


def summary(found: Outcomes) -> dict[str, Any]:
    """What a program may want to know."""
    return {
        "command": found.request.command,
        "report": str(found.report),
        "skipped": list(found.skipped),
        "figures": [_figure(outcome) for outcome in found.figures],
    }


def _figure(outcome: Outcome) -> dict[str, Any]:
    from coterie.experiments.tables import rows

    return {
        "name": outcome.plan.figure.name,
        "finding": outcome.sentence,
        "files": [str(path) for path in outcome.files],
        "rows": [row.record() for row in rows(outcome.panels)],
        "claims": [verdict._asdict() for finding in outcome.findings for verdict in finding.verdicts],
        "tables": [one._asdict() for one in outcome.tables],
    }
