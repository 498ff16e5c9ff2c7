"""Formulas are typeset by the KaTeX that is part of the site, and nothing is fetched from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from docs.pages import DOCS, PAGES, ROOT, prose, shown

KATEX = DOCS / "assets" / "katex"
BLOCK = re.compile(r"^\$\$(.*?)\$\$$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<![\\$`])\$(?!\s)((?:[^$\\]|\\.)+?)(?<!\s)\$")
RENDER = """
const katex = require(process.argv[1]);
const formulas = JSON.parse(require("fs").readFileSync(0, "utf8"));
const wrong = [];
for (const formula of formulas)
  try { katex.renderToString(formula, { throwOnError: true, strict: "error" }) }
  catch (error) { wrong.push(formula + ": " + error.message) }
console.log(JSON.stringify(wrong));
"""


def formulas(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    return [*BLOCK.findall(text), *INLINE.findall(BLOCK.sub("", text))]


TYPESET = {page: formulas(page) for page in PAGES if page.is_relative_to(DOCS) and formulas(page)}


def test_the_formulas_of_the_method_are_found() -> None:
    assert len(TYPESET[DOCS / "algorithms" / "autoclub.md"]) > 50
    assert any("begin{aligned}" in formula for formula in TYPESET[DOCS / "explanation" / "theory.md"])


@pytest.mark.parametrize("page", TYPESET, ids=shown)
def test_braces_are_balanced_and_no_cell_of_a_table_is_cut(page: Path) -> None:
    for formula in TYPESET[page]:
        assert formula.count("{") == formula.count("}"), formula
        assert "|" not in formula, formula


@pytest.mark.skipif(shutil.which("node") is None, reason="KaTeX runs in Node.js, which is not there")
def test_katex_typesets_every_formula_without_a_warning() -> None:
    every = sorted({formula for found in TYPESET.values() for formula in found})
    command = ["node", "-e", RENDER, str(KATEX / "katex.min.js")]
    done = subprocess.run(command, input=json.dumps(every), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_every_font_that_the_style_sheet_names_is_there() -> None:
    fonts = re.findall(r"url\(fonts/([^)]+)\)", (KATEX / "katex.min.css").read_text(encoding="utf-8"))
    assert sorted(fonts) == sorted(path.name for path in (KATEX / "fonts").iterdir())
    assert "MIT" in (KATEX / "LICENSE").read_text(encoding="utf-8")


def test_scripts_and_styles_are_part_of_the_site() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ *- (\S+\.(?:js|css))\b", settings, re.MULTILINE)
    assert len(listed) >= 5
    assert all((DOCS / name).is_file() for name in listed)
    assert "font: false" in settings
