"""Compiled kernels are kept on disk, by processes that know nothing of each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coterie.kernels import compiling
from coterie.kernels.ridge import dot


def test_two_processes_never_write_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find an empty folder and save a kernel of their own; whoever comes second keeps its code."""
    kernel: Any = dot
    kind = type(kernel._cache._cache_file)
    ours = compiling.cache_file(kind, str(tmp_path), "kernel")
    monkeypatch.setattr(compiling, "PROCESS", "another")
    theirs = compiling.cache_file(kind, str(tmp_path), "kernel")
    monkeypatch.setattr(type(ours), "_load_index", lambda self: {})  # neither sees what the other has written
    ours.save("ours", "our code")
    theirs.save("theirs", "their code")
    assert len(list(tmp_path.glob("*.nbc"))) == 2
