"""The notebooks run from top to bottom, draw what they promise, and are stored with what they say."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest

from datasets import generated
from docs.pages import NOTEBOOKS, shown
from notebook_pages import DATA, differs, execute, has_data, markdown, pictures, read_notebook, store

FORMAT = {"nbformat": 4, "nbformat_minor": 5}


def test_the_three_tutorials_are_there() -> None:
    assert [page.stem for page in NOTEBOOKS] == ["clusters-live", "first-ten-minutes", "who-thinks-alike"]


@pytest.mark.slow
@pytest.mark.parametrize("page", NOTEBOOKS, ids=shown)
def test_a_fresh_run_says_what_is_stored_and_draws(page: Path, tmp_path: Path) -> None:
    made = tmp_path if not has_data(page) else None
    if made is not None:
        generated.polis_conversation(made / DATA[page.stem] / "vtaiwan.uberx", generated.polis_votes())
    notebook = execute(page, data=made)
    drawn = pictures(notebook, page.stem)
    asked = sum(cell.source.count("plt.show()") for cell in notebook.cells)
    assert len(drawn) == asked > 0
    assert all(picture.startswith(b"\x89PNG") for picture in drawn.values())
    text = markdown(notebook, page.stem)
    assert all(f"]({name})" in text for name in drawn)
    if made is None:
        assert differs(read_notebook(page, as_version=4), notebook) == ""


@pytest.mark.parametrize("page", NOTEBOOKS, ids=shown)
def test_the_notebook_is_stored_with_outputs(page: Path) -> None:
    cells = [cell for cell in read_notebook(page, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        if "print(" in cell.source or "plt.show()" in cell.source:
            assert cell.outputs
    assert "/tmp" not in page.read_text(encoding="utf-8")


def test_other_words_numbers_or_pictures_are_noticed() -> None:
    stored = read_notebook(NOTEBOOKS[0], as_version=4)
    assert differs(stored, stored) == ""
    place = next(k for k, cell in enumerate(stored.cells) if cell.get("outputs"))
    for change in (
        {"text": "nothing of the kind 1"},
        {"text": "<AutoCLUB: 990 users in 1 cluster, dim 8, 1 round>"},
    ):
        fresh = deepcopy(stored)
        fresh.cells[place].outputs[0].update(change)
        assert "fresh:" in differs(stored, fresh)
    fresh = deepcopy(stored)
    fresh.cells[place].outputs = []
    assert differs(stored, fresh) != ""


def test_storing_keeps_the_sources_and_adds_what_a_run_printed(tmp_path: Path) -> None:
    page = tmp_path / "small.ipynb"
    cell = {"cell_type": "code", "id": "a", "source": "print(1 + 1)", "outputs": [], "metadata": {}}
    page.write_text(json.dumps({"cells": [cell | {"execution_count": None}], "metadata": {}, **FORMAT}))
    store(page)
    first = page.read_bytes()
    stored = read_notebook(page, as_version=4).cells[0]
    assert (stored.source, stored.outputs[0].text) == ("print(1 + 1)", "2\n")
    store(page)
    assert page.read_bytes() == first
