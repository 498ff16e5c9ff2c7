"""The walks on the page about the architecture exist, and none has become longer than it may be."""

from __future__ import annotations

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from docs.pages import DOCS, ROOT, read

PAGE = read(DOCS / "architecture.md")
SOURCE = ROOT / "src" / "coterie"
NAMED = re.compile(r"`([a-z0-9_/]+\.(?:py|pyx|pxd|c)):([\w.]+)`")
FILE = re.compile(r"`([a-z0-9_/]+\.(?:py|pyx|pxd|c))[`:]")
WALKS = dict(re.findall(r"^## Walk (\d)(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL))
STEP = re.compile(r"\d+\. | {3}")
"""How a line of a numbered step begins."""
MOST = {"1": 10, "2": 14, "3": 12, "4": 12}
"""Files that a walk may cross."""


def is_defined(file: Path, name: str) -> bool:
    """Does a source file define this name? Compiled code is searched as text."""
    if file.suffix == ".py":
        module = import_module("coterie." + ".".join(file.relative_to(SOURCE).with_suffix("").parts))
        return attrgetter(name)(module) is not None
    text = file.read_text(encoding="utf-8")
    defines = rf"^(?:cdef|cpdef|def|class| +cdef|[a-z]).*\b{name}\b *[(:]"
    return re.search(defines, text, re.MULTILINE) is not None


@pytest.mark.parametrize(("file", "name"), NAMED.findall(PAGE))
def test_every_name_on_a_walk_exists(file: str, name: str) -> None:
    assert is_defined(SOURCE / file, name)


def test_every_file_on_the_page_exists() -> None:
    files = set(FILE.findall(PAGE)) - {"tests/docs/test_architecture.py", "tests/contracts/examples.py"}
    assert len(files) > 30
    assert [file for file in sorted(files) if not (SOURCE / file).is_file()] == []


@pytest.mark.parametrize("number", MOST)
def test_no_walk_crosses_more_files_than_it_may(number: str) -> None:
    steps = [line for line in WALKS[number].splitlines() if STEP.match(line)]
    files = {file for line in steps for file in FILE.findall(line)}
    assert 5 < len(files) <= MOST[number]
