"""The command line: `coterie` and `python -m coterie`.

Nothing here imports a room of the library before a command needs it, so that `--help` is instant.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec


def main() -> None:
    """What the `coterie` command calls."""
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.exit(
            "coterie: the command line needs typer and rich, install them with: pip install 'coterie[cli]'"
        )
    from coterie.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that cannot show σ shows ? and goes on
    if os.environ.get("COTERIE_DEBUG") == "1":
        os.environ.setdefault("TYPER_STANDARD_TRACEBACK", "1")
    app(prog_name="coterie")
