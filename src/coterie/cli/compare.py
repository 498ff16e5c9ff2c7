"""`coterie compare`: two folders of results, run by run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.exit_codes import FAILED
from coterie.cli.options import Json, examples, import_from_here
from coterie.cli.output import console, print_note, print_table, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coterie.experiments.comparison import Comparison, PolicyDifference

EPILOG = examples(
    ("two versions of the code, or two machines", "coterie compare results-before results-after"),
    ("seed by seed", "coterie compare results-before results-after --each"),
    ("how well clusters were found", "coterie compare results-before results-after --metric ari"),
)


def compare(
    first: Annotated[Path, typer.Argument(help="A folder that `run --out` or `reproduce --out` wrote.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
    metric: Annotated[
        str, typer.Option(help="regret, reward, relative (to uniform play), clusters, ari or explored.")
    ] = "regret",
    level: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    each: Annotated[bool, typer.Option("--each", help="A row for each seed as well.")] = False,
    as_json: Json = False,
) -> None:
    """Compare two folders of results, run by run.

    Runs with the same environment, horizon, policy and seed are paired, and the mean of their differences is
    given with Student's confidence interval. Constants may differ if each folder has only one set of them for
    the policy. Runs without a partner are listed.
    """
    import_from_here()
    from coterie.experiments.comparison import compare_results, read_results

    found = compare_results(read_results(first), read_results(second), metric=metric, level=level)
    if as_json:
        write_json({"metric": metric, "level": level, **found.record()})
    else:
        _show(found, first, second, metric, level, each)
    if not found.differences:
        print_note("coterie: the two folders have no runs in common")
        raise typer.Exit(FAILED)


def _show(found: Comparison, first: Path, second: Path, metric: str, level: float, each: bool) -> None:
    out = console()
    out.print(f"{metric} at the end; first is {first}, second is {second}", markup=False, soft_wrap=True)
    columns = ("policy", "seeds", "first", "second", "difference", f"{level:.0%} interval", "verdict")
    for environment in dict.fromkeys(one.environment for one in found.differences):
        rows = [
            row for one in found.differences if one.environment == environment for row in _rows(one, each)
        ]
        print_table(columns, rows, title=environment, left=("verdict",), optional=("seeds", columns[5]))
    for folder, labels in ((first, found.only_first), (second, found.only_second)):
        if labels:
            out.print(f"Only in {folder}:", markup=False, soft_wrap=True)
            for label, seeds in labels.items():
                listed = ", ".join(map(str, seeds))
                out.print(f"  {label}, seeds {listed}", markup=False, soft_wrap=True)


def _rows(one: PolicyDifference, each: bool) -> Iterator[tuple[str, ...]]:
    """A row for the policy, and perhaps one for each seed."""
    from rich.markup import escape

    from coterie.experiments.tables import known

    low, high = one.interval
    yield (
        f"[bold]{escape(one.policy)}[/bold]",
        str(len(one.seeds)),
        known(float(one.first.mean()), ",.6g"),
        known(float(one.second.mean()), ",.6g"),
        known(one.difference, "+,.4g"),
        "–" if low != low else f"{low:+,.3g} to {high:+,.3g}",
        one.verdict(),
    )
    if each:
        for seed, a, b in zip(one.seeds, one.first, one.second, strict=True):
            ends = (known(a, ",.6g"), known(b, ",.6g"), known(b - a, "+,.4g"))
            yield (f"[dim]  seed {seed}[/dim]", "", *ends, "", "")
