from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test, and no data folder but the one a test names."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("COTERIE_CACHE", str(folder))
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    return folder
