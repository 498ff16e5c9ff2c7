"""`coterie reproduce`: the paper's figures and tables by one command."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.exit_codes import saying_what_is_kept
from coterie.cli.options import (
    FIGURE_DATASETS,
    FIGURES,
    complete_datasets,
    complete_engine,
    complete_figure,
    data_paths,
    examples,
    whole_number,
    writable_folder,
)
from coterie.cli.output import console, one_blas_thread, print_line, print_table, write_json
from coterie.errors import ArgumentError, unknown

if TYPE_CHECKING:
    from coterie.experiments.figures import Figure
    from coterie.experiments.report import FigureResult
    from coterie.experiments.reproduction import ReproduceOptions, Reproduction
    from coterie.experiments.tuning import Widths

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help=f"{', '.join(FIGURES)}, or all.", autocompletion=complete_figure),
]
Datasets = Annotated[
    str | None,
    typer.Option(
        help=f"Datasets separated by commas: {', '.join(FIGURE_DATASETS)}.", autocompletion=complete_datasets
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH|NAME=PATH",
        help="Folder of data files ($COTERIE_DATA), or file or folder of one dataset. Repeatable.",
    ),
]
WidthsName = Annotated[
    str,
    typer.Option(help="Source of β in fig-1, fig-2 and fig-5: tuned, theory, or both side by side."),
]
Horizon = Annotated[
    int | None,
    typer.Option(parser=whole_number, metavar="N", help="Rounds in each run (as in the figure)."),
]
Seeds = Annotated[int | None, typer.Option(min=1, max=1000, help="Number of reported seeds (5).")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Runs in parallel (one for each processor).")]
Out = Annotated[Path, typer.Option(help="Folder for results, figures and the report.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="10,000 rounds, 3 seeds; tuned on one seed with 5,000 rounds.")
]
Constants = Annotated[
    Path | None,
    typer.Option(help="summary.csv of an earlier run of the figure: use its constants, tune only the rest."),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="local: threads on this machine; ray: a Ray cluster.",
        autocompletion=complete_engine,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

EPILOG = examples(
    ("the first figure, in about a minute", "coterie reproduce fig-1 --datasets synthetic --quick"),
    (
        "β from the theory beside the tuned one",
        "coterie reproduce fig-1 --datasets synthetic --quick --widths both",
    ),
    (
        "the same figure again, without tuning",
        "coterie reproduce fig-1 --datasets synthetic --constants results/fig-1/summary.csv",
    ),
    ("everything, with data files in ~/downloads", "coterie reproduce all --data ~/downloads --out results"),
)
QUICK_HORIZON, QUICK_SEEDS, SEEDS = 10_000, 3, 5
QUICK_TRIALS = 5_000


def reproduce(
    names: Names = None,
    datasets: Datasets = None,
    data: Data = None,
    horizon: Horizon = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    out: Out = Path("results"),
    quick: Quick = False,
    widths: WidthsName = "tuned",
    constants: Constants = None,
    engine: EngineName = "local",
    as_json: Json = False,
) -> None:
    """Reproduce the figures and tables of the paper, and additional ones by Coterie.

    Finished runs are kept in --out and not repeated: after Ctrl-C, the same command continues where it
    stopped.
    """
    one_blas_thread()
    from coterie.cli.progress_bars import progress_display
    from coterie.experiments.reproduction import ReproduceOptions, play_figures, write_files
    from coterie.experiments.runner import DataFiles, find_engine
    from coterie.experiments.tuning import TuningProtocol
    from coterie.validation import whole

    if horizon is not None:
        whole("horizon", horizon, 1)
    figures, chosen = _figures(names or [], datasets), find_engine(engine)(jobs)
    folder, files = data_paths(data or [])
    options = ReproduceOptions(
        figures=figures,
        data=DataFiles(folder, files=files),
        widths=_widths(widths),
        out=writable_folder(out),
        horizon=QUICK_HORIZON if quick and horizon is None else horizon,
        seeds=seeds or (QUICK_SEEDS if quick else SEEDS),
        constants=_one_summary(constants, figures),
        protocol=TuningProtocol(horizon=QUICK_TRIALS, n_seeds=1) if quick else TuningProtocol(),
        command=_command(),
    )
    # The tables are printed before files are written: a full disk then costs no result.
    with saying_what_is_kept(lambda: _resumed(options)):
        with progress_display() as callback:
            found = play_figures(options, chosen, callback)
        if not as_json:
            show_tables(found)
        found = write_files(found)
    if as_json:
        write_json(summary(found))
    else:
        show_files(found)


def _command() -> str:
    return shlex.join(["coterie", *sys.argv[1:]])


def _resumed(options: ReproduceOptions) -> str:
    return f"finished runs are kept in {options.out}; to continue, run: {options.command}"


def _one_summary(constants: Path | None, figures: tuple[Figure, ...]) -> Path | None:
    if constants is not None and len(figures) > 1:
        raise ArgumentError(f"--constants is the summary of one figure, got {len(figures)} figures")
    return None if constants is None else constants.expanduser()


def _widths(word: str) -> tuple[Widths, ...]:
    choices: dict[str, tuple[Widths, ...]] = {
        "tuned": ("tuned",),
        "theory": ("theory",),
        "both": ("tuned", "theory"),
    }
    if word not in choices:
        raise ArgumentError(f"--widths must be tuned, theory or both, got {word!r}")
    return choices[word]


def _figures(names: list[str], datasets: str | None) -> tuple[Figure, ...]:
    """The named figures, on the named datasets."""
    from coterie.experiments.figures import find_figures

    if not names:
        raise ArgumentError(f"name what to reproduce: {', '.join(FIGURES)}, or all")
    figures = find_figures(tuple(names))
    return tuple(figures if datasets is None else (figure.on(_datasets(datasets)) for figure in figures))


def _datasets(listed: str) -> tuple[str, ...]:
    """The names between commas, each once and each of some figure's."""
    names = tuple(dict.fromkeys(name.strip() for name in listed.split(",") if name.strip()))
    if not names:
        raise ArgumentError(
            f"--datasets must name at least one of {', '.join(FIGURE_DATASETS)}, got {listed!r}"
        )
    for name in names:
        if name not in FIGURE_DATASETS:
            raise unknown("dataset", name, FIGURE_DATASETS, f"They are {', '.join(FIGURE_DATASETS)}")
    return names


