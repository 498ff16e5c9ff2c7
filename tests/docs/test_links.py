"""Links lead somewhere, figures exist, and the navigation names every page once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.pages import DOCS, NOTEBOOKS, PAGES, ROOT, anchors, prose, shown

LINK = re.compile(r"\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
TEXTS = {page: prose(page) for page in [*PAGES, *NOTEBOOKS]}
LINKED = [page for page in TEXTS if LINK.search(TEXTS[page])]
PICTURED = [page for page in TEXTS if IMAGE.search(TEXTS[page])]


@pytest.mark.parametrize("page", LINKED, ids=shown)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in LINK.findall(TEXTS[page]):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PICTURED, ids=shown)
def test_every_picture_exists_and_is_described(page: Path) -> None:
    for words, name in IMAGE.findall(TEXTS[page]):
        assert words, name
        assert (page.parent / name).stat().st_size > 1_000, name


def test_every_picture_in_the_folder_is_shown() -> None:
    shown_somewhere = {
        (page.parent / name).resolve() for page in PICTURED for _, name in IMAGE.findall(TEXTS[page])
    }
    assert set(DOCS.rglob("*.png")) <= shown_somewhere


def test_the_navigation_names_every_page_once_and_decisions_last() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2].partition("\n\n")[0]
    listed = re.findall(r"^ *- (?:[^\n]+: )?(\S+\.md)$", nav, re.MULTILINE)
    inside = [page for page in [*PAGES, *NOTEBOOKS] if page.is_relative_to(DOCS)]
    assert sorted(listed) == sorted(str(page.relative_to(DOCS).with_suffix(".md")) for page in inside)
    sections = re.findall(r"^  - ([^:\n]+):$", nav, re.MULTILINE)
    assert sections == ["Tutorials", "How-to", "Reference", "Explanation"]
    assert listed[-1].startswith("decisions/")
