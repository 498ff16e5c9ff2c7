"""What is built works where it was not built, and what cannot be built is refused in one sentence."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

import build_backend as backend
from docs.pages import PYTHON, ROOT, read

BUILT = ROOT / "build" / "editable"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def run(*words: str | Path, folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, check=check, capture_output=True, text=True, timeout=600)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A new virtual environment, as the path of its interpreter."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", folder=tmp_path)
    return tmp_path / "venv" / "bin" / "python"


@pytest.fixture
def build_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder as deep as that of the editable install, whose objects need not be compiled again."""
    folder = BUILT.with_name(f"wheel-{tmp_path.name}")
    if BUILT.is_dir():
        shutil.copytree(BUILT, folder, symlinks=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_wheel_runs_the_example_of_readme_in_an_empty_environment(
    empty: Path, build_folder: Path, tmp_path: Path
) -> None:
    words = ("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    run(*PIP, *words, f"--config-settings=builddir={build_folder}", folder=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    run(*PIP, "--python", empty, "install", "--no-deps", "--no-index", wheel, folder=tmp_path)
    # What coterie needs is that of this environment; the path alone does not lead to its editable install.
    packages = next((tmp_path / "venv" / "lib").glob("python3.*")) / "site-packages"
    (packages / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    where = run(empty, "-c", "import coterie; print(coterie.__file__)", folder=tmp_path).stdout
    assert Path(where.strip()).is_relative_to(tmp_path)
    (tmp_path / "example.py").write_text(PYTHON.findall(read(ROOT / "README.md"))[0], encoding="utf-8")
    assert "tea fan" in run(empty, "example.py", folder=tmp_path).stdout
    assert "--demo" in run(empty.with_name("coterie"), "serve", "--help", folder=tmp_path).stdout


@pytest.mark.slow
def test_without_isolation_the_missing_tools_are_named(empty: Path, tmp_path: Path) -> None:
    words = ("install", "--no-build-isolation", "--no-deps", "--no-index", "--editable", ROOT)
    refused = run(*PIP, "--python", empty, *words, folder=tmp_path, check=False)
    assert refused.returncode != 0
    told = refused.stdout + refused.stderr
    assert "coterie cannot be built without meson-python, meson, ninja, cython, numpy: run " in told
    assert "Traceback" not in told


def test_a_python_without_headers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.check_machine()  # here everything is there
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(SystemExit, match=r"has no Python.h here: install its headers \(on Debian and Ubuntu"):
        backend.check_machine()


def test_without_a_compiler_and_without_zig_the_latter_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(backend, "ZIG", "no-such-compiler>=0.13")
    with pytest.raises(SystemExit, match=r"^coterie cannot be built without no-such-compiler: run `python"):
        backend.check_machine()
