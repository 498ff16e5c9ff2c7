"""Shared by the commands: help pages with examples, completion of names, checks of paths and numbers.

Nothing of the library is imported here, so that `--help` and TAB are instant.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import coterie
from coterie.errors import ArgumentError

EXIT_CODES = "0 done, 1 something failed, 2 wrong use, 3 data missing, 130 interrupted"
BOLD, CYAN, FAINT, PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m"

PAPER_DATASETS = ("synthetic", "movielens", "lastfm", "yelp")
FIGURE_DATASETS = (*PAPER_DATASETS, "jester", "polis", "coat", "movietweetings")
DATASETS = (*FIGURE_DATASETS, "sushi", "interactions")
FIGURES = (
    "fig-1",
    "fig-2",
    "fig-3",
    "fig-4",
    "fig-5",
    "table-1",
    "table-2",
    "clusters",
    "gap",
    "auto",
    "real",
    "field",
)
DEFAULT_POLICY_NAMES = "AutoCLUB, LinUCBInd and ItemUCB"
ENGINES = ("local", "ray")
SETTINGS = ("stochastic", "smoothed", "lastfm-2014", "rated", "complete", "stream", "payoffs")
SCALES = ("unit", "raw", "sqrt-s")
"""Written out here, because importing what they name takes longer than TAB may; a test compares them."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def examples(*lines: tuple[str, str]) -> str:
    """The end of a help page: each example is a sentence and the command that does it."""
    shown = [f"  # {sentence}\n  $ {command}" for sentence, command in lines]
    return "\n".join(["Examples:", *shown, "", f"Exit codes: {EXIT_CODES}"])


class CommandWithExamples(TyperCommand):
    """A command whose help page keeps its epilog as it was written."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples, line by line."""
        write_epilog(self.epilog, formatter)

    def get_help(self, ctx: Any) -> str:
        """The page, in colour on a terminal."""
        return coloured(super().get_help(ctx))


class GroupWithExamples(TyperGroup):
    """The same for a group of commands."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples, line by line."""
        write_epilog(self.epilog, formatter)

    def get_help(self, ctx: Any) -> str:
        """The page, in colour on a terminal."""
        return coloured(super().get_help(ctx))


def show_help(ctx: typer.Context) -> None:
    """Print the help page of a group that was called without a command."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        raise typer.Exit


def write_epilog(epilog: str | None, formatter: Any) -> None:
    """Write lines as they are, not filled into paragraphs."""
    if epilog:
        formatter.write(f"\n{epilog}\n")


def coloured(page: str) -> str:
    """Headings in bold, options, commands and examples in colour, if stdout is a terminal."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return page
    rules = (
        (r"^(\S[^\n:]*:)", rf"{BOLD}\1{PLAIN}"),
        (r"^  (-\S.*?)(?=  |$)", rf"  {CYAN}\1{PLAIN}"),
        (r"^  (\$ .*)$", rf"  {CYAN}\1{PLAIN}"),
        (r"^  (# .*)$", rf"  {FAINT}\1{PLAIN}"),
    )
    for pattern, replacement in rules:
        page = re.sub(pattern, replacement, page, flags=re.MULTILINE)
    return page


def policy_names() -> list[str]:
    """The registered policies, read from the imports of the registry."""
    # Importing the registry loads NumPy and every policy, which takes longer than TAB may.
    registry = Path(coterie.__file__).parent / "policies" / "registry.py"
    return re.findall(
        r"^from coterie\.policies\.[\w.]+ import (\w+) as \1$", registry.read_text("utf-8"), re.MULTILINE
    )


def complete_policy(incomplete: str) -> list[str]:
    """Policies that begin like this, in whatever case it was typed."""
    return [name for name in policy_names() if name.lower().startswith(incomplete.lower())]


def complete_dataset(incomplete: str) -> list[str]:
    """Datasets that begin like this."""
    return _beginning(DATASETS, incomplete)


def complete_datasets(incomplete: str) -> list[str]:
    """Complete the last of several names between commas by a dataset of a figure that is not named yet.

    >>> complete_datasets("synthetic,mov")
    ['synthetic,movielens', 'synthetic,movietweetings']
    """
    before, comma, last = incomplete.rpartition(",")
    left = [name for name in FIGURE_DATASETS if name not in before.split(",")]
    return [f"{before}{comma}{name}" for name in _beginning(left, last)]


def complete_figure(incomplete: str) -> list[str]:
    """Figures and tables that begin like this, or all of them."""
    return _beginning((*FIGURES, "all"), incomplete)


def complete_engine(incomplete: str) -> list[str]:
    """Engines that begin like this."""
    return _beginning(ENGINES, incomplete)


def complete_setting(incomplete: str) -> list[str]:
    """Settings of an environment that begin like this."""
    return _beginning(SETTINGS, incomplete)


def complete_scale(incomplete: str) -> list[str]:
    """Scales of vectors that begin like this."""
    return _beginning(SCALES, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete.lower())]


def whole_number(text: str | int) -> int:
    """Parse a whole number such as 1e5 or 20_000; Typer passes defaults as they are.

    >>> whole_number("1e5"), whole_number("20_000"), whole_number("100,000")
    (100000, 20000, 100000)
    """
    try:
        number = float(str(text).replace(",", "").replace("_", ""))
        if number != int(number):
            raise ValueError
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a whole number such as 20000 or 1e5.") from None
    return int(number)


def writable_folder(out: str | Path) -> Path:
    """The folder of results, created if necessary, and checked to be writable."""
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Found out now rather than after an hour of runs.
        with NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = "it is a file" if folder.is_file() else error.strerror
        raise ArgumentError(f"--out must be a folder that can be written, got {str(out)!r}: {why}") from None
    return folder


def data_paths(given: Sequence[str]) -> tuple[Path | None, Mapping[str, Path]]:
    """The folder of data files, and single files by the name of their dataset: `PATH` or `NAME=PATH`."""
    folder, files = None, {}
    for word in given:
        name, equals, path = word.partition("=")
        if equals and name in DATASETS:
            files[name] = _existing(path)
        else:
            folder = _existing(word)
    return folder, files


def _existing(path: str) -> Path:
    found = Path(path).expanduser()
    if not found.exists():
        raise ArgumentError(f"--data must be a folder or a file that is there, got {path!r}")
    return found


def import_from_here() -> None:
    """Let policies be imported from the current directory, after everything that is installed."""
    # Appended, not prepended: a file in the current directory must not shadow an installed module.
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
