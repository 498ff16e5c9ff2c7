"""Every help page teaches, and what it teaches works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from cli.conftest import Call
from coterie.cli.commands import app
from coterie.cli.options import EXIT_CODES, coloured

ROOT: Any = typer.main.get_command(app)


def pages() -> Iterator[list[str]]:
    for name, command in ROOT.commands.items():
        inner = getattr(command, "commands", None)
        yield from ([name, sub] for sub in inner) if inner else ([name],)


def found(words: list[str]) -> Any:
    command = ROOT
    for word in words:
        command = command.commands[word]
    return command


@pytest.mark.parametrize("path", [[], *pages()], ids=" ".join)
def test_every_page_has_examples_and_exit_codes(coterie: Call, path: list[str]) -> None:
    page = coterie(*path, "--help").output
    assert "Examples:" in page
    assert "  $ coterie" in page
    assert EXIT_CODES in page


@pytest.mark.parametrize("path", [[], *pages()], ids=" ".join)
def test_examples_name_commands_and_options_that_exist(coterie: Call, path: list[str]) -> None:
    page = coterie(*path, "--help").output
    for line in re.findall(r"^  \$ coterie (.*)$", page, flags=re.MULTILINE):
        words = shlex.split(line.split("|")[0])
        depth = 2 if words[0] in ("data", "experiment", "items", "keys", "store") else 1
        command = found(words[:depth])
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


def test_the_first_example_is_the_default(coterie: Call) -> None:
    first = re.findall(r"^  # (.*)\n  \$ (.*)$", coterie("--help").output, flags=re.MULTILINE)[0]
    assert first == (
        "compare AutoCLUB with a separate LinUCB for each user, on synthetic data",
        "coterie run",
    )


@pytest.mark.parametrize("path", list(pages()), ids=" ".join)
def test_every_option_is_explained(path: list[str]) -> None:
    for parameter in found(path).params:
        assert getattr(parameter, "help", "told") is not None, parameter.name


def test_a_page_in_a_pipe_has_no_colour(coterie: Call) -> None:
    assert "\x1b" not in coterie("run", "--help").output


def test_a_page_on_a_terminal_is_coloured_unless_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    page = "Options:\n  --json  Print JSON.\n\nExamples:\n  $ coterie run\n"
    assert "\x1b[1mOptions:\x1b[0m" in coloured(page)
    assert "\x1b[36m--json\x1b[0m" in coloured(page)
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured(page) == page
