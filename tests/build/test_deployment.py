"""What is shipped and deployed: pinned actions, locked versions, the unit, the image, distributions."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from shutil import which

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from build.test_project import read_yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "coterie.service").read_text(encoding="utf-8")
PINNED = re.compile(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def locked(name: str) -> dict[str, list[Requirement]]:
    """The requirements of a lock file, by name."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    lines = re.sub(r" \\\n\s+--hash=\S+", "", text).splitlines()
    found: dict[str, list[Requirement]] = {}
    for line in filter(None, lines):
        read = Requirement(line)
        found.setdefault(canonicalize_name(read.name), []).append(read)
    return found


def needed(*extras: str) -> list[Requirement]:
    """What extras of the project need, as `tools/requirements.py` says."""
    program = [sys.executable, str(ROOT / "tools" / "requirements.py")]
    lines = [
        subprocess.run([*program, one], check=True, capture_output=True, text=True).stdout for one in extras
    ]
    return [Requirement(line) for line in "\n".join(lines).splitlines() if line.strip()]


def test_actions_are_pinned_by_the_hash_of_a_commit() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        lines = [
            line.strip(" -") for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line
        ]
        assert lines
        assert [line for line in lines if not PINNED.fullmatch(line)] == []


@pytest.mark.parametrize(
    ("name", "extras"),
    [("service.txt", ("service", "postgresql")), ("ci.txt", ("test", "lint", "docs", "ray"))],
)
def test_every_requirement_is_locked_at_a_version_that_it_allows(name: str, extras: tuple[str, ...]) -> None:
    found = locked(name)
    for one in needed(*extras):
        pins = found.get(canonicalize_name(one.name))
        assert pins, one
        for pin in pins:
            (exact,) = pin.specifier
            assert exact.operator == "=="
            assert one.specifier.contains(Version(exact.version), prereleases=True), (one, pin)


def closure(wanted: Iterable[Requirement]) -> set[str]:
    """The packages that requirements need here, with all that those need, as far as they are installed."""
    found: set[tuple[str, str]] = set()
    left = [(one, extra) for one in wanted for extra in ("", *one.extras)]
    while left:
        one, extra = left.pop()
        name = canonicalize_name(one.name)
        if (name, extra) in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        found.add((name, extra))
        try:
            needs = requires(one.name) or []
        except PackageNotFoundError:
            continue
        for text in needs:
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                need.marker = None
                left += [(need, each) for each in ("", *need.extras)]
    return {name for name, _ in found}


@pytest.mark.parametrize(
    ("name", "extras"),
    [("service.txt", ("service", "postgresql")), ("ci.txt", ("test", "lint", "docs", "ray"))],
)
def test_what_locked_packages_need_is_locked_too(name: str, extras: tuple[str, ...]) -> None:
    wanted = closure(needed(*extras))
    assert len(wanted) > 10
    assert wanted - locked(name).keys() == set()


def test_ci_installs_what_is_locked() -> None:
    ci = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")
    assert ci["env"]["PIP_CONSTRAINT"].endswith("/requirements/ci.txt")


def test_the_image_installs_only_what_has_a_known_hash() -> None:
    text = (ROOT / "requirements" / "service.txt").read_text(encoding="utf-8")
    pins = re.split(r"\n(?=\S)", text.strip())
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", one) for one in pins)
    image = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert "--require-hashes --requirement /requirements/service.txt" in image


def test_the_base_image_has_a_full_version_and_can_be_pinned_by_its_digest() -> None:
    lines = (DEPLOY / "Containerfile").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if re.fullmatch(r"ARG BASE=python:\d+\.\d+\.\d+-[\w-]+", line)]
    bases = [line for line in lines if line.startswith("FROM ")]
    assert bases
    assert all(re.fullmatch(r"FROM \$\{BASE\}( AS \w+)?", line) for line in bases)
    assert any("@sha256:" in line for line in lines if line.startswith("#"))


@pytest.mark.parametrize(
    "setting",
    [
        "MemoryMax",
        "LimitNOFILE",
        "TasksMax",
        "SystemCallFilter",
        "UMask",
        "ProtectSystem",
        "RestrictAddressFamilies",
    ],
)
def test_the_unit_limits_what_the_service_may_do(setting: str) -> None:
    assert re.search(rf"^{setting}=\S+", UNIT, re.MULTILINE)


def test_every_line_of_the_unit_is_a_setting_and_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    lines = [line for line in UNIT.splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"\[\w+\]|[A-Z]\w+=.*", line)] == []
    if which("systemd-analyze") is None:  # it comes with systemd, which containers do not have
        return
    path = tmp_path / "coterie.service"
    path.write_text(UNIT.replace("/opt/coterie/bin/coterie", "/bin/true"), encoding="utf-8")
    checked = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.slow
def test_a_source_distribution_holds_the_tracked_files_and_no_others(tmp_path: Path) -> None:
    program = "import sys; sys.path.insert(0, 'tools'); import build_backend as b; b.build_sdist(sys.argv[1])"
    words = [sys.executable, "-c", program, str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert names - {"PKG-INFO", ""} <= {
        str(one) for name in tracked.splitlines() for one in (Path(name), *Path(name).parents)
    }
    for name in (
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "meson.build",
        "tools/build_backend.py",
        "src/coterie/py.typed",
    ):
        assert name in names
    for file in (ROOT / "src" / "coterie" / "service" / "http" / "static").iterdir():
        assert file.relative_to(ROOT).as_posix() in names
