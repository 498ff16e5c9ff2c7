"""The build backend: meson-python that finds its tools anywhere, and brings a C compiler where there is none.

pip calls the hooks below (PEP 517, PEP 660).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

Settings = Mapping[str, Any]

COMPILERS = ("cc", "gcc", "clang")
ZIG = "ziglang>=0.13"
"""A wheel with a C compiler (clang) and libc headers in it."""
TOOLS = {"CYTHON": "cython", "NINJA": "ninja"}
"""The variables by which meson finds a tool, and the distributions that bring a command of the same name."""
PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
MESON = Path(__file__).resolve().with_name("run_meson.py")
EDITABLE_NINJA = Path(__file__).resolve().with_name("editable_ninja.sh")
"""Stands in for ninja in an editable install, whose own ninja may be deleted after an isolated build."""
NINJA_RECORD = ".ninja-command"
"""The file of a build folder that names the ninja it was built with."""


def lacks_compiler() -> bool:
    """Is there no C compiler, neither on PATH nor named by $CC? Windows has its own ways to find one."""
    return os.name == "posix" and "CC" not in os.environ and not any(map(shutil.which, COMPILERS))


def compiler_requirements() -> list[str]:
    """What must be installed to have a C compiler; says so if it is anything."""
    if not lacks_compiler():
        return []
    print(f"no C compiler found ({', '.join(COMPILERS)}): using that of {ZIG}", file=sys.stderr, flush=True)
    return [ZIG]


def find_command(name: str) -> str | None:
    """The absolute path of the command of an installed distribution of the same name, wherever PATH leads."""
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:
        return None
    found = (Path(os.fspath(file.locate())).resolve() for file in files if file.stem == name)
    return next((str(path) for path in found if path.parent.name in ("bin", "Scripts")), None)


def check_machine() -> None:
    """Refuse in one sentence what meson would refuse at length, or by a traceback."""
    asked = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["build-system"]["requires"]
    names = [re.split(r"[<>=]", one)[0] for one in (*asked, *([ZIG] if lacks_compiler() else []))]
    if missing := [name for name in names if not _is_installed(name)]:
        sys.exit(
            f"coterie cannot be built without {', '.join(missing)}: run "
            "`python tools/requirements.py build | xargs pip install` first, or leave "
            "out --no-build-isolation"
        )
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        sys.exit(
            f"coterie cannot be compiled, because Python {version} has no Python.h here: install its "
            f"headers (on Debian and Ubuntu, python{version}-dev) or take another Python"
        )


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def name_tools(*, portable: bool = True) -> None:
    """Name cython, ninja and the C compiler by absolute paths, unless the environment already does.

    zig compiles for the processor it runs on unless the result is to be `portable`. meson splits $CYTHON, $CC
    and $AR into words, as a shell would, but not $NINJA.
    """
    for variable, name in TOOLS.items():
        if command := find_command(name):
            os.environ.setdefault(variable, shlex.quote(command) if variable == "CYTHON" else command)
    if lacks_compiler():
        zig = shlex.quote(str(distribution("ziglang").locate_file("ziglang/zig")))
        os.environ["CC"] = f"{zig} cc -mcpu=baseline" if portable else f"{zig} cc"
        os.environ.setdefault("AR", f"{zig} ar")


def with_meson_args(settings: Settings | None) -> dict[str, Any]:
    """The settings given to pip, and $MESON_ARGS as further arguments of `meson setup`."""
    listed = (settings or {}).get("setup-args", [])
    extra = shlex.split(os.environ.get("MESON_ARGS", ""))
    return {**(settings or {}), "setup-args": [*([listed] if isinstance(listed, str) else listed), *extra]}


def call(hook: str, directory: str, settings: Settings | None) -> str:
    """meson-python's hook of this name; it runs meson, and checks for ninja, by what the environment says."""
    check_machine()
    name_tools(portable=hook != "build_editable")  # an editable install never leaves its machine
    os.environ["MESON"] = str(MESON)
    given = with_meson_args(settings)
    if hook == "build_editable":
        keep_ninja(given)
    built: str = getattr(import_module("mesonpy"), hook)(directory, given)
    return built


def keep_ninja(settings: dict[str, Any]) -> None:
    """Make an editable install independent of the tools of an isolated build, which are deleted after it.

    A build folder whose ninja is gone also names a Cython and NumPy headers that are gone: it is built anew.
    """
    if os.name != "posix":  # on Windows, meson-python runs `meson compile` instead of ninja
        return
    default = f"build/{sys.implementation.cache_tag}"
    folder = Path(settings.get("build-dir") or settings.setdefault("builddir", default))
    record = folder / NINJA_RECORD
    if record.is_file() and not Path(record.read_text(encoding="utf-8").strip()).is_file():
        shutil.rmtree(folder)
    ninja = os.environ.get("NINJA") or shutil.which("ninja")
    if ninja is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    record.write_text(f"{ninja}\n", encoding="utf-8")
    os.environ.update(COTERIE_NINJA=ninja, NINJA=str(EDITABLE_NINJA))


def requirements(hook: str) -> list[str]:
    """What meson-python's hook of this name asks for, and a compiler if there is none."""
    return [*getattr(import_module("mesonpy"), hook)(), *compiler_requirements()]


def get_requires_for_build_sdist(config_settings: Settings | None = None) -> list[str]:
    """What building an sdist needs besides pyproject.toml's requirements."""
    return requirements("get_requires_for_build_sdist")


def get_requires_for_build_wheel(config_settings: Settings | None = None) -> list[str]:
    """What building a wheel needs besides pyproject.toml's requirements."""
    return requirements("get_requires_for_build_wheel")


def get_requires_for_build_editable(config_settings: Settings | None = None) -> list[str]:
    """What an editable install needs besides pyproject.toml's requirements."""
    return requirements("get_requires_for_build_editable")


def build_sdist(sdist_directory: str, config_settings: Settings | None = None) -> str:
    """Build an sdist; its file name."""
    return call("build_sdist", sdist_directory, config_settings)


def build_wheel(
    wheel_directory: str, config_settings: Settings | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel; its file name."""
    return call("build_wheel", wheel_directory, config_settings)


def build_editable(
    wheel_directory: str, config_settings: Settings | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel that leads to this folder and rebuilds itself on import; its file name."""
    return call("build_editable", wheel_directory, config_settings)
