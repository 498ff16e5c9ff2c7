"""The command line: `coterie` and `python -m coterie`.

Each command imports what it needs when it is called, so that `--help` is instant.
"""

from __future__ import annotations

import os
import sys

from coterie.errors import MissingExtra
from coterie.extras import need


def main() -> None:
    """Run the `coterie` command."""
    try:
        for package in ("typer", "rich", "msgspec"):
            need(package, "the command line")
    except MissingExtra as error:
        sys.exit(f"coterie: {error}")
    from coterie.cli.commands import app

    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that cannot show σ shows ? and goes on
    if os.environ.get("COTERIE_DEBUG") == "1":
        os.environ.setdefault("TYPER_STANDARD_TRACEBACK", "1")
    app(prog_name="coterie")
