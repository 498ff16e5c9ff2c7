"""The first screen of README keeps its word: what it says its example prints is what it prints."""

from __future__ import annotations

import contextlib
import io
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
