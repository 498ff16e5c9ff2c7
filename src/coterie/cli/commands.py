"""The wiring of the commands."""

from __future__ import annotations

from typing import Annotated

import typer

import coterie
from coterie.cli import (
    bench,
    compare,
    data,
    evaluate,
    experiment,
    explain,
    items,
    keys,
    policies,
    reproduce,
    run,
    serve,
    store,
    theory,
)
from coterie.cli.exit_codes import MainGroup
from coterie.cli.options import CommandWithExamples, examples, show_help

app = typer.Typer(
    name="coterie",
    cls=MainGroup,
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        ("compare AutoCLUB with a separate LinUCB for each user, on synthetic data", "coterie run"),
        ("which policies there are, and when to use which", "coterie policies"),
        ("the figures of the paper", "coterie reproduce fig-1 --quick"),
    ),
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"coterie {coterie.__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Online clustering of bandits: users who turn out to be alike learn from each other."""
    show_help(ctx)


def _add_commands() -> None:
    app.command(cls=CommandWithExamples, epilog=run.EPILOG)(run.run)
    app.command(cls=CommandWithExamples, epilog=reproduce.EPILOG)(reproduce.reproduce)
    app.command(cls=CommandWithExamples, epilog=compare.EPILOG)(compare.compare)
    app.command(cls=CommandWithExamples, epilog=evaluate.EPILOG)(evaluate.evaluate)
    app.command(cls=CommandWithExamples, epilog=policies.EPILOG)(policies.policies)
    app.command(cls=CommandWithExamples, epilog=explain.EPILOG)(explain.explain)
    app.command(cls=CommandWithExamples, epilog=theory.EPILOG)(theory.theory)
    app.command(cls=CommandWithExamples, epilog=bench.EPILOG)(bench.bench)
    app.command(cls=CommandWithExamples, epilog=serve.EPILOG)(serve.serve)
    app.add_typer(data.app, name="data")
    app.add_typer(experiment.app, name="experiment")
    app.add_typer(items.app, name="items")
    app.add_typer(keys.app, name="keys")
    app.add_typer(store.app, name="store")


_add_commands()
