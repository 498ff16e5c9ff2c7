"""docs/reference/command-line.md tells of every command and every setting, and its examples exist."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from cli.test_help import found, pages
from coterie.cli.options import EXIT_CODES
from coterie.cli.run import COLUMNS, RunResults
from coterie.cli.run_settings import environment_of, plan_settings, read_settings
from coterie.experiments.specs import EnvironmentSpec

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md").read_text(
    encoding="utf-8"
)


def test_every_command_is_on_the_page() -> None:
    for path in pages():
        assert f"`coterie {path[0]}" in PAGE
        assert path[-1] in PAGE


def test_every_setting_of_a_file_is_on_the_page() -> None:
    block = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)[0]
    named = {parameter.name for parameter in found(["run"]).params}
    for name in named - {"config", "chart", "as_json", "policy"}:
        assert re.search(rf"\b{name}\b", block), name


def test_the_file_on_the_page_can_be_read(tmp_path: Path) -> None:
    block = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)[0]
    tomllib.loads(block)
    (tmp_path / "run.toml").write_text(block, encoding="utf-8")
    settings = read_settings(tmp_path / "run.toml", {})
    assert settings.params == {"arrivals": 2.0}
    assert environment_of(settings) == EnvironmentSpec(zipf=1.0, drift=0.1)
    planned = plan_settings(settings)
    assert len(planned.runs) == len(planned.policies) * len(settings.seeds)
    assert {run.horizon for run in planned.runs} == {settings.horizon}


def test_the_commands_on_the_page_have_these_options() -> None:
    for line in re.findall(r"^    coterie ([a-z].*)$", PAGE, flags=re.MULTILINE):
        words = shlex.split(line, comments=True)
        known = {option for parameter in found(words[:1]).params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


def test_every_exit_code_is_on_the_page() -> None:
    for code in re.findall(r"\d+", EXIT_CODES):
        assert f"| {code} |" in PAGE


def test_the_sample_is_what_the_command_above_it_prints() -> None:
    command, sample = re.findall(r"^    coterie run ([^\n]*)\n\n```text\n(.*?)```", PAGE, flags=re.M | re.S)[
        0
    ]
    settings = read_settings(None, {"policies": command.split()})
    planned = plan_settings(settings)
    assert sample.startswith(RunResults(planned, (), settings, {}).environment)
    assert tuple(re.split(r" {2,}", sample.splitlines()[2].strip())) == COLUMNS
    rows = [re.split(r" {2,}", line.strip()) for line in sample.splitlines()[4 : 4 + len(planned.labels)]]
    assert sorted(row[0] for row in rows) == sorted(planned.labels)
    assert "AutoCLUB" in planned.labels
    constants = [str(one.params) for one in planned.policies]
    for label, told in zip(planned.labels, constants, strict=True):
        (row,) = (row for row in rows if row[0] == label)
        assert row[6:] == ([told] if told else [])
