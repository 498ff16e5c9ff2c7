"""One Cython process makes the C files that are not up to date, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import build_backend

TOOL = Path(build_backend.__file__).with_name("cythonize.py")
ALL = {"one.c", "two.c", "package.two.c"}


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Three modules, an hour old; the first reads a `.pxd`, and two have the same name."""
    folder = tmp_path / "a folder"
    (folder / "package").mkdir(parents=True)
    texts = {
        "one.pyx": "cimport shared\ndef f(): return shared.N\n",
        "two.pyx": "def g(): return 2\n",
        "package/two.pyx": "def h(): return 3\n",
    }
    for name, text in {**texts, "shared.pxd": "cdef enum:\n    N = 1\n"}.items():
        (folder / name).write_text(text, encoding="utf-8")
        age(folder / name)
    return [folder / name for name in texts]


def age(path: Path) -> None:
    """Make a file an hour older."""
    long_ago = path.stat().st_mtime - 3600
    os.utime(path, (long_ago, long_ago))


def cythonize(folder: Path, sources: list[Path], *options: str) -> tuple[int, set[str]]:
    """The exit code, and the C files that were written."""
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.c")}
    cython, root = build_backend.find_command("cython"), folder / "a folder"
    command = [sys.executable, TOOL, root, folder, *sources, "--", cython, *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, encoding="utf-8")
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.c")}
    return done.returncode, {name for name in after if after[name] != before.get(name)}


def test_only_what_has_changed_is_written(tmp_path: Path, sources: list[Path]) -> None:
    assert cythonize(tmp_path, sources, "-3") == (0, ALL)
    assert "shared.pxd" in (tmp_path / "cythonize.d").read_text(encoding="utf-8")
    assert cythonize(tmp_path, sources, "-3") == (0, set())
    (sources[0].parent / "shared.pxd").touch()
    assert cythonize(tmp_path, sources, "-3") == (0, {"one.c"})
    (tmp_path / "package.two.c").unlink()
    assert cythonize(tmp_path, sources, "-3") == (0, {"package.two.c"})
    assert cythonize(tmp_path, sources, "-3", "-X", "cdivision=True") == (0, ALL)


def test_an_error_in_a_source_is_an_error_of_the_build_until_it_is_mended(
    tmp_path: Path, sources: list[Path]
) -> None:
    right = sources[0].read_text(encoding="utf-8")
    sources[0].write_text("def f(: pass\n", encoding="utf-8")
    assert cythonize(tmp_path, sources, "-3", "--fast-fail")[0] != 0
    assert cythonize(tmp_path, sources, "-3", "--fast-fail")[0] != 0
    sources[0].write_text(right, encoding="utf-8")
    assert cythonize(tmp_path, sources, "-3", "--fast-fail")[0] == 0
    assert {path.name for path in tmp_path.glob("*.c")} == ALL
