"""The notebooks run from top to bottom, draw what they promise, and are kept without outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.pages import NOTEBOOKS, shown
from notebook_pages import execute, markdown, pictures


def test_the_two_tutorials_are_there() -> None:
    assert [page.stem for page in NOTEBOOKS] == ["clusters-live", "first-ten-minutes"]


@pytest.mark.parametrize("page", NOTEBOOKS, ids=shown)
def test_the_notebook_runs_and_draws(page: Path) -> None:
    notebook = execute(page)
    drawn = pictures(notebook, page.stem)
    asked = sum(cell.source.count("plt.show()") for cell in notebook.cells)
    assert len(drawn) == asked > 0
    assert all(picture.startswith(b"\x89PNG") for picture in drawn.values())
    text = markdown(notebook, page.stem)
    assert all(f"]({name})" in text for name in drawn)


@pytest.mark.parametrize("page", NOTEBOOKS, ids=shown)
def test_the_notebook_is_kept_without_outputs(page: Path) -> None:
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
