"""`python tools/requirements.py build`, or the name of an extra: what pyproject.toml asks for, one a line.

With `build`, what compiling without isolation needs. With an extra, what the library with that extra needs,
but not the library itself, so that it can be installed while the library is compiled.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from build_backend import compiler_requirements

PROJECT = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
OWN = re.compile(rf"{PROJECT['project']['name']}\[(.+)\]")


def for_build() -> list[str]:
    """The requirements of the build, and a C compiler if there is none."""
    return [*PROJECT["build-system"]["requires"], *compiler_requirements()]


def for_extra(name: str) -> Iterator[str]:
    """The requirements of an extra, and those of the extras that it names."""
    for requirement in PROJECT["project"]["optional-dependencies"][name]:
        if own := OWN.fullmatch(requirement):
            for other in own[1].split(","):
                yield from for_extra(other.strip())
        else:
            yield requirement


if __name__ == "__main__":
    wanted = sys.argv[1]
    always = PROJECT["project"]["dependencies"]
    print(*(for_build() if wanted == "build" else dict.fromkeys([*always, *for_extra(wanted)])), sep="\n")
