"""`coterie run`: any policies in any environment; a table, a curve, and stored results.

Modules that load NumPy are imported in functions, so that `--help` is instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from coterie.cli.exit_codes import saying_what_is_kept
from coterie.cli.options import (
    DEFAULT_POLICY_NAMES,
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
from coterie.cli.output import (
    Curve,
    braille_chart,
    console,
    one_blas_thread,
    print_line,
    print_note,
    print_table,
    write_json,
)
from coterie.errors import ArgumentError

if TYPE_CHECKING:
    from coterie.cli.run_settings import RunSettings
    from coterie.experiments.results import PolicyResult
    from coterie.experiments.run_plan import RunPlan
    from coterie.experiments.run_store import Run, Store
    from coterie.experiments.specs import EnvironmentSpec
    from coterie.policies.declarations import Style

COLUMNS = ("policy", "regret", "± s.e.", "clusters", "ARI", "µs/round", "constants")
REAL_COLUMNS = ("policy", "regret", "± s.e.", "reward", "× uniform", "clusters", "µs/round", "constants")
GROUPED_COLUMNS = (*REAL_COLUMNS[:6], "ARI", *REAL_COLUMNS[6:])
"""Real feedback of users whose groups are known."""
OPTIONAL = ("constants", "µs/round", "ARI", "clusters", "reward", "± s.e.")
"""Columns that a narrow terminal does without, the least important first."""

LOG_SHARE = 0.1
"""The share of uniform play in a log, unless `--log-share` says otherwise."""

EPILOG = examples(
    ("compare AutoCLUB with a separate LinUCB for each user, on synthetic data", "coterie run"),
    (
        "a longer run of three policies, with results and pictures",
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
    ("vectors from real data, simulated rewards", "coterie run CLUB --dataset movielens --data ml-25m.zip"),
    ("real ratings as rewards", "coterie run --setting rated --data ml-25m.zip"),
    (
        "your own table",
        "coterie run CLUB --data clicks.csv --columns user=customer,item=product",
    ),
    (
        "users of unequal activity, with drifting preferences",
        "coterie run SCLUB --set zipf=1 --set drift=0.1",
    ),
    (
        "a log for `coterie evaluate`, a fifth of it uniform play",
        "coterie run LinUCBOne --arms 10 --log log.parquet --log-share 0.2",
    ),
    (
        "everything for a paper: tuned policies, a PDF, a table and captions in LaTeX",
        "coterie run CLUB SCLUB LinUCBInd --tune --seeds 5 --out paper --latex --labels CLUB=Baseline",
    ),
    ("options from a file", "coterie run --config run.toml"),
)


def run(
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="POLICY[:KEY=VALUE,...]",
            help="Policies, each with parameters of its own if given. "
            f"Default: {DEFAULT_POLICY_NAMES}; in duels without ItemUCB.",
            autocompletion=complete_policy,
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY",
            help="A policy, like the argument; write one of your own as MODULE:CLASS. Repeatable.",
            autocompletion=complete_policy,
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="KEY=VALUE", help="A parameter for each policy that has it. Repeatable."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Options from a TOML file; those given here override it."),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            help="Source of the vectors of users and items (synthetic).", autocompletion=complete_dataset
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="File, archive or folder of the dataset ($COTERIE_DATA)."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="OURS=YOURS,...",
            help="Columns of your own table, if not called user and item; value=YOURS names that "
            "of values, time=YOURS that of times (--setting stream).",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Values of your table, or ratings, above this are positive feedback (1), others 0."
        ),
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="Rows of your table that lack a value: refuse or drop (refuse).")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="Separator of the columns of your table (detected).")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of your table (utf-8).")] = None,
    items: Annotated[
        str | None, typer.Option(metavar="FILE", help="Vectors of your items, for --setting payoffs.")
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="Kind of environment. Simulated rewards: stochastic or smoothed. Real feedback: "
            "lastfm-2014, rated, complete, stream or payoffs. (stochastic)",
            autocompletion=complete_setting,
        ),
    ] = None,
    users: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Number of users (50).")
    ] = None,
    clusters: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Number of true clusters (10).")
    ] = None,
    arms: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Arms in each round (100).")
    ] = None,
    dim: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Dimension of the vectors (50).")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="Standard deviation σ of the noise in rewards (0.1).")
    ] = None,
    intercept: Annotated[
        bool | None,
        typer.Option(
            "--intercept/--no-intercept",
            help="Add a feature that is the same for all arms (if rewards are not centred).",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="Scaling of the vectors: unit (length 1), raw (as computed) or sqrt-s (times the roots of "
            "the singular values) (unit).",
            autocompletion=complete_scale,
        ),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any other parameter of the environment. Repeatable."
        ),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Number of rounds (20000).")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Number of seeds, or seeds separated by commas (3).")
    ] = None,
    record: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="Points of the curve (200).")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Factor of the clustering radius (15σ).")] = None,
    beta: Annotated[float | None, typer.Option(help="Factor of the bonus (σ).")] = None,
    explore: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="N",
            help="Rounds of uniform exploration at the start (10 for each user).",
        ),
    ] = None,
    phase: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="N",
            help="PhaseUniCLUB: uniform rounds in the first phase (4 for each user).",
        ),
    ] = None,
    growth: Annotated[float | None, typer.Option(help="Factor by which phases grow (2).")] = None,
    ridge: Annotated[float | None, typer.Option(help="Ridge λ (1).")] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Folder for results, pictures and a table.")
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Choose the constants of each policy first, on two seeds that are not reported, from a grid "
            "of up to 24 points; parameters that are given stay.",
        ),
    ] = False,
    latex: Annotated[
        bool,
        typer.Option(
            "--latex",
            help="With --out: also table.tex (booktabs), figure.tex and references.bib for a paper.",
        ),
    ] = False,
    title: Annotated[
        str | None, typer.Option(help="With --out: title of the figure; '' for none (the environment).")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="POLICY=LABEL,...", help="Other names of policies in tables and figures."),
    ] = None,
    width: Annotated[
        float | None, typer.Option(metavar="INCHES", help="With --out: width of the figure (5.2).")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a log of one policy for `coterie evaluate`, and no table."),
    ] = None,
    log_share: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Share of uniform play in the log (0.1).")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(parser=whole_number, metavar="N", help="Runs in parallel (one for each processor)."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="local: threads on this machine; ray: a Ray cluster (local).", autocompletion=complete_engine
        ),
    ] = None,
    chart: Annotated[
        bool | None, typer.Option("--chart/--no-chart", help="Draw the regret as a chart (on a terminal).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Simulate policies in an environment and compare their regret.

    An environment has a dataset (the vectors of users and items), a setting (how rounds are made from
    them) and parameters such as --users and --noise; --set takes any other, such as zipf=1. Defaults are
    in brackets.

    All policies meet the same users, arms and noise. With --out, each finished run is kept as a Parquet file
    and not repeated: after Ctrl-C the same command continues where it stopped.
    """
    # Taken before anything else is assigned: these are exactly the options of the command.
    options = dict(locals())
    one_blas_thread()
    import_from_here()
    from coterie.cli.run_settings import read_settings

    given = {name: options[name] for name in options if name not in ("config", "chart", "as_json")}
    # Not given, so that a file may say otherwise.
    given.update((name, given[name] or None) for name in ("tune", "latex"))
    if as_json and chart:
        raise ArgumentError("--chart has no effect with --json: leave one of them out")
    settings = read_settings(config, given)
    if settings.log is not None or settings.log_share is not None:
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
    """Play the runs that are not in the folder yet; Ctrl-C says what is kept."""
    from coterie.cli.progress_bars import progress_display
    from coterie.cli.run_settings import plan_settings
    from coterie.experiments.run_store import Store
    from coterie.experiments.runner import Runner, find_engine
    from coterie.experiments.tuning import TuningProtocol, choose, tuning_runs

    plan, store = plan_settings(settings), Store(folder)
    engine = find_engine(settings.engine)(settings.jobs)
    times: dict[str, float] = {}
    with saying_what_is_kept(lambda: _kept(plan.runs, store, settings.out)):
        if settings.tune:
            protocol = TuningProtocol()
            studies = plan.studies(protocol)
            with progress_display() as callback:
                Runner(store, engine, plan.data, callback).play("tuning", tuning_runs(studies, protocol))
            plan = plan.tuned([choose(study, protocol, store) for study in studies])
        with progress_display(plan.label) as callback:
            runner = Runner(store, engine, plan.data, callback)
            seconds = runner.play("all", plan.runs)
            if settings.latex:
                first = [run for run in plan.runs if run.seed == plan.seeds[0]]
                measured = runner.time(first, folder)
                times = {str(run.policy): 1e6 * measured[run.id] / run.horizon for run in first}
    return RunResults(plan, plan.results(store, seconds), settings, times)


