"""A test that cannot run is skipped on a developer's machine and fails in CI."""

from __future__ import annotations

import json
import sys

import pytest

from optional import need_package, need_program


@pytest.fixture(params=["true", None])
def outcome(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[BaseException]:
    """What is raised, in CI and elsewhere."""
    if request.param is None:
        monkeypatch.delenv("CI", raising=False)
        return pytest.skip.Exception
    monkeypatch.setenv("CI", request.param)
    return pytest.fail.Exception


def test_a_missing_program_is_named(outcome: type[BaseException]) -> None:
    with pytest.raises(outcome, match="there is no such-program"):
        need_program("such-program", "such-program-2")


def test_a_missing_package_is_named(outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "such_package", None)
    with pytest.raises(outcome, match="such-package is not installed"):
        need_package("such_package", distribution="such-package")


def test_what_is_there_is_returned(outcome: type[BaseException]) -> None:
    assert need_package("json") is json
    assert need_program("no-such-program", "sh").endswith("sh")
