"""What a page tells people to type can be typed."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from cli.test_help import ROOT as COTERIE
from docs.pages import PAGES, ROOT, commands, shown

TYPED = {page: commands(page) for page in PAGES if commands(page)}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def parse(words: list[str]) -> None:
    """Let the command line read these words, and run nothing."""
    command = COTERIE
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    command.make_context("coterie", words)


@pytest.mark.parametrize("page", TYPED, ids=shown)
def test_every_command_of_the_page_is_understood(page: Path) -> None:
    for line in TYPED[page]:
        program, *words = shlex.split(re.split(r" [|<>] ", line)[0], comments=True)
        if program == "coterie" and "--install-completion" not in words:
            parse(words)
        elif program == "make":
            assert {word for word in words if "=" not in word} <= TARGETS, line
        elif program == "python":
            assert find_spec(words[1]) is not None, line


def test_a_command_with_an_unknown_option_is_not_understood() -> None:
    with pytest.raises(Exception, match="nosuch"):
        parse(["run", "CLUB", "--nosuch", "1"])
