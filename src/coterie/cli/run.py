"""`coterie run`: any policies in any world; a table, a curve, and results that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.errors import saying_what_is_kept
from coterie.cli.options import (
    Json,
    complete_dataset,
    complete_engine,
    complete_policy,
    complete_scale,
    complete_setting,
    examples,
    import_from_here,
    whole_number,
    writable_folder,
)
from coterie.cli.output import one_blas_thread, print_note, write_json

if TYPE_CHECKING:
    from coterie.cli.run_results import RunResults
    from coterie.cli.settings import RunSettings
    from coterie.experiments.run_store import Run, Store

EPILOG = examples(
    ("AutoCLUB beside a LinUCB for each user, on synthetic users", "coterie run"),
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
    ("real data, rewards made up", "coterie run CLUB --dataset movielens --data ml-25m.zip"),
    ("rewards that users really gave", "coterie run --setting rated --data ml-25m.zip"),
    (
        "your own table",
        "coterie run CLUB --dataset interactions --data clicks.csv --columns customer,product",
    ),
    ("users who come unevenly, and whose tastes drift", "coterie run SCLUB --set zipf=1 --set drift=0.1"),
    (
        "a log for `coterie evaluate`, a fifth of it uniform play",
        "coterie run LinUCBOne --arms 10 --log log.parquet --log-share 0.2",
    ),
    ("from a file; its keys are the names of these options", "coterie run --config run.toml"),
)


def run(
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="POLICY[:KEY=VALUE,...]",
            help="Policies, perhaps with parameters of their own. Default: AutoCLUB and LinUCBInd.",
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
        str | None, typer.Option(metavar="USER,ITEM[,VALUE][,TIME]", help="Columns of your own table.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Above this, a value of your table, or a rating, is feedback 1.")
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="drop: leave out rows of your table that lack a value (refuse).")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="What separates columns of your table (found by itself).")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of your table (utf-8).")] = None,
    items: Annotated[
        str | None, typer.Option(metavar="FILE", help="Vectors of your items, for --setting payoffs.")
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="stochastic or smoothed; real feedback: lastfm-2014, rated, stream or payoffs (stochastic).",
            autocompletion=complete_setting,
        ),
    ] = None,
    users: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="Users (50).")] = None,
    clusters: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="True clusters (10).")
    ] = None,
    arms: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Arms a round (100).")
    ] = None,
    dim: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Length of the vectors (50).")
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Noise σ of rewards (0.1).")] = None,
    intercept: Annotated[
        bool | None,
        typer.Option(
            "--intercept/--no-intercept",
            help="Give arms a feature that is the same for all (where rewards are not centred).",
        ),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="unit, raw or sqrt-s (unit).", autocompletion=complete_scale)
    ] = None,
    world: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Anything else about the world; repeatable."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Rounds (20000).")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="A count, or seeds with commas (3).")] = None,
    record: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Points of the curve (200).")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Factor of the clustering radius (15σ).")] = None,
    beta: Annotated[float | None, typer.Option(help="Factor of the bonus (σ).")] = None,
    explore: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Uniform rounds first (10 a user).")
    ] = None,
    phase: Annotated[
        int | None,
        typer.Option(parser=whole_number, metavar="N", help="Uniform rounds of phase 0 (4 a user)."),
    ] = None,
    growth: Annotated[float | None, typer.Option(help="Growth of phases (2).")] = None,
    ridge: Annotated[float | None, typer.Option(help="Ridge λ (1).")] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Keep results, pictures and a table here.")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a log of one policy for `evaluate`, and no table."),
    ] = None,
    log_share: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Its share of uniform play (0.1).")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Runs at a time (all processors).")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="local or ray: where runs are played (local).", autocompletion=complete_engine),
    ] = None,
    chart: Annotated[
        bool | None, typer.Option("--chart/--no-chart", help="Draw the curve (on a terminal).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Try policies in a world: regret, clusters, curves.

    All policies meet the same users, arms and noise. With --out each finished run is kept as a Parquet file,
    and a run that is there is not played again: after Ctrl-C the same command goes on where it stopped.
    """
    options = dict(locals())
    one_blas_thread()
    import_from_here()
    from coterie.cli.settings import read_settings

    given = {name: options[name] for name in options if name not in ("config", "chart", "as_json")}
    settings = read_settings(config, given)
    if settings.log is not None or settings.log_share is not None:
        from coterie.cli.run_log import write_log

        write_log(settings, as_json=as_json)
        return
    with _folder(settings.out) as folder:
        results = _play(settings, folder)
        if not as_json:
            results.show(chart)
        written = []
        if settings.out is not None:
            with saying_what_is_kept(lambda: f"all runs are kept in {settings.out}"):
                written = _write(results, folder)
    if as_json:
        write_json(results.record(written))
    else:
        for path in written:
            print(path)


@contextmanager
def _folder(out: str | None) -> Iterator[Path]:
    """The folder of results; without one, a temporary one."""
    if out is None:
        with TemporaryDirectory(prefix="coterie-") as temporary:
            yield Path(temporary)
    else:
        yield writable_folder(out)


def _play(settings: RunSettings, folder: Path) -> RunResults:
    """Play what is not there yet; Ctrl-C says what is kept."""
    from coterie.cli.progress import progress_display
    from coterie.cli.run_plan import plan_runs
    from coterie.cli.run_results import collect
    from coterie.experiments.run_store import Store
    from coterie.experiments.runner import Runner, find_engine

    plan, store = plan_runs(settings), Store(folder)
    engine = find_engine(settings.engine)(settings.jobs)
    with saying_what_is_kept(lambda: _kept(plan.runs, store, settings.out)):
        with progress_display(plan.label) as callback:
            seconds = Runner(store, engine, plan.data, callback).play("all", plan.runs)
    return collect(plan, store, seconds, horizon=plan.runs[0].horizon, seeds=settings.seeds)


def _kept(runs: Sequence[Run], store: Store, out: str | None) -> str:
    """How many runs are finished, and where they are."""
    share = f"{sum(run in store for run in runs)} of {len(runs)} runs"
    if out is None:
        return f"{share} were finished, and nothing is kept without --out FOLDER"
    return f"{share} are kept in {out}, the same command goes on from there"


def _write(results: RunResults, folder: Path) -> list[Path]:
    from coterie.extras import install_command

    written = results.write(folder)
    if len(written) == 1:
        command = install_command("matplotlib")
        print_note(f"coterie: no picture was drawn, it needs matplotlib, which is not installed: {command}")
    return written
