"""Optional packages, and the error with its install command where one is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from coterie.errors import MissingExtra

if TYPE_CHECKING:
    from importlib.metadata import Distribution

EXTRAS = {
    "polars": "data",
    "pandas": "pandas",
    "matplotlib": "plot",
    "typer": "cli",
    "rich": "cli",
    "jinja2": "cli",
    "msgspec": "cli",
    "pyarrow": "pandas",
    "starlette": "service",
    "uvicorn": "service",
    "psycopg": "postgresql",
    "ray": "ray",
}
"""The extra of pyproject.toml that brings each package."""

REQUIREMENT = re.compile(r"""([^;\s]+)\s*;\s*extra == ["'](\w+)["']""")


def is_installed(package: str) -> bool:
    """Whether this package can be imported."""
    try:
        return find_spec(package) is not None
    except ValueError:  # sys.modules has None for it
        return False


def need(package: str, purpose: str) -> None:
    """Raise `MissingExtra`, which says how to install it, unless a package can be imported."""
    if not is_installed(package):
        raise MissingExtra(f"{purpose} needs {package}, which is not installed: {install_command(package)}")


def install_command(package: str) -> str:
    """The command that installs what an optional package belongs to.

    Where Coterie was installed from a folder, such as a checkout, no index need have it: the packages of the
    extra are named themselves.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    extra = EXTRAS[package]
    try:
        installed = distribution("coterie")
    except PackageNotFoundError:
        return f"pip install 'coterie[{extra}]'"
    if '"file://' not in (installed.read_text("direct_url.json") or ""):
        return f"pip install 'coterie[{extra}]'"
    return " ".join(["pip install", *(f"'{name}'" for name in dict.fromkeys(requirements(installed, extra)))])


def requirements(installed: Distribution, extra: str) -> Iterator[str]:
    """The requirements of an extra, with those of the extras that it names."""
    pairs = [found.groups() for line in installed.requires or () if (found := REQUIREMENT.fullmatch(line))]
    for requirement, owner in pairs:
        if owner != extra:
            continue
        own = re.fullmatch(r"coterie\[(.+)\]", requirement)
        if own is None:
            yield requirement
        else:
            for other in own[1].split(","):
                yield from requirements(installed, other.strip())
