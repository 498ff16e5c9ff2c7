"""`.ci/run` installs what tests need before it runs them, on a machine that has nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / ".ci" / "run"
LOGGED = "make .venv/.installed-ray|make test"


class Machine:
    """A machine with so few programs that nothing else can run; it logs what is called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        for name in ("bash", "dirname", "cat", "rm", "env"):
            found = shutil.which(name)
            assert found is not None
            (folder / name).symlink_to(found)
        self.has("make", 'echo "make $*" >>"$LOG"; test "$CI" = true')
        self.has("apt-get", 'echo "apt-get $*" >>"$LOG"')
        self.has("id", "echo 0")

    def has(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!{self.folder / 'bash'}\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, *parts: str) -> tuple[int, str]:
        """The exit code of `.ci/run`, and what it called."""
        environment = {"PATH": str(self.folder), "LOG": str(self.log)}
        done = subprocess.run([RUN, *parts], env=environment, check=False, capture_output=True)
        called = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        return done.returncode, called.strip().replace("\n", "|")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_chromium_is_installed_from_fresh_lists_of_packages(machine: Machine) -> None:
    asked = "apt-get -qq update|apt-get -qq install -y --no-install-recommends chromium"
    assert machine.run("test") == (0, f"{asked}|{LOGGED}")


def test_others_than_root_install_by_sudo(machine: Machine) -> None:
    machine.has("id", "echo 1000")
    machine.has("sudo", 'echo "sudo" >>"$LOG"; "$@"')
    assert machine.run("test")[1].startswith("sudo|apt-get -qq update|sudo|apt-get -qq install")


@pytest.mark.parametrize("browser", ["chromium", "chromium-browser", "google-chrome"])
def test_a_browser_that_is_there_is_used(machine: Machine, browser: str) -> None:
    machine.has(browser, "")
    assert machine.run("test") == (0, LOGGED)


def test_no_test_runs_where_chromium_cannot_be_installed(machine: Machine) -> None:
    machine.has("apt-get", "exit 100")
    assert machine.run("test") == (1, "")


def test_all_parts_run_in_order_and_others_are_refused(machine: Machine) -> None:
    machine.has("chromium", "")
    assert machine.run("tests") == (2, "")
    assert machine.run() == (0, f"make lint|make docs|{LOGGED}")
