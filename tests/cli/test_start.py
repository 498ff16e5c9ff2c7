"""`coterie --help` is instant and imports nothing heavy."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import coterie as package
from cli.conftest import Call

HEAVY = ("numpy", "numba", "scipy", "pandas", "polars", "matplotlib", "rich.markdown")
PROBE = f"""
import json, os, sys
from coterie.cli import main
for arguments, environment in json.loads(sys.argv[1]):
    sys.argv = ["coterie", *arguments]
    os.environ.update(environment)
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    print("\\f", end="", flush=True)
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
"""Runs commands one after another in one process, and prints the heavy modules that any of them imported."""

COMPLETIONS = {
    "run Uni": ["UniCLUB", "UniSCLUB"],
    "run --setting s": ["stochastic", "smoothed", "stream"],
    "run --scale ": ["unit", "raw", "sqrt-s"],
    "run --engine r": ["ray"],
    "reproduce fig-1 ta": ["table-1", "table-2"],
    "reproduce a": ["auto", "all"],
    "reproduce --engine ": ["local", "ray"],
    "reproduce --datasets synthetic,": [
        f"synthetic,{name}"
        for name in ("movielens", "lastfm", "yelp", "jester", "polis", "coat", "movietweetings")
    ],
}


def outputs(commands: list[tuple[list[str], dict[str, str]]]) -> list[str]:
    """What each command prints; none of them may import anything heavy."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(commands)], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stderr.strip() == "[]"
    return done.stdout.split("\f")[:-1]


def test_help_imports_nothing_heavy() -> None:
    pages = [["--help"], ["run", "--help"], ["reproduce", "--help"], ["data", "--help"], ["--version"]]
    printed = outputs([(page, {}) for page in pages])
    assert len(printed) == len(pages)
    assert all(printed)


def test_completion_offers_names_and_imports_nothing_heavy() -> None:
    commands: list[tuple[list[str], dict[str, str]]] = []
    for typed in COMPLETIONS:
        words = f"coterie {typed}"
        position = str(len(words.split(" ")) - 1)
        variables = {"_COTERIE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": position}
        commands.append(([], variables))
    assert [text.split() for text in outputs(commands)] == list(COMPLETIONS.values())


def test_help_takes_hardly_longer_than_importing_its_library() -> None:
    """The processor time of five, beside that of typer in turn: tests run side by side."""
    help_page, library = ["-m", "coterie", "--help"], ["-c", "import coterie, typer.main"]
    pairs = [(processor_time(help_page), processor_time(library)) for _ in range(5)]
    assert sum(page for page, _ in pairs) < 1.8 * sum(base for _, base in pairs)


def processor_time(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_version_is_that_of_the_package(child: Call) -> None:
    done = child("--version")
    assert (done.returncode, done.stdout) == (0, f"coterie {package.__version__}\n")


def test_without_arguments_help_is_shown(coterie: Call) -> None:
    result = coterie()
    assert "Commands:" in result.output
