"""`coterie compare`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from cli.conftest import SMALL, Call, run_here
from coterie.experiments.comparison import PolicyDifference, compare_results
from coterie.experiments.run_store import FinishedRun, Run, Store
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.simulation import Trace


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """CLUB with other constants, one policy the same, one policy and one seed in one folder only."""
    folder = tmp_path_factory.mktemp("results")
    first, second = folder / "first", folder / "second"
    assert run_here("run", "LinUCBInd", "LinUCBOne", "CLUB", *SMALL, "--out", first).exit_code == 0
    more = (*SMALL, "--seeds", "3", "--out", second)
    assert run_here("run", "LinUCBInd", "CLUB:alpha=0.2", *more).exit_code == 0
    return first, second


def test_runs_are_paired_by_world_policy_and_seed(coterie: Call, folders: tuple[Path, Path]) -> None:
    told = json.loads(coterie("compare", *folders, "--json").stdout)
    pairs = {one["policy"]: one for one in told["pairs"]}
    assert list(pairs) == ["CLUB (alpha 1.5 → 0.2)", "LinUCBInd (beta 0.1)"]
    same = pairs["LinUCBInd (beta 0.1)"]
    assert (same["seeds"], same["difference"], same["interval"]) == ([0, 1], 0.0, [0.0, 0.0])
    assert same["first"] == same["second"]
    assert [key.split(" ")[0] for key in told["only_first"]] == ["LinUCBOne"]
    assert sorted(key.split(" ")[0] for key in told["only_second"]) == ["CLUB", "LinUCBInd"]
    assert set(map(tuple, told["only_second"].values())) == {(2,)}


def test_the_page_says_what_is_only_in_one(coterie: Call, folders: tuple[Path, Path]) -> None:
    page = coterie("compare", *folders, "--each").stdout
    assert "identical" in page
    assert "seed 1" in page
    assert f"Only in {folders[0]}:" in page
    assert "LinUCBOne" in page


def test_other_columns_can_be_compared(coterie: Call, folders: tuple[Path, Path]) -> None:
    told = json.loads(coterie("compare", *folders, "--metric", "clusters", "--json").stdout)
    assert told["pairs"][-1]["first"] == [8.0, 8.0]
    wrong = coterie("compare", *folders, "--metric", "regrets")
    assert wrong.exit_code == 2
    assert "did you mean 'regret'?" in wrong.stderr
    assert coterie("compare", *folders, "--level", "2").exit_code == 2


def test_folders_with_nothing_in_common_are_exit_code_1(coterie: Call, tmp_path: Path) -> None:
    environment = EnvironmentSpec(n_users=8, n_clusters=2, n_arms=10, dim=5)
    for name, horizon in (("first", 64), ("second", 65)):
        run = Run(environment=environment, policy=PolicySpec("LinUCBOne"), horizon=horizon, seed=0)
        Store(tmp_path / name).save(run, finished(run, run.id, 1.0).trace)
    result = coterie("compare", tmp_path / "first", tmp_path / "second")
    assert result.exit_code == 1
    assert "no runs in common" in result.stderr


def test_a_file_that_is_no_result_is_named(coterie: Call, folders: tuple[Path, Path], tmp_path: Path) -> None:
    copytree(folders[0], tmp_path / "first")
    (tmp_path / "first" / "runs" / "0bad.parquet").write_bytes(b"nothing")
    result = coterie("compare", tmp_path / "first", folders[1])
    assert result.exit_code == 1
    assert "0bad.parquet" in result.stderr


def test_of_two_versions_of_a_run_that_of_todays_code_counts() -> None:
    contender = PolicySpec("LinUCBOne", {"beta": 0.1})
    run = Run(environment=EnvironmentSpec(), policy=contender, horizon=10, seed=0)
    now, before, long_ago = (
        finished(run, name, end) for name, end in ((run.id, 1.0), ("older", 2.0), ("oldest", 3.0))
    )
    for results, end in (([now, before], 1.0), ([before, now], 1.0), ([before, long_ago], 2.0)):
        (found,) = compare_results(results, [now], metric="regret", level=0.95).differences
        assert found.first.tolist() == [end]


def finished(run: Run, name: str, end: float) -> FinishedRun:
    line = np.array([end])
    trace = Trace("LinUCBOne", 0, np.array([10]), line, line, line, np.array([1]), line, line, float("nan"))
    return FinishedRun(name, run, trace)


def test_clusters_that_nobody_knows_are_not_compared_as_numbers() -> None:
    run = Run(environment=EnvironmentSpec(), policy=PolicySpec("nowhere:Mine"), horizon=10, seed=0)
    one = finished(run, "one", 1.0)
    one = one._replace(trace=replace(one.trace, clusters=np.array([-1])))
    (found,) = compare_results([one], [one], metric="clusters", level=0.95).differences
    assert np.isnan(found.first).all()
    assert found.verdict() == "unknown"


def test_runs_of_a_policy_that_cannot_be_imported_are_compared() -> None:
    run = Run(environment=EnvironmentSpec(), policy=PolicySpec("nowhere:Mine"), horizon=10, seed=0)
    first = [finished(run, "a", 1.0), finished(run, "b", 2.0)]
    (found,) = compare_results(first, [finished(run, "c", 3.0)], metric="regret", level=0.95).differences
    assert (found.first.tolist(), found.second.tolist()) == ([1.0], [3.0])


def match(*differences: float) -> PolicyDifference:
    first = np.full(len(differences), 10.0)
    return PolicyDifference("w", "p", tuple(range(len(differences))), first, first + differences, 0.95)


def test_the_interval_is_students() -> None:
    low, high = match(1.0, 2.0, 3.0).interval
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ((0.0, 0.0), "identical"),
        ((1.0, 1.1, 0.9), "second is higher by 10.0%"),
        ((-1.0, -1.1, -0.9), "second is lower by 10.0%"),
        ((1.0, -1.0, 0.5), "may be chance"),
        ((1.0,), "one seed says little"),
        ((float("nan"), float("nan")), "unknown"),
    ],
)
def test_the_verdict_is_what_the_interval_says(differences: tuple[float, ...], verdict: str) -> None:
    assert match(*differences).verdict() == verdict
