"""Help pages that teach: examples below each of them, and what the exit codes mean.

They are plain text, coloured on a terminal: Rich would take longer to import than the page to read.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from typer.core import TyperCommand

CODES = "0 done, 1 something failed, 2 wrong use, 3 data missing, 130 interrupted"
BOLD, CYAN, DIM, PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m"


def examples(*lines: tuple[str, str]) -> str:
    """The foot of a help page: each example is a sentence and the command that does it."""
    shown = [f"  # {sentence}\n  $ {command}" for sentence, command in lines]
    return "\n".join(["Examples:", *shown, "", f"Exit codes: {CODES}"])


class Taught(TyperCommand):
    """A command whose help page keeps its foot as it was written."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples, line by line."""
        write_foot(self.epilog, formatter)

    def get_help(self, ctx: Any) -> str:
        """The page, coloured if it is read on a terminal."""
        return coloured(super().get_help(ctx))


def write_foot(foot: str | None, formatter: Any) -> None:
    """Lines as they are, not filled into paragraphs."""
    if foot:
        formatter.write(f"\n{foot}\n")


def coloured(page: str) -> str:
    """Headings bold, options, commands and examples in colour, if the reader can see it."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return page
    rules = (
        (r"^(\S[^\n:]*:)", rf"{BOLD}\1{PLAIN}"),
        (r"^  (-\S.*?)(?=  |$)", rf"  {CYAN}\1{PLAIN}"),
        (r"^  (\$ .*)$", rf"  {CYAN}\1{PLAIN}"),
        (r"^  (# .*)$", rf"  {DIM}\1{PLAIN}"),
    )
    for pattern, replacement in rules:
        page = re.sub(pattern, replacement, page, flags=re.MULTILINE)
    return page
