"""Where the files of datasets are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from coterie.experiments.shelf import Shelf


@pytest.mark.parametrize("named", ["~/data", "data"])
def test_the_variable_finds_what_the_option_finds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: str
) -> None:
    for folder in ("ml-latest-small", "ml-25m"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COTERIE_DATA", named)
    by_option = Shelf(Path(named))
    assert Shelf().folder == by_option.folder
    assert Shelf().place("movielens") == by_option.place("movielens")
    assert str(Shelf().place("movielens")).endswith("data/ml-25m")
