"""Files and folders that a command is given, checked before anything is played."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

from coterie.errors import ArgumentError


def writable(out: str | Path) -> Path:
    """The folder of results, made if it is not there, and known to be writable."""
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = "it is a file" if folder.is_file() else error.strerror
        raise ArgumentError(f"--out must be a folder that can be written, got {str(out)!r}: {why}") from None
    return folder


def import_from_here() -> None:
    """Let policies be imported from the current directory, after everything that is installed."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def existing(data: Path | None) -> Path | None:
    """The place of data files, if one is given."""
    if data is not None and not data.expanduser().exists():
        raise ArgumentError(f"--data must be a folder or a file that is there, got {str(data)!r}")
    return data
