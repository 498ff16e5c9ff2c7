from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import coterie
from coterie.policies import REGISTRY


@pytest.mark.parametrize("name", coterie.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    thing = getattr(coterie, name)
    assert thing.__doc__
    assert thing.__name__.removeprefix("coterie.") == name


def test_every_policy_is_a_public_name() -> None:
    assert set(REGISTRY) <= set(coterie.__all__)
    assert all(getattr(coterie, name) is entry.make for name, entry in REGISTRY.items())


def test_public_names_are_sorted_listed_and_only_once() -> None:
    assert len(set(coterie.__all__)) == len(coterie.__all__)
    assert {*coterie.__all__, "__version__"} <= set(dir(coterie))


def test_a_star_import_brings_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from coterie import *", names)
    assert set(coterie.__all__) <= set(names)


def test_rooms_are_reached_as_attributes() -> None:
    assert coterie.theory.t0 is sys.modules["coterie.theory"].t0
    assert coterie.policies.REGISTRY is REGISTRY


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'coterie' has no attribute 'CLUBS'"):
        _ = coterie.CLUBS


def test_importing_the_package_alone_imports_nothing_heavy() -> None:
    looking = (
        "import coterie, sys; print([m for m in ('numpy', 'scipy', 'polars', 'pandas') if m in sys.modules])"
    )
    seen = subprocess.run([sys.executable, "-c", looking], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


def test_neither_the_command_line_nor_the_simulator_needs_numba() -> None:
    looking = "import coterie.cli, coterie.simulation, sys; print('numba' in sys.modules)"
    seen = subprocess.run([sys.executable, "-c", looking], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "False"


def test_the_version_is_the_installed_one() -> None:
    assert coterie.__version__ == version("coterie")
