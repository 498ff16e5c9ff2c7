"""`coterie evaluate`: how much reward policies would have got, from a log of another one.

Modules that load NumPy are imported in functions, so that `--help` is instant.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from coterie.cli.options import (
    Json,
    complete_policy,
    examples,
    import_from_here,
    whole_number,
    writable_folder,
)
from coterie.cli.output import console, one_blas_thread, print_note, print_table, write_json

if TYPE_CHECKING:
    from coterie.evaluation import Estimate, Evaluation, Log
    from coterie.experiments.specs import PolicySpec

DEFAULTS = ("AutoCLUB", "LinUCBInd", "LinUCBOne", "ItemUCB")
DEFAULT_NAMES = "AutoCLUB, LinUCBInd, LinUCBOne and ItemUCB, beside the policy that wrote the log"

INTERVAL_WIDTH = 30
"""Characters of an interval in the table."""

INTERCEPT = "rewards are not centred, so a constant feature of 1 was added; --no-intercept leaves it out"

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
    ("user, item, click and time, nothing else", "coterie evaluate clicks.csv --items items.csv"),
    (
        "a policy of your own, from greedy.py in this folder",
        "coterie evaluate log.parquet --policy greedy:Greedy",
    ),
)


def evaluate(
    log: Annotated[
        Path, typer.Argument(help="A log: .csv, .tsv, .parquet, .jsonl, .dsjson, or what `run --log` wrote.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY[:KEY=VALUE,...]",
            help=f"A policy; one of your own is MODULE:CLASS. Repeatable. Default: {DEFAULT_NAMES}.",
            autocompletion=complete_policy,
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="KEY=VALUE", help="A parameter for each policy that has it. Repeatable."
        ),
    ] = None,
    estimators: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Some of replay, ips, snips, dr, model, with commas. Default: what the log allows.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="OURS=YOURS,...", help="Names of columns, where yours differ."),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of item vectors (id, features), if `arms` holds ids; or a service's export of items.",
        ),
    ] = None,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Arms were drawn uniformly: the propensity is 1/K.")
    ] = False,
    arms: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="N",
            help="In a log without offers: the items that a decision is taken to be among. Default: 20.",
        ),
    ] = None,
    intercept: Annotated[
        bool | None,
        typer.Option(
            "--intercept/--no-intercept", help="Add a constant feature of 1 (if rewards are not centred)."
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
    """Estimate the reward that policies would have got, from a log.

    A log has a row for each event: user, arms (the vectors offered), arm (the position of what was played,
    from 0), propensity (the probability with which it was played), reward, and perhaps time. Some of it must
    have been played at random: 5 to 20 % of uniform play will do. Without propensities these are estimated
    from what was played.

    A plain log has user, item and reward, and perhaps time; the vectors of items are in the table --items. A
    decision is then taken to be among the item played and 19 others, drawn at random. If items were shown
    uniformly at random (--uniform), the estimates hold for such decisions; if not, only a model can predict
    the rest, and the answer says so.

    replay is the mean reward of a policy's first rounds, if it were used from now on; it learns only from
    events in which it chooses the logged arm. ips, snips and dr estimate its mean reward over all events,
    where at each event it has learnt from all earlier ones. ips is unbiased; snips and dr have less noise
    where rewards are not centred. model is the prediction of a hierarchical model, and no measurement. The
    verdict compares the first policy with the one that wrote the log and with the best of the others.
    """
    one_blas_thread()
    import_from_here()
    from coterie.cli.config import assignments
    from coterie.cli.progress_bars import event_progress
    from coterie.cli.run_settings import parse_policy
    from coterie.evaluation.estimates import passes
    from coterie.evaluation.estimators import possible_estimators
    from coterie.experiments.logs import evaluate_specs, specs_for_log
    from coterie.experiments.run_plan import SharedParameters

    folder = None if out is None else writable_folder(out)
    events = open_log(log, columns, items, uniform=uniform, n_arms=arms, seed=seed, intercept=intercept)
    shared = SharedParameters({}, assignments("--param", params or ()))
    specs = specs_for_log(events, [parse_policy(word) for word in policy or DEFAULTS], shared)
    words = possible_estimators(events) if estimators is None else estimators.split(",")
    names = [name.strip() for name in words if name.strip()]
    with event_progress("evaluating", len(events) * len(specs) * passes(names)) as advance:
        found = evaluate_specs(
            events, specs, names, level=level, resamples=resamples, seed=seed, advance=advance
        )
    results = EvaluateResults(log.name, events, tuple(specs), found)
    if not as_json:
        results.show()
    written = [] if folder is None else results.write(folder)
    if as_json:
        write_json(results.record(written))
    else:
        for path in written:
            print(path)


def open_log(
    path: Path,
    columns: str | None,
    items: Path | None,
    *,
    uniform: bool,
    n_arms: int | None,
    seed: int,
    intercept: bool | None,
) -> Log:
    """The log, with an intercept if that was requested or if rewards are not centred."""
    from coterie.cli.config import assignments
    from coterie.evaluation import read_log
    from coterie.evaluation.estimators import is_off_centre

    pairs = [pair for pair in (columns or "").split(",") if pair.strip()]
    names = {ours: str(theirs) for ours, theirs in assignments("--columns", pairs).items()}
    log = read_log(path, columns=names, items=items, uniform=uniform, n_arms=n_arms, seed=seed)
    if intercept is None:
        intercept = not log.has_intercept and is_off_centre(log)
        if intercept:
            print_note(f"coterie: {INTERCEPT}")
    return log.with_intercept() if intercept else log


class EvaluateResults(NamedTuple):
    """The estimates of several policies on a log: as a table, a figure, or plain values."""

    name: str
    log: Log
    specs: tuple[PolicySpec, ...]
    found: Evaluation

    @property
    def title(self) -> str:
        """The log in one line."""
        from coterie.validation import counted

        log = self.log
        sizes = " to ".join(dict.fromkeys(f"{size:,}" for size in (log.sizes.min(), log.sizes.max())))
        return (
            f"{self.name}: {counted(len(log), 'event')} of {counted(log.n_users, 'user')}, "
            f"{sizes} arms of dim {log.dim}, mean reward {log.rewards.mean():.4g}"
        )

    def rows(self) -> list[Estimate]:
        """The estimates, the policy of the highest last estimate first, then the baselines."""
        last = {one.policy: one.reward for one in self.found.estimates}
        ranked = sorted(self.found.estimates, key=lambda one: -last[one.policy])
        return [*ranked, *self.found.baselines]

    def show(self) -> None:
        """Print the table."""
        from rich.markup import escape

        from coterie.experiments.tables import known

        interval = f"{self.found.level:.0%} interval"
        columns = ("policy", "estimator", "reward", interval, "effective", "")
        rows = self.rows()
        ends = [end for one in rows for end in (one.low, one.high) if end == end]
        low, high = min(ends, default=0.0), max(ends, default=0.0)
        console().print(f"[bold]{escape(self.title)}[/bold]", soft_wrap=True)
        shown = [
            (
                f"[bold]{escape(one.policy)}[/bold]",
                one.estimator,
                known(one.reward, ".4g"),
                "–" if one.low != one.low else f"{one.low:.4g} to {one.high:.4g}",
                f"{one.effective:,.0f}",
                f"[dim]{drawn_interval(one, low, high)}[/dim]",
            )
            for one in rows
        ]
        print_table(columns, shown, left=("estimator", ""), optional=("", "effective"))
        console().print(escape(self.found.verdict), soft_wrap=True)

    def record(self, written: list[Path]) -> dict[str, Any]:
        """Everything as plain values."""
        from coterie.experiments.results import labels_of

        specs = dict(zip(labels_of(self.specs), self.specs, strict=True))
        return {
            "log": self.name,
            "events": self.found.events,
            "users": self.log.n_users,
            "dim": self.log.dim,
            "level": self.found.level,
            "policies": {label: {"name": s.name, "params": dict(s.params)} for label, s in specs.items()},
            "estimates": [one._asdict() for one in self.found.estimates],
            "baselines": [one._asdict() for one in self.found.baselines],
            "differences": [one._asdict() for one in self.found.differences],
            "verdict": self.found.verdict,
            "warnings": list(self.found.warnings),
            "written": [str(path) for path in written],
        }

    def write(self, folder: Path) -> list[Path]:
        """Write `evaluation.csv` and the pictures; without matplotlib the table alone."""
        from coterie.atomic_files import atomic_write
        from coterie.experiments.plotting import draw_estimates
        from coterie.extras import install_command

        table = folder / "evaluation.csv"
        atomic_write(table, self.found.to_frame().write_csv().encode())
        if find_spec("matplotlib") is None:
            print_note(f"coterie: no picture was drawn, it needs matplotlib: {install_command('matplotlib')}")
            return [table]
        return [table, *draw_estimates(self.found, self.specs, self.title, folder, "evaluation")]


def drawn_interval(one: Estimate, low: float, high: float) -> str:
    """An interval as a line of text between two values that all intervals lie between.

    >>> from coterie.evaluation import Estimate
    >>> drawn_interval(Estimate("CLUB", "ips", 0.5, 0.25, 0.75, 100.0), 0.0, 1.0)
    '       ├──────●───────┤'
    """
    if one.low != one.low or high <= low:
        return ""
    left, middle, right = (
        round((min(max(value, low), high) - low) / (high - low) * (INTERVAL_WIDTH - 1))
        for value in (one.low, one.reward, one.high)
    )
    line = [" "] * left + ["─"] * (right - left + 1)
    line[left], line[right] = "├", "┤"
    line[min(max(middle, left), right)] = "●"
    return "".join(line)
