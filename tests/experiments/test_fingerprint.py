"""Which code a result depends on."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest

from coterie.experiments import fingerprint as subject
from coterie.experiments.fingerprint import ROOT, code, family_of, fingerprint, sources
from coterie.policies.registry import REGISTRY

FAMILIES = frozenset(family_of(entry.make) for entry in REGISTRY.values())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The sources of this library, to be changed."""
    copy = tmp_path / "coterie"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return copy


def names(root: Path, family: str, *, families: frozenset[str] = FAMILIES, dataset: str = "yelp") -> set[str]:
    found = sources(root, family, families=families, dataset=dataset)
    return {path.relative_to(root).as_posix() for path in found}


def test_what_counts_is_the_family_what_all_share_the_environment_and_the_data(root: Path) -> None:
    found = names(root, "club")
    assert found >= {
        "policies/club.py",
        "policies/_club.pyx",
        "policies/_learner.pyx",
        "policies/_learner.pxd",
        "policies/linalg.c",
        "policies/linalg.h",
        "policies/base.py",
        "policies/confidence.py",
        "environments/population.py",
        "environments/smoothed.py",
        "simulation/simulator.py",
        "simulation/_rounds.pyx",
        "datasets/loaders/yelp.py",
        "datasets/dataset.py",
        "experiments/specs.py",
        "seeding.py",
    }


def test_other_families_other_datasets_and_lists_do_not_count(root: Path) -> None:
    found = names(root, "club")
    assert (
        not {
            "policies/sclub.py",
            "policies/_sclub.pyx",
            "policies/registry.py",
            "policies/__init__.py",
            "datasets/loaders/movielens.py",
            "datasets/catalogue.py",
            "experiments/figures.py",
            "cli/run.py",
            "progress.py",
        }
        & found
    )


def test_files_of_a_family_count_for_those_that_import_them(root: Path) -> None:
    assert names(root, "sclub2019") >= {"policies/_sclub.pyx", "policies/_sclub2019.pyx"}
    assert "policies/_sclub2019.pyx" not in names(root, "sclub")
    assert "policies/_club.pyx" not in names(root, "sclub2019")
    assert names(root, "autoclub") >= {
        "policies/_hier.pyx",
        "policies/_hier_rows.pyx",
    }  # by _autoclub_people.pyx
    assert "policies/_autoclub.pyx" not in names(root, "hier")


def test_adding_a_policy_in_files_of_its_own_changes_no_other(root: Path) -> None:
    before = {family: names(root, family) for family in FAMILIES}
    for path in ("mine.py", "_mine.pyx", "_mine.pxd", "mine_rounds.py"):
        (root / "policies" / path).touch()
    (root / "policies" / "yours").mkdir()
    for path in ("__init__.py", "rounds.py"):
        (root / "policies" / "yours" / path).touch()
    more = FAMILIES | {"mine", "yours"}
    assert {family: names(root, family, families=more) for family in FAMILIES} == before
    assert names(root, "mine", families=more) - names(root, "", families=more) == {
        "policies/mine.py",
        "policies/_mine.pyx",
        "policies/_mine.pxd",
        "policies/mine_rounds.py",
    }
    assert len(names(root, "yours", families=more) - names(root, "", families=more)) == 2


def test_c_that_cython_made_does_not_count_and_other_c_does(root: Path) -> None:
    (root / "policies" / "_club.c").touch()
    assert {"policies/_club.c", "policies/linalg.c"} & names(root, "club") == {"policies/linalg.c"}


def test_a_family_is_the_module_of_the_maker_or_its_package() -> None:
    assert family_of(REGISTRY["UniCLUB"].make) == "club"

    def make() -> None:
        """In a package."""

    make.__module__ = "coterie.policies.autoclub.maker"
    assert family_of(make) == "autoclub"


def written(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return code(tmp_path / name)


def test_remarks_and_layout_of_python_do_not_count(tmp_path: Path) -> None:
    first = written(tmp_path, "a.py", '"""Says."""\ndef f(x):\n    """More."""\n    return x + 1  # why\n')
    assert first == written(tmp_path, "b.py", "def f( x ):\n\n    # other\n    return (x+1)\n")
    assert first != written(tmp_path, "c.py", "def f(x):\n    return x + 2\n")


def test_comment_lines_of_compiled_sources_do_not_count_and_directives_do(tmp_path: Path) -> None:
    first = written(
        tmp_path, "a.pyx", "# cython: cdivision=True\n\n# why\ncdef int x = 1  # and\n    # how\n"
    )
    assert first == "# cython: cdivision=True\ncdef int x = 1  # and"
    plain = written(tmp_path, "a.h", "// why\n/* how */\n#define X 1\n\n*p = 1;\n")
    assert plain == "#define X 1\n*p = 1;"


def test_policies_of_a_family_share_a_fingerprint_and_others_do_not() -> None:
    assert fingerprint("CLUB", "yelp") == fingerprint("UniCLUB", "yelp")
    assert len({fingerprint(name, "yelp") for name in REGISTRY}) == len(FAMILIES)
    assert fingerprint("CLUB", "yelp") != fingerprint("CLUB", "lastfm")


def test_the_fingerprint_of_an_own_policy_follows_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "own_fingerprint.py"

    def found(text: str) -> str:
        file.write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return fingerprint("own_fingerprint:Policy", "synthetic")

    first = found("class Policy:\n    size = 1\n")
    assert found("class Policy:\n    size = 1  # as before\n") == first
    assert found("class Policy:\n    size = 2\n") != first


def test_the_fingerprint_of_an_own_policy_covers_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_covered.py").touch()
    before = fingerprint("own_covered:Policy", "synthetic")
    monkeypatch.setattr(subject, "_ours", lambda family, dataset: "changed")
    assert fingerprint("own_covered:Policy", "synthetic") != before
