"""Commands inside this process, and as children of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

SMALL = ("--horizon", "512", "--seeds", "2", "--users", "8", "--clusters", "2", "--arms", "10", "--dim", "5")

Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No data, no colour, a cache of its own, and 100 columns."""
    for name in ("COTERIE_DATA", "COTERIE_DEBUG", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")


def run_here(*arguments: object) -> Any:
    """Run a command in this process."""
    from coterie.cli.commands import app

    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="coterie")


@pytest.fixture
def coterie() -> Call:
    """`run_here`, in the surroundings of a test."""
    return run_here


@pytest.fixture
def child() -> Call:
    """Run a command in a process of its own."""

    def call(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "coterie", *(str(argument) for argument in arguments)],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, **environment},
            timeout=300,
            check=False,
        )

    return call
