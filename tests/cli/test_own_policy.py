"""`coterie run` with a policy of one's own."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import SMALL, Call
from coterie.experiments.run_store import Store

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"
GREEDY = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[0]
LABELLED = """
class Labelled:
    def __init__(self, n_users):
        self.n_users = n_users

    def recommend(self, user, arms):
        return 0

    def update(self, user, x, reward):
        pass

    def labels(self):
        return [0] * self.n_users
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the policy of docs/reference/command-line.md, and with one that has labels."""
    (tmp_path / "greedy.py").write_text(GREEDY, encoding="utf-8")
    (tmp_path / "labelled.py").write_text(LABELLED, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in ("greedy", "labelled"):
        sys.modules.pop(name, None)


def results_of(coterie: Call, *arguments: object) -> dict[str, Any]:
    result = coterie("run", *arguments, *SMALL, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_it_plays_beside_registered_policies(coterie: Call) -> None:
    found = results_of(coterie, "--policy", "greedy:Greedy", "--policy", "CLUB", "--param", "epsilon=0.3")
    greedy, club = found["policies"]
    assert (greedy["policy"], greedy["label"]) == ("greedy:Greedy", "Greedy")
    assert greedy["constants"] == {"epsilon": 0.3}
    assert club["constants"] == {"alpha": 1.5, "beta": 0.1}
    assert greedy["regret"] > 0


def test_positional_words_name_it_too(coterie: Call) -> None:
    found = results_of(coterie, "greedy:Greedy", "greedy:Greedy:epsilon=0.5", "LinUCBOne")
    assert [one["label"] for one in found["policies"]] == ["Greedy", "Greedy (epsilon 0.5)", "LinUCBOne"]
    assert found["policies"][0]["regret"] != found["policies"][1]["regret"]


def test_the_same_command_gives_the_same_numbers(coterie: Call) -> None:
    one, two = (results_of(coterie, "greedy:Greedy")["policies"][0] for _ in range(2))
    assert one["regret_by_seed"] == two["regret_by_seed"]


def test_clusters_that_nobody_knows_are_a_dash(coterie: Call) -> None:
    row = next(
        line for line in coterie("run", "greedy:Greedy", *SMALL).stdout.splitlines() if "Greedy" in line
    )
    assert re.split(r" {2,}", row.strip())[3:5] == ["–", "–"]
    assert results_of(coterie, "greedy:Greedy")["policies"][0]["clusters"] is None


def test_labels_are_shown_where_a_policy_has_them(coterie: Call) -> None:
    (found,) = results_of(coterie, "labelled:Labelled")["policies"]
    assert (found["clusters"], found["ari"]) == (1.0, 0.0)


def test_results_are_kept_and_used_again_until_the_module_changes(coterie: Call, folder: Path) -> None:
    words = ("greedy:Greedy", "--out", folder / "results")
    first = results_of(coterie, *words)
    kept = {path: path.stat().st_mtime_ns for path in (folder / "results" / "runs").iterdir()}
    again = results_of(coterie, *words)
    assert again["runs"] == first["runs"]
    assert {path: path.stat().st_mtime_ns for path in (folder / "results" / "runs").iterdir()} == kept
    (folder / "greedy.py").write_text(GREEDY.replace("epsilon=0.1", "epsilon=0.7"), encoding="utf-8")
    sys.modules.pop("greedy")
    assert not set(results_of(coterie, *words)["runs"]) & set(first["runs"])
    assert len(list(Store(folder / "results"))) == 4


def test_the_picture_has_its_class_and_a_colour_of_its_own(coterie: Call, folder: Path) -> None:
    results_of(coterie, "greedy:Greedy", "labelled:Labelled", "CLUB", "--out", folder / "results")
    picture = (folder / "results" / "regret.svg").read_text(encoding="utf-8")
    assert ">Greedy<" in picture
    assert ">Labelled<" in picture
    assert len(set(re.findall(r"stroke: (#\w{6}); stroke-width: 1.3", picture))) == 3


def test_folders_with_such_runs_can_be_compared_without_the_module(coterie: Call, folder: Path) -> None:
    for name, epsilon in (("one", 0.1), ("two", 0.4)):
        results_of(coterie, "greedy:Greedy", "--param", f"epsilon={epsilon}", "--out", folder / name)
    (folder / "greedy.py").unlink()
    sys.modules.pop("greedy")
    result = coterie("compare", folder / "one", folder / "two", "--json")
    assert result.exit_code == 0, result.stderr
    (pair,) = json.loads(result.stdout)["pairs"]
    assert pair["policy"] == "greedy:Greedy (epsilon 0.1 → 0.4)"
    page = coterie("compare", folder / "one", folder / "two", "--metric", "ari", "--each").stdout
    assert "unknown" in page
    assert "nan" not in page


def test_the_installed_command_finds_modules_in_the_current_directory(folder: Path, child: Call) -> None:
    done = child("run", "greedy:Greedy", *SMALL, PYTHONSAFEPATH="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Greedy" in done.stdout


def test_it_can_be_timed(coterie: Call) -> None:
    result = coterie("bench", "greedy:Greedy", "--rounds", 256, "--repeats", 1, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)[0]["microseconds"] > 0


def test_a_policy_that_fails_is_named_with_the_place(coterie: Call, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(
        "class Failing:\n"
        "    def __init__(self, n_users, dim): pass\n"
        "    def recommend(self, user, arms): raise KeyError('mine')\n"
        "    def update(self, user, x, reward): pass\n",
        encoding="utf-8",
    )
    sys.path.insert(0, str(tmp_path))
    try:
        told = coterie("run", "failing:Failing", "LinUCBOne", "--horizon", "300", "--seeds", "1")
    finally:
        sys.path.remove(str(tmp_path))
    assert told.exit_code == 1
    assert told.stderr.strip() == "coterie: failing:Failing (seed 0) raised KeyError: 'mine', at failing.py:3"
