"""`coterie evaluate`: how much reward policies would have got, from a log of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.options import (
    Json,
    complete_policy,
    examples,
    import_from_here,
    whole_number,
    writable_folder,
)
from coterie.cli.output import one_blas_thread, write_json

EPILOG = examples(
    (
        "a log to try, a fifth of it uniform play",
        "coterie run LinUCBOne --arms 10 --log log.parquet --log-share 0.2",
    ),
    ("would these have done better?", "coterie evaluate log.parquet --policy AutoCLUB --policy LinUCBInd"),
    ("with a figure and a table", "coterie evaluate log.parquet --policy AutoCLUB --out evaluation"),
    (
        "your own table, arms as item ids",
        "coterie evaluate clicks.csv --columns user=customer,reward=click --items items.csv",
    ),
    ("arms that were drawn uniformly", "coterie evaluate clicks.csv --uniform --estimators replay"),
    (
        "a policy of your own, from greedy.py in this folder",
        "coterie evaluate log.parquet --policy greedy:Greedy",
    ),
)


def evaluate(
    log: Annotated[
        Path, typer.Argument(help="A log: .csv, .tsv, .parquet, .jsonl, or what `run --log` wrote.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY[:KEY=VALUE,...]",
            help="A policy, yours as MODULE:CLASS; repeatable. Default: AutoCLUB and LinUCBInd.",
            autocompletion=complete_policy,
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="KEY=VALUE", help="A parameter of each policy that takes it; repeatable."
        ),
    ] = None,
    estimators: Annotated[
        str, typer.Option(metavar="NAMES", help="Some of replay, ips, snips and dr, with commas.")
    ] = "replay,ips,snips,dr",
    columns: Annotated[
        str | None,
        typer.Option(metavar="OURS=YOURS,...", help="Names of your columns, where they differ."),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Vectors of the items, where `arms` holds ids: id, features."),
    ] = None,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Arms were drawn uniformly: the propensity is 1/K.")
    ] = False,
    intercept: Annotated[
        bool | None,
        typer.Option(
            "--intercept/--no-intercept", help="Add a feature that is 1 (where rewards are not centred)."
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    resamples: Annotated[
        int, typer.Option(parser=whole_number, metavar="N", help="Resamples of the bootstrap.")
    ] = 1000,
    seed: Annotated[
        int, typer.Option(parser=whole_number, metavar="N", help="Seed of policies and bootstrap.")
    ] = 0,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write a figure and a table here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate how much reward policies would have got, from a log.

    A log has a row for each event: user, arms (the vectors offered), arm (the position of what was played,
    from 0), propensity (the probability with which it was played), reward, and perhaps time. Some of it must
    have been played at random: 5 to 20 % of uniform play will do.

    replay is the mean reward of a policy's first rounds, if it were used from now on; it learns only from
    events that it would have caused. ips, snips and dr are its mean reward at all events, having learnt from
    all earlier ones. ips is unbiased; snips and dr have less noise where rewards are not centred.
    """
    one_blas_thread()
    import_from_here()
    from coterie.cli.evaluate_plan import evaluate_specs, open_log, plan_policies
    from coterie.cli.evaluate_results import EvaluateResults

    folder = None if out is None else writable_folder(out)
    events = open_log(log, columns, items, uniform=uniform, intercept=intercept)
    specs = plan_policies(events, policy or (), params or ())
    names = [name.strip() for name in estimators.split(",") if name.strip()]
    found = evaluate_specs(events, specs, names, level=level, resamples=resamples, seed=seed)
    results = EvaluateResults(log.name, events, specs, found)
    if not as_json:
        results.show()
    written = [] if folder is None else results.write(folder)
    if as_json:
        write_json(results.record(written))
    else:
        for path in written:
            print(path)
