"""`coterie run`: any policies in any world; a table, a curve, and results that are kept."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.guard import Interrupted
from coterie.cli.naming import (
    complete_dataset,
    complete_engine,
    complete_policy,
    complete_scale,
    complete_setting,
)
from coterie.cli.places import import_from_here, writable
from coterie.cli.teaching import examples
from coterie.cli.terminal import note, one_thread, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coterie.cli.outcome import Outcome
    from coterie.cli.plan import Plan
    from coterie.cli.settings import Settings

FOOT = examples(
    ("AutoCLUB, the default, on synthetic users", "coterie run"),
    (
        "some policies, longer, with results and pictures kept",
        "coterie run LinUCBInd CLUB UniCLUB --horizon 100000 --out results",
    ),
    (
        "the same policy with other constants",
        "coterie run CLUB:alpha=1 CLUB:alpha=1.5 CLUB:alpha=2 --beta 0.1",
    ),
    (
        "a policy of your own, from greedy.py in this folder",
        "coterie run --policy greedy:Greedy --policy CLUB --param epsilon=0.1",
    ),
    ("real data", "coterie run CLUB --dataset movielens --data ml-25m.zip"),
    (
        "your own table",
        "coterie run CLUB --dataset interactions --data clicks.csv --columns customer,product",
    ),
    ("users who come unevenly, and whose tastes drift", "coterie run SCLUB --set zipf=1 --set drift=0.1"),
    ("from a file; its keys are the names of these options", "coterie run --config run.toml"),
)


def run(
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="POLICY[:KEY=VALUE,...]",
            help="Policies, perhaps with parameters of their own. Default: AutoCLUB.",
            autocompletion=complete_policy,
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY",
            help="The same; yours is MODULE:CLASS, here or installed. Repeatable.",
            autocompletion=complete_policy,
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="KEY=VALUE", help="A parameter of each policy that takes it; repeatable."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in TOML; options override it.")
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="Where users and arms come from (synthetic).", autocompletion=complete_dataset),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Its file, archive or folder ($COTERIE_DATA)."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="USER,ITEM[,VALUE]", help="Columns of your own table.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Above this, a value of your table is feedback 1.")
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(help="stochastic or smoothed (stochastic).", autocompletion=complete_setting),
    ] = None,
    users: Annotated[int | None, typer.Option(help="Users (50).")] = None,
    clusters: Annotated[int | None, typer.Option(help="True clusters (10).")] = None,
    arms: Annotated[int | None, typer.Option(help="Arms a round (100).")] = None,
    dim: Annotated[int | None, typer.Option(help="Length of the vectors (50).")] = None,
    noise: Annotated[float | None, typer.Option(help="Noise σ of rewards (0.1).")] = None,
    scale: Annotated[
        str | None, typer.Option(help="unit, raw or sqrt-s (unit).", autocompletion=complete_scale)
    ] = None,
    world: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Anything else about the world; repeatable."),
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Rounds (20000).")] = None,
    seeds: Annotated[str | None, typer.Option(help="A count, or seeds with commas (3).")] = None,
    record: Annotated[int | None, typer.Option(help="Points of the curve (200).")] = None,
    alpha: Annotated[float | None, typer.Option(help="Factor of the clustering radius (15σ).")] = None,
    beta: Annotated[float | None, typer.Option(help="Factor of the bonus (σ).")] = None,
    explore: Annotated[int | None, typer.Option(help="Uniform rounds first (10 a user).")] = None,
    phase: Annotated[int | None, typer.Option(help="Uniform rounds of phase 0 (4 a user).")] = None,
    growth: Annotated[float | None, typer.Option(help="Growth of phases (2).")] = None,
    ridge: Annotated[float | None, typer.Option(help="Ridge λ (1).")] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Keep results, pictures and a table here.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time (all processors).")] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="local or ray: where runs are played (local).", autocompletion=complete_engine),
    ] = None,
    chart: Annotated[
        bool | None, typer.Option("--chart/--no-chart", help="Draw the curve (on a terminal).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Try policies in a world: regret, clusters, curves.

    All policies meet the same users, arms and noise. With --out each finished run is kept as a Parquet file,
    and a run that is there is not played again: after Ctrl-C the same command goes on where it stopped.
    """
    options = dict(locals())
    one_thread()
    import_from_here()
    from coterie.cli.settings import gather

    told = {name: options[name] for name in options if name not in ("config", "chart", "as_json")}
    settings = gather(config, told)
    with _folder(settings.out) as folder:
        from coterie.cli import showing
        from coterie.cli.plan import plan

        planned = plan(settings)
        outcomes = _played(planned, settings, folder)
        written = _written(planned, outcomes, settings, folder)
    if as_json:
        write_json(showing.record(planned, settings, outcomes, written))
    else:
        showing.show(planned, settings, outcomes, chart)
        for path in written:
            print(path)


@contextmanager
def _folder(out: str | None) -> Iterator[Path]:
    """The folder of results; without one, a passing one."""
    if out is None:
        with TemporaryDirectory(prefix="coterie-") as passing:
            yield Path(passing)
    else:
        yield writable(out)


def _played(planned: Plan, settings: Settings, folder: Path) -> list[Outcome]:
    """Play what is not there yet; Ctrl-C says what is kept."""
    from coterie.cli.live import watching
    from coterie.cli.outcome import Outcome
    from coterie.cli.timing import Timed
    from coterie.experiments.engines import find
    from coterie.experiments.execute import execute
    from coterie.experiments.results import Entry
    from coterie.experiments.store import Store
    from coterie.experiments.styles import styles

    store, engine = Store(folder), find(settings.engine)(settings.jobs)
    try:
        with watching(planned.label) as watch:
            timed = Timed(watch)
            execute("all", planned.runs, store=store, engine=engine, shelf=planned.shelf, watch=timed)
    except KeyboardInterrupt:
        done = sum(run in store for run in planned.runs)
        raise Interrupted(_parting(done, len(planned.runs), settings.out)) from None
    looks = styles(spec.name for spec in planned.policies)
    return [
        Outcome(
            label,
            Entry(spec, tuple(store.read(run) for run in planned.runs if run.policy == spec)),
            looks[spec.name],
            timed.pace(spec),
        )
        for label, spec in zip(planned.labels, planned.policies, strict=True)
    ]


def _parting(done: int, total: int, out: str | None) -> str:
    if out is None:
        return f"interrupted; {done} of {total} runs were finished, and nothing is kept without --out FOLDER"
    return f"interrupted; {done} of {total} runs are kept in {out}, the same command goes on from there"


def _written(planned: Plan, outcomes: list[Outcome], settings: Settings, folder: Path) -> list[Path]:
    from coterie.cli import figure, showing

    if settings.out is None:
        return []
    written = figure.write(outcomes, showing.title(planned, settings), folder)
    if len(written) == 1:
        note("coterie: no picture was drawn, it needs matplotlib: pip install 'coterie[plot]'")
    return written
