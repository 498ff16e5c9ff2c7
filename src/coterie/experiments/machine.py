"""What a result was made on and with."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("coterie", "numpy", "scipy", "polars", "matplotlib", "ray")


class Fact(NamedTuple):
    """Something worth knowing, by name."""

    name: str
    value: str


@cache
def processor() -> str:
    """The processor as its maker calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def machine() -> list[Fact]:
    """Processor, cores, system and Python; no names of hosts or people."""
    return [
        Fact("processor", processor()),
        Fact("processors", str(os.cpu_count())),
        Fact("system", f"{platform.system()} {platform.release()} ({platform.machine()})"),
        Fact("Python", f"{platform.python_implementation()} {platform.python_version()}"),
    ]


def versions() -> list[Fact]:
    """The packages that made the numbers and the pictures."""
    return [Fact(name, found) for name in PACKAGES if (found := _version(name)) is not None]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
