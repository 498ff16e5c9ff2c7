from __future__ import annotations

from pathlib import Path

import pytest

from coterie import datasets
from coterie.datasets.factorise import SCALES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "datasets.md"


@pytest.mark.parametrize("name", datasets.names())
def test_every_dataset_is_on_the_page_with_its_files_and_its_address(name: str) -> None:
    about, text = datasets.about(name), PAGE.read_text(encoding="utf-8")
    for part in (f"`{name}`", about.url, about.archive, *about.files):
        assert part in text


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_is_on_the_page(scale: str) -> None:
    assert f"| `{scale}`" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("variable", ["COTERIE_DATA", "COTERIE_CACHE", "XDG_CACHE_HOME"])
def test_every_environment_variable_is_on_the_page(variable: str) -> None:
    assert variable in PAGE.read_text(encoding="utf-8")
