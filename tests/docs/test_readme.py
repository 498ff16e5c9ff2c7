"""The first screen of README keeps its word: what it says its example prints is what it prints."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from typing import Any

import pytest

from docs.pages import DOCS, PYTHON, ROOT, read

README = read(ROOT / "README.md")


@pytest.fixture(scope="module")
def example() -> tuple[str, dict[str, Any]]:
    """What the first block prints, and the names it leaves."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(PYTHON.findall(README)[0], names)
    return printed.getvalue(), names


def test_the_example_finds_the_other_nine_tea_fans(example: tuple[str, dict[str, Any]]) -> None:
    printed, names = example
    others = sorted(f"tea fan {number}" for number in range(10) if number != 3)
    assert sorted(names["shop"].explain("tea fan 3").learns_from) == others
    assert all(f"'{name}'" in printed for name in others)


def test_the_recommender_takes_five_lines() -> None:
    lines = [line for line in PYTHON.findall(README)[0].splitlines() if "coterie" in line or "shop." in line]
    assert len(lines) == 5


def test_the_first_screen_is_for_products_and_names_the_service() -> None:
    first, _, researchers = README.partition("## For researchers")
    assert "regret" not in first
    assert "regret" in researchers
    assert "coterie serve --demo" in first
    pages = [
        "product",
        *(f"service-{name}" for name in ("ten-minutes", "web-shop", "operations", "guarantees")),
    ]
    assert [page for page in pages if f"(docs/how-to/{page}.md)" not in first] == []


def test_the_picture_of_the_live_page_is_small() -> None:
    assert (DOCS / "assets" / "live-page.png").stat().st_size < 200_000
    assert '<img src="docs/assets/live-page.png"' in README


GAINS = {
    "Last.fm, what people listen to": ("Last.fm, one of 25, longer", "0"),
    "MovieLens, ratings of films": ("MovieLens, ratings", "0"),
    "Polis, votes on statements": ("Polis, votes", "0"),
    "Coat, ratings of coats": ("Coat, random coats", "0"),
    "MovieTweetings, where half of the users come at most twice": ("MovieTweetings, stream", "0"),
    "Yelp, ratings, each place shown to a user once": ("Yelp, ratings", "1"),
}
"""The rows of the table of gains: the environment of `real`, and whether each item is shown once."""
COLUMNS = (("ItemTS", "1"), ("LinUCBOne", "0"), ("LinUCBInd", "0"), ("AutoCLUB", "1"))
"""Its columns: a policy, and whether it learns effects of items."""


def test_gains_are_those_of_the_page_of_real_feedback() -> None:
    with (DOCS / "reproduce" / "real" / "worth.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    relative = {(r["world"], r["once"], r["policy"], r["items"]): float(r["relative"]) for r in rows}
    table = README.partition("## What it gains")[2].partition("##")[0]
    found = re.findall(r"^\| ([^|]+) \| ([\d. |]+) \|$", table, re.MULTILINE)
    expected = {
        name: [f"{relative[(*where, *column)]:.2f}" for column in COLUMNS] for name, where in GAINS.items()
    }
    assert {name: cells.split(" | ") for name, cells in found} == expected


def test_other_software_is_compared_in_one_table() -> None:
    table = README.partition("## Beside other software")[2].partition("##")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")]
    others = re.findall(r"\[([^\]]+)\]\(https://", rows[0])
    assert others == ["river", "Vowpal Wabbit", "MABWiser", "obp", "Gorse"]
    assert {row.count("|") for row in rows} == {len(others) + 3}
