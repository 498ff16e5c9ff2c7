"""The documentation keeps its word: every policy has its page, every example runs, every name exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import policy_pages
from coterie.policies import REGISTRY
from datasets import generated
from docs.pages import DOCS, PAGES, PYTHON, ROOT, read, shown

DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
HEADINGS = ("What it is for", "Use it", "The paper and our code", "Cost of a round", "Where we differ")
NAMED = re.compile(r"`([a-z_/]+\.(?:py|pyx|c)): (\w+)`")
SOURCE = ROOT / "src" / "coterie"
RUNNABLE = [page for page in PAGES if PYTHON.search(read(page))]
NAMING = [page for page in PAGES if NAMED.search(read(page))]


def algorithm(name: str) -> str:
    return read(DOCS / REGISTRY[name].page)


def downloads(folder: Path) -> dict[str, Any]:
    """What the page on datasets supposes that its reader has: files, and a frame of their own."""
    table = generated.rows(n_users=80, n_items=120, count=3_000)
    ratings, tags = generated.movielens_csv(table).encode(), generated.lastfm(table).encode()
    generated.write(folder / "ml-25m" / "ratings.csv", ratings.decode())
    generated.write(folder / "ml-1m" / "ratings.dat", generated.movielens_dat(table))
    generated.write_zip(folder / "ml-25m.zip", [("ml-25m/ratings.csv", ratings)])
    generated.write_zip(folder / "hetrec2011-lastfm-2k.zip", [("user_taggedartists.dat", tags)])
    reviews = [("yelp_academic_dataset_review.json", generated.yelp(table).encode())]
    (folder / "yelp_dataset.tar").write_bytes(generated.tar(reviews))
    frame = pd.DataFrame(table, columns=["customer", "product", "amount"])
    frame.to_csv(folder / "clicks.csv", index=False)
    frame.to_parquet(folder / "sales.parquet")
    return {"frame": frame}


def nothing(folder: Path) -> dict[str, Any]:
    return {}


READERS: dict[str, Callable[[Path], dict[str, Any]]] = {"docs/reference/datasets.md": downloads}
"""What must be there before a page can be followed, for those that start from something."""


@pytest.mark.parametrize("name", REGISTRY)
def test_the_list_of_policies_says_what_the_command_line_says(name: str) -> None:
    entry, listed = REGISTRY[name], policy_pages.with_rows(read(DOCS / "algorithms" / "index.md"))
    assert f"| [{name}]({name.lower()}.md) | {entry.summary} | {entry.use_when} |" in listed


@pytest.mark.parametrize("page", RUNNABLE, ids=shown)
def test_every_example_on_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    names = READERS.get(shown(page), nothing)(tmp_path)
    text = read(page)
    for block in PYTHON.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(page), "exec"), names)


def test_no_python_block_escapes_being_run() -> None:
    for page in PAGES:
        opened = re.findall(r"^\s*```\s*(?:python|py)\b", read(page), re.MULTILINE)
        assert len(PYTHON.findall(read(page))) == len(opened), shown(page)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_policy_has_a_page_with_the_same_headings(name: str) -> None:
    text = algorithm(name)
    assert text.startswith(f"# {name}\n")
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == HEADINGS


@pytest.mark.parametrize("name", REGISTRY)
def test_every_policy_is_made_on_its_page_and_listed_in_the_index(name: str) -> None:
    assert any(f"coterie.{name}(" in block for block in PYTHON.findall(algorithm(name)))
    index = policy_pages.with_rows(read(DOCS / "algorithms" / "index.md"))
    assert f"[{name}]({name.lower()}.md)" in index


@pytest.mark.parametrize("name", REGISTRY)
def test_every_page_pairs_pseudo_code_with_functions(name: str) -> None:
    table = [row for row in algorithm(name).splitlines() if row.startswith("| ") and NAMED.search(row)]
    assert len(table) >= 4


@pytest.mark.parametrize("page", NAMING, ids=shown)
def test_every_function_named_on_the_page_exists(page: Path) -> None:
    for file, name in NAMED.findall(read(page)):
        assert defined(SOURCE / file, name), f"{file}: {name}"


def defined(file: Path, name: str) -> bool:
    """Does a source file define this function or class?"""
    if file.suffix == ".py":
        module = import_module("coterie." + ".".join(file.relative_to(SOURCE).with_suffix("").parts))
        return bool(getattr(module, name).__module__ == module.__name__)
    before = r"(?:cdef|cpdef|def|class)\b" if file.suffix == ".pyx" else r"[a-z]"
    found = re.search(rf"^ *{before}[^\n=]*\b{name}\b *[(:]", file.read_text(encoding="utf-8"), re.MULTILINE)
    return found is not None


@pytest.mark.parametrize("page", DECISIONS, ids=shown)
def test_decisions_are_short_and_numbered_in_order(page: Path) -> None:
    lines = read(page).splitlines()
    number = f"{DECISIONS.index(page) + 1:04}"
    assert len(lines) <= 30
    assert page.name.startswith(f"{number}-")
    assert lines[0].startswith(f"# {number}: ")
