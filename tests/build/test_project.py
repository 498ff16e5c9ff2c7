"""The files around the code agree: one version, the same Python versions, workflows that can be read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
YAML = [*sorted((ROOT / ".github").rglob("*.yml")), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]
RELEASES = re.findall(
    r"^## \[([\d.]+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
)


def read_yaml(path: Path) -> dict[Any, Any]:
    read: dict[Any, Any] = msgspec.yaml.decode(path.read_bytes())
    return read


def version() -> str:
    found = re.search(
        r"^  version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert found is not None
    return found[1]


def pythons() -> list[str]:
    listed = [line.rpartition(" :: ")[2] for line in PROJECT["project"]["classifiers"]]
    return [name for name in listed if re.fullmatch(r"3\.\d+", name)]


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_the_file_can_be_read(path: Path) -> None:
    assert read_yaml(path)


def test_the_version_is_in_meson_build_alone() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert "version" not in PROJECT["project"]


def test_the_changelog_begins_with_the_version_that_is_built() -> None:
    number, date = RELEASES[0]
    assert version() == (f"{number}.dev0" if date == "unreleased" else number)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in RELEASES[1:])


def test_the_last_release_is_cited() -> None:
    released = [number for number, date in RELEASES if date != "unreleased"]
    assert str(read_yaml(ROOT / "CITATION.cff")["version"]) == released[0]


def test_tests_and_wheels_are_made_for_every_python_that_is_promised() -> None:
    assert pythons()[0] == PROJECT["project"]["requires-python"].removeprefix(">=")
    ci = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == pythons()
    built = PROJECT["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{name.replace('.', '')}-*" for name in pythons()]
    searched = re.findall(
        r"\bpython(3\.\d+)", (ROOT / "Makefile").read_text(encoding="utf-8").partition("PROCESSES")[0]
    )
    assert searched == pythons()[::-1]


def test_pull_requests_are_checked_and_tags_make_wheels() -> None:
    ci, wheels = (read_yaml(ROOT / ".github" / "workflows" / f"{name}.yml") for name in ("ci", "wheels"))
    assert "pull_request" in ci[True]  # YAML 1.1 reads the key `on` as true
    assert wheels[True]["push"]["tags"] == ["v*"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_runs_files_that_exist(path: Path) -> None:
    workflow = read_yaml(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            command = step.get("run", "").split(" ")[0]
            assert not command.startswith(".") or (ROOT / command).is_file(), command


def test_the_hooks_before_a_commit_are_those_of_make_lint() -> None:
    hooks = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    lint = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(BIN)", ".venv/bin")
    for hook in hooks:
        assert f"\t{hook['entry'].partition(' --')[0]}" in lint, hook["id"]


def test_every_test_that_the_security_policy_names_exists() -> None:
    named = re.findall(r"test_\w+\.py", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) >= 8
    assert [name for name in named if not any((ROOT / "tests").rglob(name))] == []
