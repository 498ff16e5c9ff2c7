"""The wiring of the commands."""

from __future__ import annotations

from typing import Annotated

import typer

import coterie
from coterie.cli import bench, compare, data, policies, reproduce, run, theory
from coterie.cli.guard import Guarded
from coterie.cli.teaching import Taught, examples

app = typer.Typer(
    name="coterie",
    cls=Guarded,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        ("try AutoCLUB, the default, on synthetic users", "coterie run"),
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
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Online clustering of bandits: users who turn out to be alike learn from each other."""


def _wire() -> None:
    app.command(cls=Taught, epilog=run.FOOT)(run.run)
    app.command(cls=Taught, epilog=reproduce.FOOT)(reproduce.reproduce)
    app.command(cls=Taught, epilog=compare.FOOT)(compare.compare)
    app.command(cls=Taught, epilog=policies.FOOT)(policies.policies)
    app.command(cls=Taught, epilog=theory.FOOT)(theory.theory)
    app.command(cls=Taught, epilog=bench.FOOT)(bench.bench)
    app.add_typer(data.app, name="data")


_wire()
