"""Wherever an optional package is missing, the same sentence says how to install it."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import extras
from coterie.cli.serve import serve
from coterie.datasets import load
from coterie.errors import MissingExtra
from coterie.experiments.run_store import Store
from coterie.experiments.runner import RayEngine
from coterie.simulation import Trace

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def trace() -> Trace:
    one = np.ones(1)
    return Trace("A", 0, np.ones(1, np.int64), one, one, one, np.ones(1, np.int64), one, one, 1.0)


def own_table() -> object:
    Path("mine.csv").write_text("user,item\na,1\n")
    return load("interactions", "mine.csv", dim=1)


USES: dict[str, tuple[str, Callable[[], Any]]] = {
    "reading a table": ("polars", own_table),
    "keeping results": ("polars", lambda: Store(Path())),
    "a frame": ("pandas", lambda: trace().to_frame()),
    "a plot": ("matplotlib", lambda: trace().plot()),
    "--engine ray": ("ray", RayEngine),
    "the service": ("uvicorn", serve),
}


@pytest.mark.parametrize("purpose", USES)
def test_every_use_says_the_same(purpose: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path))
    package, use = USES[purpose]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra) as caught:
        use()
    command = extras.install_command(package)
    assert str(caught.value) == f"{purpose} needs {package}, which is not installed: {command}"


class Installed(Distribution):
    """A distribution as it would be installed from somewhere."""

    def __init__(self, origin: str | None, extra: dict[str, list[str]]) -> None:
        self.origin_file, self.extra = origin, extra

    def read_text(self, filename: str) -> str | None:
        return self.origin_file if filename == "direct_url.json" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError

    @property
    def requires(self) -> list[str]:
        return [f'{one}; extra == "{name}"' for name, listed in self.extra.items() for one in listed]


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'coterie[cli]'"),
        ('{"url": "https://example.org/coterie.whl"}', "pip install 'coterie[cli]'"),
        ('{"url": "file:///home/me/coterie"}', "pip install 'polars>=1' 'typer>=2'"),
    ],
)
def test_the_command_works_where_coterie_came_from(
    origin: str | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Installed(origin, {"cli": ["coterie[data]", "typer>=2"], "data": ["polars>=1"], "ray": ["ray>=9"]})
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: made)
    assert extras.install_command("typer") == command


def test_every_package_is_in_the_extra_that_is_named_and_ray_in_no_other() -> None:
    declared: dict[str, list[str]] = PROJECT["optional-dependencies"]
    for package, extra in extras.EXTRAS.items():
        assert any(re.match(rf"{package}(\[\w+\])?>=", line) for line in declared[extra]), package
    assert not any("ray" in line for line in declared["all"])


def test_all_includes_every_extra_that_users_need_on_one_machine() -> None:
    declared: dict[str, list[str]] = PROJECT["optional-dependencies"]
    assert declared["all"] == ["coterie[data,pandas,plot,progress,cli,service]"]