def _kept(runs: Sequence[Run], store: Store, out: str | None) -> str:
    """The number of finished runs, and where they are."""
    share = f"{sum(run in store for run in runs)} of {len(runs)} runs"
    if out is None:
        return f"{share} were finished, and nothing is kept without --out FOLDER"
    return f"{share} are kept in {out}; the same command continues from there"


def _write(results: RunResults, folder: Path) -> list[Path]:
    from coterie.extras import install_command

    written = results.write(folder)
    if not any(path.suffix == ".pdf" for path in written):
        command = install_command("matplotlib")
        print_note(f"coterie: no picture was drawn, it needs matplotlib, which is not installed: {command}")
    return written


class RunResults(NamedTuple):
    """The results of a plan: as a table, a chart, a picture, or plain values."""

    plan: RunPlan
    results: tuple[PolicyResult, ...]
    settings: RunSettings
    microseconds: Mapping[str, float]
    """Of a round of each policy, measured alone; empty where no table for a paper is wanted."""

    def labelled(self) -> list[LabelledResult]:
        """Each result with its label and its style."""
        from coterie.experiments.plotting import styles_of

        plan = self.plan
        every = zip(self.labels, self.results, styles_of(plan.policies), strict=True)
        return [LabelledResult(*one) for one in every]

    @property
    def labels(self) -> list[str]:
        """The label of each policy, as --labels has it."""
        return [self.settings.labels.get(label, label) for label in self.plan.labels]

    @property
    def tuning(self) -> str:
        """A sentence on how the constants of policies were chosen."""
        from coterie.experiments.tuning import FIRST_SEED, TuningProtocol

        if self.plan.is_tuned:
            seeds = f"seeds {FIRST_SEED} and {FIRST_SEED + 1}"
            rounds = TuningProtocol().rounds(self.plan.horizon)
            return f"Constants were chosen from a grid on {seeds}, with {rounds:,} rounds."
        if not self.plan.untuned:
            return ""
        names = ", ".join(self.plan.untuned)
        return f"Not tuned: {names}. Their constants are those to start from; --tune finds better ones."

    @property
    def environment(self) -> str:
        """The environment and the horizon in one line."""
        from coterie.validation import counted

        w = self.plan.environment
        parts = [counted(w.n_arms, "arm"), counted(self.plan.horizon, "round")]
        users = counted(w.n_users, "user")
        if not w.is_real:
            users = f"{users} in {counted(w.n_clusters, 'cluster')}"
            parts.insert(1, rewards_line(w))
        elif w.duels or w.once:
            parts.insert(1, "duels" if w.duels else "each item once")
        return f"{w.dataset}, {w.setting}: {', '.join([users, *parts])}"

    @property
    def short_title(self) -> str:
        """The data and the setting, short enough for the line above a figure."""
        environment = self.plan.environment
        path = self.plan.data.path(environment.dataset)
        own = environment.dataset == "interactions" and path is not None
        name = path.name if own and path is not None else self.plan.panel(self.results).dataset_name
        return name if environment.setting == "stochastic" else f"{name}, {environment.setting}"

    @property
    def caution(self) -> str:
        """A warning: what is simulated, what was left out, whether arms have an intercept."""
        from coterie.experiments.run_plan import feedback_notes

        environment = self.plan.environment
        parts: list[str] = []
        if environment.is_real:
            parts += feedback_notes(environment, self.plan.data)
        elif environment.dataset != "synthetic":
            parts.append("Rewards and clusters are simulated; only the vectors come from your data.")
        if environment.intercept:
            parts.append(
                "Arms have an intercept, since rewards are not centred; --no-intercept leaves it out."
            )
        elif environment.offset:
            parts.append("Rewards are not centred and arms have no intercept: expect much regret.")
        return " ".join(parts)

    def show(self, draw_chart: bool | None) -> None:
        """Print the table, least regret first, and the chart if requested or if stdout is a terminal."""
        from rich.markup import escape

        from coterie.validation import counted

        out = console()
        ranked = sorted(self.labelled(), key=lambda one: one.result.mean_regret)
        seeds = counted(len(self.plan.seeds), "seed")
        print_line(f"[bold]{escape(self.environment)}, {seeds}[/bold]")
        if self.caution:
            print_line(self.caution)
        is_grouped = any(isfinite(one.result.final("ari").mean) for one in ranked)
        real_columns = GROUPED_COLUMNS if is_grouped else REAL_COLUMNS
        columns: tuple[str, ...] = real_columns if self.plan.environment.is_real else COLUMNS
        rows = [one.row(columns) for one in ranked]
        print_table(columns, rows, prose=("constants",), optional=OPTIONAL)
        if self.tuning:
            print_line(self.tuning)
        if draw_chart or (draw_chart is None and out.is_terminal):
            names = max(len(one.label) for one in ranked)
            curves = [one.curve() for one in ranked]
            for line in braille_chart(curves, width=max(20, min(70, out.width - names - 12))):
                out.print(line, no_wrap=True, overflow="crop")

    def record(self, written: list[Path]) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "environment": asdict(self.plan.environment),
            "caution": self.caution,
            "is_tuned": self.plan.is_tuned,
            "untuned": self.plan.untuned,
            "horizon": self.plan.horizon,
            "seeds": list(self.plan.seeds),
            "policies": [one.record() for one in self.labelled()],
            "runs": [run.id for run in self.plan.runs],
            "written": [str(path) for path in written],
        }

    def write(self, folder: Path) -> list[Path]:
        """Write `summary.csv` and the pictures; without matplotlib the table alone."""
        from coterie.atomic_files import atomic_write
        from coterie.experiments.paper import PaperFacts, band_note, named_seeds, write_paper
        from coterie.experiments.plotting import CurveOptions, draw_curves
        from coterie.experiments.tables import summary_csv, summary_rows
        from coterie.extras import is_installed

        panel = self.plan.panel(self.results)
        written = [folder / "summary.csv"]
        atomic_write(written[0], summary_csv(summary_rows([panel])).encode())
        if is_installed("matplotlib"):
            title = self.short_title if self.settings.title is None else self.settings.title
            own = {k: label for k, label in enumerate(self.labels) if label != self.plan.labels[k]}
            options = CurveOptions(title, band_note(len(self.plan.seeds)), own, self.settings.width)
            written += draw_curves(panel, options, folder, "regret")
        if self.settings.latex:
            tuning = self.tuning if self.plan.is_tuned else "Constants were not tuned."
            where = f"{self.environment}, {named_seeds(self.plan.seeds)}"
            scale = r"[width=\linewidth]" if self.settings.width is None else ""
            facts = PaperFacts(where, tuning, self.microseconds, scale)
            written += write_paper(folder, self.results, self.labels, facts)
        return written