def show_tables(found: Reproduction) -> None:
    """For each figure its tables."""
    for result in found.figures:
        for table in result.tables:
            if not table.detail:
                print_line(f"[bold]{result.figure.name}[/bold]: {table.title}")
                print_table(table.heading, table.rows, prose=table.prose)


def show_files(found: Reproduction) -> None:
    """Print the files of each figure and the report, then the finding of each figure."""
    out = console()
    for result in found.figures:
        paths = [path for path in result.files if path.suffix == ".png"] or list(result.files)
        for path in paths:
            out.print(f"{result.figure.name}: {path}", soft_wrap=True)
    out.print(f"report: {found.report}", soft_wrap=True)
    for result in found.figures:
        if result.sentence:
            name = f"{result.figure.name}: " if len(found.figures) > 1 else ""
            print_line(f"[bold]{name}{result.sentence}[/bold]")


def summary(found: Reproduction) -> dict[str, Any]:
    """Everything as plain values."""
    return {
        "command": found.options.command,
        "report": str(found.report),
        "skipped": list(found.skipped),
        "figures": [_figure_record(result) for result in found.figures],
    }


def _figure_record(result: FigureResult) -> dict[str, Any]:
    from coterie.experiments.tables import summary_rows

    return {
        "name": result.figure.name,
        "finding": result.sentence,
        "files": [str(path) for path in result.files],
        "rows": [row.record() for row in summary_rows(result.panels)],
        "claims": [verdict._asdict() for finding in result.findings for verdict in finding.verdicts],
        "tables": [table._asdict() for table in result.tables],
    }
