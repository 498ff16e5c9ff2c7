"""Names of own policies that lead nowhere are refused in one line, before anything is played."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import SMALL, Call

MODULE = """
class Lazy:
    def recommend(self, user, arms):
        return 0


class Needs(Lazy):
    def __init__(self, size):
        pass

    def update(self, user, x, reward):
        pass
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "wrong_policy.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "broken_policy.py").write_text("def f(:\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("wrong_policy", None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["nowhere:Policy"],
            "no module 'nowhere': it is looked for on sys.path, and by `coterie` in the current",
        ),
        (["--policy", "nowhere:Policy"], "no module 'nowhere'"),
        (["wrong_policy:Lasy"], "no attribute of wrong_policy: 'Lasy'; did you mean 'Lazy'?"),
        (["wrong_policy:Lazy"], "wrong_policy:Lazy has no method 'update'"),
        (["wrong_policy:Needs"], "wrong_policy:Needs cannot be made: missing a required argument: 'size'"),
        (
            ["wrong_policy:Needs", "--param", "size=1", "--param", "width=2"],
            "width is for policies that take it",
        ),
        (["wrong_policy:Needs:width=2"], "no parameter of wrong_policy:Needs: 'width'"),
        (["broken_policy:Policy"], "module 'broken_policy' cannot be imported: SyntaxError"),
        (["wrong_policy:"], "package.module:Attribute"),
    ],
)
def test_wrong_names_are_one_line_and_exit_code_2(coterie: Call, words: list[str], sentence: str) -> None:
    result = coterie("run", *words, *SMALL)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert sentence in line
