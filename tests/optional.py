"""What some tests need beyond the library: a package, a program. Without it they are skipped, but not in CI.

`.ci/run` installs all of it and sets `CI=true`, as most services do: there a test that cannot run fails.
"""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from typing import Any, NoReturn

import pytest


def lack(what: str) -> NoReturn:
    """Skip the test, or the module that is being imported; with `CI=true`, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}; with CI=true no test may be skipped for this", pytrace=False)
    pytest.skip(what, allow_module_level=True)


def need_package(name: str, *, distribution: str | None = None) -> Any:
    """The module of this name."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        lack(f"{distribution or name} is not installed")


def need_program(*names: str) -> str:
    """The path of the first of these programs that is there."""
    for name in names:
        if found := shutil.which(name):
            return found
    lack(f"there is no {names[0]}")
