"""`coterie compare`: two folders of results, run by run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.guard import FAILED
from coterie.cli.places import import_from_here
from coterie.cli.teaching import examples
from coterie.cli.terminal import console, note, table, write_json

if TYPE_CHECKING:
    from rich.table import Table

    from coterie.cli.pairing import Comparison, Match

FOOT = examples(
    ("two versions of the code, or two machines", "coterie compare results-before results-after"),
    ("seed by seed", "coterie compare results-before results-after --each"),
    ("how well clusters were found", "coterie compare results-before results-after --metric ari"),
)


def compare(
    first: Annotated[Path, typer.Argument(help="A folder that `run --out` or `reproduce --out` wrote.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
    metric: Annotated[
        str, typer.Option(help="regret, reward, clusters, ari or explored, at the end.")
    ] = "regret",
    level: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    each: Annotated[bool, typer.Option("--each", help="A row for each seed as well.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two folders of results, run by run.

    Runs are paired that have the same world, horizon, policy and seed, and the mean of their differences is
    given with Student's confidence interval. Constants may differ if each folder has the policy with one set
    of them only. What is in one folder only is listed.
    """
    import_from_here()
    from coterie.cli.pairing import compared, opened

    found = compared(opened(first), opened(second), metric=metric, level=level)
    if as_json:
        write_json({"metric": metric, "level": level, **found.record()})
    else:
        _show(found, first, second, metric, level, each)
    if not found.matches:
        note("coterie: the two folders have no run in common")
        raise typer.Exit(FAILED)


def _show(found: Comparison, first: Path, second: Path, metric: str, level: float, each: bool) -> None:
    out = console()
    out.print(f"{metric} at the end; first is {first}, second is {second}", markup=False)
    for world in dict.fromkeys(match.world for match in found.matches):
        names = ("policy", "seeds", "first", "second", "difference", f"{level:.0%} interval", "verdict")
        shown = table(*names, title=world, left=("verdict",))
        for match in found.matches:
            if match.world == world:
                _add(shown, match, each)
        out.print(shown)
    for folder, labels in ((first, found.only_first), (second, found.only_second)):
        if labels:
            out.print(f"Only in {folder}:", markup=False)
            for label, seeds in labels.items():
                out.print(f"  {label}, seeds {', '.join(map(str, seeds))}", markup=False)


def _add(shown: Table, match: Match, each: bool) -> None:
    from rich.markup import escape

    from coterie.experiments.tables import known

    low, high = match.interval
    wide = "–" if low != low else f"{low:+,.3g} to {high:+,.3g}"
    shown.add_row(
        f"[bold]{escape(match.policy)}[/bold]",
        str(len(match.seeds)),
        known(float(match.first.mean()), ",.6g"),
        known(float(match.second.mean()), ",.6g"),
        known(match.difference, "+,.4g"),
        wide,
        match.verdict(),
    )
    if each:
        for seed, a, b in zip(match.seeds, match.first, match.second, strict=True):
            ends = (known(a, ",.6g"), known(b, ",.6g"), known(b - a, "+,.4g"))
            shown.add_row(f"[dim]  seed {seed}[/dim]", "", *ends, "", "")
