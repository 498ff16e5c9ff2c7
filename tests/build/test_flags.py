"""Whatever the compiler is told, the numbers are the same; a wheel holds the sources of its modules too."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from shutil import copy2
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import build_backend
from cythonize import made_from

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "coterie"
SHARED = PACKAGE / "_cyutility.c"
"""A module that has no source: Cython's own, shared by all others."""
FLAGS = {
    "baseline": ("-Doptimization=1", "-Dc_args=-march=x86-64 -DCOTERIE_ONE_TARGET"),
    "native": ("-Doptimization=3", "-Dc_args=-march=native"),
}
WITHOUT_FMA = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"}
"""Makes the C library compute exp, log and the like as on processors that fuse no products with sums."""
FEATURES = " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", ()))
"""Without these, NumPy computes as on the oldest processor that it runs on."""
BUILD = """
import sys, build_backend
target, objects, *args = sys.argv[1:]
print(build_backend.build_wheel(target, {"builddir": objects, "setup-args": args}))
"""


def editable_builds() -> list[Path]:
    """Where the installed package was built, if it is an editable install."""
    found = (getattr(finder, "_build_path", "") for finder in sys.meta_path)
    return [Path(path) for path in found if path]


def reuse_c_sources(objects: Path) -> None:
    """Copy the C sources that Cython made for the installed package: they depend on no compiler flag."""
    for folder in editable_builds():
        made, target = folder / "src" / "coterie", objects / "src" / "coterie"
        target.mkdir(parents=True, exist_ok=True)
        for path in (*made.glob("*.c"), *made.glob("cythonize.command")):
            copy2(path, target)  # with their times, by which they are found to be up to date
        for path in made.glob("*.c"):
            sources = path.with_name(f"{path.name}.dep")
            if sources.exists():  # the list of files that it was made from, relative to the build
                names = (str((folder / name).resolve()) for name in made_from(path))
                escaped = " ".join(name.replace(" ", "\\ ") for name in names)
                (target / sources.name).write_text(f"{path.name}: {escaped}\n", encoding="utf-8")


def build(folder: Path, args: tuple[str, ...]) -> Path:
    """A wheel made with these arguments of `meson setup`; C sources are generated at most once."""
    if not (folder / "objects").exists():
        reuse_c_sources(folder / "objects")
    command = [sys.executable, "-c", BUILD, str(folder), str(folder / "objects"), *args]
    environment = {**os.environ, "PYTHONPATH": str(Path(build_backend.__file__).parent)}
    environment["PYTHONDONTWRITEBYTECODE"] = ""  # Cython runs many times
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / done.stdout.splitlines()[-1]


def play(site: Path | None, **variables: str) -> dict[str, Any]:
    """What `play.py` prints, with the package in a folder, or the one that is installed."""
    environment = {**os.environ, **variables}
    if site is not None:
        environment["MESONPY_EDITABLE_SKIP"] = os.pathsep.join(map(str, editable_builds()))
        environment["PYTHONPATH"] = str(site)
    command = [sys.executable, str(Path(__file__).with_name("play.py"))]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert site is None or Path(found["from"]).is_relative_to(site)
    return found


def in_package(path: Path) -> str:
    """Where a source is installed."""
    return f"coterie/{path.relative_to(PACKAGE).as_posix()}"


def check_contents(names: set[str]) -> None:
    """Sources beside compiled modules, the marker of types, and nothing that only builds or tests need."""
    kept = {".py", ".pyx", ".pxd", ".pyi", ".c", ".h", ".typed", ".html", ".js", ".css", ".svg", ".jinja"}
    assert {in_package(path) for path in PACKAGE.rglob("*.*") if path.suffix in kept} <= names
    compiled = {name.partition(".")[0] for name in names if name.endswith(".so")}
    assert compiled == {in_package(path.with_suffix("")) for path in [*PACKAGE.rglob("*.pyx"), SHARED]}
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"coterie"}
    assert not [name for name in names if "meson.build" in name or "__pycache__" in name]


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the flags are those of x86-64 on Linux"
)
def test_policies_play_the_same_bits_for_every_processor_compiler_flag_and_libm(tmp_path: Path) -> None:
    """Two wheels and the installed package; about 80 s of CPU."""
    expected = play(None)["bits"]
    assert play(None, **WITHOUT_FMA)["bits"] == expected
    for processor in ("Prescott", "Haswell", "SkylakeX"):
        assert play(None, OPENBLAS_CORETYPE=processor)["bits"] == expected, processor
    assert play(None, NPY_DISABLE_CPU_FEATURES=FEATURES)["bits"] == expected
    for name, args in FLAGS.items():
        with ZipFile(build(tmp_path, args)) as wheel:
            check_contents(set(wheel.namelist()))
            wheel.extractall(tmp_path / name)
        assert play(tmp_path / name)["bits"] == expected, name