class LabelledResult(NamedTuple):
    """The result of a policy, with its label and how it is drawn."""

    label: str
    result: PolicyResult
    style: Style

    def row(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """The line of the table."""
        from rich.markup import escape

        from coterie.experiments.tables import known

        regret, final = self.result.final("regret"), self.result.final
        every = {
            "policy": f"[bold]{escape(self.label)}[/bold]",
            "regret": f"{regret.mean:,.1f}",
            "± s.e.": known(regret.error, ",.1f"),
            "reward": f"{final('reward').mean:,.1f}",
            "× uniform": known(final("relative").mean, ".3f"),
            "clusters": known(final("clusters").mean, ".1f"),
            "ARI": known(final("ari").mean, ".2f"),
            "µs/round": known(self.result.microseconds(), ",.1f"),
            "constants": f"[dim]{escape(str(self.result.spec.params))}[/dim]",
        }
        return tuple(every[name] for name in columns)

    def curve(self) -> Curve:
        """The mean regret over rounds; black is whatever colour the terminal writes in."""
        import numpy as np

        colour = "" if self.style.colour == "#000000" else self.style.colour
        rounds = np.asarray(self.result.traces[0].rounds, np.float64)
        return Curve(self.label, rounds, self.result.band("regret").mean, colour)

    def record(self) -> dict[str, Any]:
        """All of it as plain values."""
        result, regret = self.result, self.result.final("regret")
        return {
            "label": self.label,
            "policy": result.policy,
            "constants": dict(result.spec.params),
            "regret": regret.mean,
            "standard_error": regret.error,
            "regret_by_seed": {str(trace.seed): float(trace.regret[-1]) for trace in result.traces},
            "reward": result.final("reward").mean,
            "relative_to_uniform": result.final("relative").mean,
            "clusters": result.final("clusters").mean,
            "ari": result.final("ari").mean,
            "microseconds_a_round": result.microseconds(),
            "curve": {
                "rounds": result.traces[0].rounds.tolist(),
                "regret": result.band("regret").mean.tolist(),
            },
        }


def rewards_line(environment: EnvironmentSpec) -> str:
    """The distribution of rewards, in the title.

    >>> from coterie.experiments.specs import EnvironmentSpec
    >>> rewards_line(EnvironmentSpec(rewards="bernoulli")), rewards_line(EnvironmentSpec())
    ('0/1 rewards', 'σ = 0.1')
    """
    if environment.duels:
        return f"duels of sharpness {environment.duels:g}"
    return "0/1 rewards" if environment.rewards == "bernoulli" else f"σ = {environment.noise:g}"


def write_log(settings: RunSettings, *, as_json: bool) -> None:
    """Play one policy on the first seed, write the log, and say what is in it."""
    import msgspec

    from coterie.cli.progress_bars import event_progress
    from coterie.cli.run_settings import plan_settings
    from coterie.experiments.logs import play_logged
    from coterie.experiments.run_plan import DEFAULT_POLICIES
    from coterie.validation import counted

    if settings.log is None:
        raise ArgumentError("--log-share is the share of uniform play of a log: give --log FILE too")
    _refuse_unused(settings)
    path = writable_parquet(settings.log)
    share = LOG_SHARE if settings.log_share is None else settings.log_share
    one_policy = settings.policies or DEFAULT_POLICIES[:1]
    plan = plan_settings(msgspec.structs.replace(settings, policies=one_policy, seeds=settings.seeds[:1]))
    if len(plan.runs) > 1:
        raise ArgumentError(f"--log takes one policy, got {len(plan.runs)}: {', '.join(plan.labels)}")
    with event_progress("logging", plan.horizon) as advance:
        log, trace = play_logged(plan.runs[0], plan.data, share, lambda rounds, _: advance(rounds))
    log.save(path)
    shares = {"share": share, "policy": str(plan.policies[0]), "seed": plan.runs[0].seed}
    size = path.stat().st_size
    if as_json:
        facts = {"events": len(log), "users": log.n_users, "dim": log.dim, "bytes": size}
        write_json({"log": str(path), **shares, **facts, "mean_reward": float(log.rewards.mean())})
        return
    print(
        f"{path}: {counted(len(log), 'event')} of {counted(log.n_users, 'user')} by {plan.policies[0]} with "
        f"{share:g} of uniform play, seed {plan.runs[0].seed}; mean reward {log.rewards.mean():.4g}, "
        f"regret {trace.regret[-1]:,.1f}, {size / 1e6:.1f} MB"
    )


def _refuse_unused(settings: RunSettings) -> None:
    """Refuse options of several runs, which a log of one run has no use for."""
    usual = type(settings)()
    for name in ("out", "jobs", "engine", "record", "tune", "latex", "title", "labels", "width"):
        if getattr(settings, name) != getattr(usual, name):
            raise ArgumentError(f"{name} has no effect with --log, which plays one run: leave it out")


def writable_parquet(name: str) -> Path:
    """The file of a log, known to be writable before anything is played."""
    path = Path(name).expanduser()
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise ArgumentError(f"--log must be a .parquet file, got {name!r}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Found out now rather than after the policy has played.
        with NamedTemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ArgumentError(
            f"--log must be a file that can be written, got {name!r}: {error.strerror}"
        ) from None
    return path
