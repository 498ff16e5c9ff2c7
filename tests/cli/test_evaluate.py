"""`coterie evaluate`, and `coterie run --log` that writes what it reads."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import polars as pl
import pytest

from cli.conftest import SMALL, Call
from coterie.cli.progress_bars import EventProgress, event_progress
from coterie.evaluation import read_log

FEW = ("--resamples", "20")


@pytest.fixture
def log(coterie: Call, tmp_path: Path) -> Path:
    path = tmp_path / "log.parquet"
    done = coterie("run", "LinUCBOne", *SMALL, "--horizon", "1500", "--log", path, "--log-share", "0.5")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        f"{path}: 1,500 events of 8 users by LinUCBOne (beta 0.1) with 0.5 of uniform"
    )
    return path


def table(tmp_path: Path, **changes: object) -> Path:
    arms = json.dumps([[1.0, 0.5], [0.0, 1.0]])
    rows = {"user": ["a", "b"] * 20, "arms": [arms] * 40, "arm": [0, 1] * 20, "propensity": [0.5] * 40}
    rewards = {"reward": [0.1 * (k % 7 - 3) for k in range(40)]}
    made = {name: column for name, column in {**rows, **rewards, **changes}.items() if column is not None}
    pl.DataFrame(made).write_csv(tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_the_table_has_a_row_for_each_policy_and_estimator(coterie: Call, log: Path) -> None:
    done = coterie("evaluate", log, "--policy", "AutoCLUB", "--policy", "LinTSInd", *FEW)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("log.parquet: 1,500 events of 8 users, 10 arms of dim 5, mean reward")
    rows = [tuple(line.split()[:2]) for line in lines if line.split()[1:2]]
    for name in ("AutoCLUB", "LinTSInd"):
        assert [row[1] for row in rows if row[0] == name] == ["replay", "ips", "snips", "dr"]
    assert "(as logged)" in done.stdout
    assert "(uniform play)" in done.stdout
    assert "95% interval" in done.stdout


def test_json_and_files_have_everything(coterie: Call, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = json.loads(coterie("evaluate", log, "--out", out, "--json", *FEW).stdout)
    assert list(told["policies"]) == ["AutoCLUB", "LinUCBInd", "LinUCBOne", "ItemUCB"]
    assert len(told["estimates"]) == 16
    assert len(told["differences"]) == 4 * (4 + 3)
    assert told["verdict"].startswith("Verdict (dr): AutoCLUB ")
    assert told["events"] == 1500
    assert [Path(path).name for path in told["written"]] == [
        "evaluation.csv",
        "evaluation.png",
        "evaluation.svg",
        "evaluation.pdf",
    ]
    kept = pl.read_csv(out / "evaluation.csv")
    assert kept["reward"].to_list()[:16] == pytest.approx([one["reward"] for one in told["estimates"]])
    drawn = (out / "evaluation.svg").read_text(encoding="utf-8")
    for word in ("AutoCLUB", "LinUCB-Ind", "replay", "dr", "as logged"):
        assert word in drawn


def test_the_same_command_gives_the_same_bytes(coterie: Call, log: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert coterie("evaluate", log, "--out", tmp_path / name, *FEW).exit_code == 0
    for kind in ("csv", "png", "svg", "pdf"):
        one, two = (tmp_path / name / f"evaluation.{kind}" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_parameters_and_estimators_are_chosen(coterie: Call, log: Path) -> None:
    words = ("--policy", "LinUCBInd:beta=0.5", "--policy", "LinUCBInd:beta=1", "--estimators", "dr,ips")
    told = json.loads(coterie("evaluate", log, *words, "--json", *FEW).stdout)
    assert [one["params"]["beta"] for one in told["policies"].values()] == [0.5, 1.0]
    assert [one["estimator"] for one in told["estimates"]] == ["dr", "ips"] * 2


def test_the_usual_width_is_the_deviation_of_rewards(coterie: Call, log: Path) -> None:
    told = json.loads(coterie("evaluate", log, "--policy", "LinUCBInd", "--json", *FEW).stdout)
    assert told["policies"]["LinUCBInd"]["params"]["beta"] == pytest.approx(read_log(log).rewards.std())


def test_rewards_that_are_not_centred_get_an_intercept(coterie: Call, tmp_path: Path) -> None:
    path = table(tmp_path, reward=[5.0 + 0.1 * (k % 7) for k in range(40)])
    done = coterie("evaluate", path, "--json", *FEW)
    assert "a constant feature of 1 was added" in done.stderr
    assert json.loads(done.stdout)["dim"] == 3
    without = coterie("evaluate", path, "--json", "--no-intercept", *FEW)
    assert json.loads(without.stdout)["dim"] == 2
    assert "feature" not in without.stderr


def test_a_small_sample_is_warned_of(coterie: Call, tmp_path: Path) -> None:
    done = coterie("evaluate", table(tmp_path), "--policy", "AutoCLUB", *FEW)
    assert done.exit_code == 0
    assert "coterie: effective samples below 100 events: AutoCLUB replay (" in done.stderr


def test_own_tables_with_other_names_and_items(coterie: Call, tmp_path: Path) -> None:
    pl.DataFrame({"id": ["x", "y"], "a": [1.0, 0.0], "b": [0.5, 1.0]}).write_csv(tmp_path / "items.csv")
    path = table(tmp_path, user=None, customer=[3, 4] * 20, arms=['["x", "y"]'] * 40, propensity=None)
    words = ("--columns", "user=customer", "--items", tmp_path / "items.csv", "--uniform", "--json")
    told = json.loads(coterie("evaluate", path, *words, *FEW).stdout)
    assert (told["users"], told["events"]) == (2, 40)


@pytest.mark.parametrize(
    ("changes", "words", "code", "sentence"),
    [
        ({"propensity": [1.0] * 40}, (), 2, "every arm was logged with propensity 1"),
        ({"propensity": [1.5] * 40}, (), 1, "propensity must be above 0 and at most 1, got 1.5"),
        ({"reward": None}, (), 2, "the log has no column 'reward'"),
        ({"arm": [2] * 40}, (), 1, "arm must be from 0 to 1, got 2"),
        ({}, ("--policy", "LinUCBOracle"), 2, "LinUCBOracle needs the true clusters, and a log has none"),
        ({}, ("--policy", "AutoCLAB"), 2, "did you mean 'AutoCLUB'?"),
        ({}, ("--estimators", "ipw"), 2, "no estimator 'ipw'"),
        ({}, ("--level", "95"), 2, "level must lie strictly between 0 and 1"),
        ({}, ("--columns", "customer"), 2, "--columns needs key=value, got 'customer'"),
        ({}, ("--param", "gamma=1"), 2, "gamma is for policies that take it"),
    ],
)
def test_errors_are_one_sentence(
    coterie: Call,
    tmp_path: Path,
    changes: dict[str, object],
    words: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    done = coterie("evaluate", table(tmp_path, **changes), *words, *FEW)
    assert done.exit_code == code
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_log_without_propensities_gets_estimates_of_them(coterie: Call, tmp_path: Path) -> None:
    done = coterie("evaluate", table(tmp_path, propensity=None, arm=[0, 0, 1, 0, 1] * 8), "--json", *FEW)
    assert "propensities were not recorded and are estimated from what was played" in done.stderr
    assert {one["estimator"] for one in json.loads(done.stdout)["estimates"]} == {"ips", "snips", "dr"}


def test_a_plain_log_gets_an_answer_and_what_it_is_worth(coterie: Call, tmp_path: Path) -> None:
    vectors = {"id": ["x", "y", "z"], "a": [1.0, 0.0, 0.5], "b": [0.5, 1.0, 0.0]}
    pl.DataFrame(vectors).write_csv(tmp_path / "items.csv")
    rows = {"user": ["u", "v"] * 30, "item": ["x", "y", "z"] * 20, "click": [1, 0, 0, 1, 1, 0] * 10}
    pl.DataFrame({**rows, "time": range(60)}).write_csv(tmp_path / "plain.csv")
    words = (
        "evaluate",
        tmp_path / "plain.csv",
        "--columns",
        "reward=click",
        "--items",
        tmp_path / "items.csv",
    )
    done = coterie(*words, *FEW)
    assert done.exit_code == 0
    assert "Verdict (model, a prediction and no measurement): AutoCLUB " in done.stdout
    assert "replay, ips, snips and dr cannot be estimated" in done.stderr
    uniform = coterie(*words, "--uniform", "--arms", "2", *FEW)
    assert "Verdict (dr): AutoCLUB " in uniform.stdout
    assert "the item played and 1 others of the 3, drawn at random" in uniform.stderr
    refused = coterie(*words, "--estimators", "dr", *FEW)
    assert refused.exit_code == 2
    assert "the log has no propensities, so dr cannot be estimated" in refused.stderr


def test_a_missing_log_is_missing_data(coterie: Call, tmp_path: Path) -> None:
    done = coterie("evaluate", tmp_path / "none.parquet")
    assert done.exit_code == 3
    assert "no file at" in done.stderr


def test_an_own_policy_is_evaluated_and_its_errors_are_named(
    coterie: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logpolicies.py").write_text(
        "class First:\n"
        "    def recommend(self, user, arms):\n        return 0\n"
        "    def update(self, user, x, reward):\n        pass\n"
        "class Broken(First):\n"
        "    def update(self, user, x, reward):\n        raise KeyError('broken')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    path = table(tmp_path)
    assert "First" in coterie("evaluate", path, "--policy", "logpolicies:First", *FEW).stdout
    done = coterie("evaluate", path, "--policy", "logpolicies:First", "--policy", "logpolicies:Broken", *FEW)
    assert done.exit_code == 1
    assert "logpolicies:Broken (seed 0) raised KeyError: 'broken', at logpolicies.py:8" in done.stderr


def test_a_log_is_of_one_policy_and_the_first_seed(coterie: Call, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "log.parquet"
    told = json.loads(coterie("run", *SMALL, "--seeds", "5,6", "--log", path, "--json").stdout)
    assert (told["policy"], told["seed"], told["share"], told["events"]) == ("AutoCLUB", 5, 0.1, 512)
    assert told["bytes"] == path.stat().st_size
    assert sorted({f"{p:.3f}" for p in read_log(path).propensities}) == ["0.010", "0.910"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("LinUCBInd", "CLUB", "--log", "log.parquet"), "--log takes one policy, got 2: LinUCBInd, CLUB"),
        (("--log", "log.csv"), "--log must be a .parquet file, got 'log.csv'"),
        (("--log-share", "0.2"), "give --log FILE too"),
        (("--log", "log.parquet", "--log-share", "0"), "share must be above 0 and at most 1, got 0.0"),
        (("--log", "/proc/none/log.parquet"), "--log must be a file that can be written"),
    ],
)
def test_a_log_that_cannot_be_written_is_refused(
    coterie: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = coterie("run", *words, *SMALL)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert not list(tmp_path.glob("*.parquet"))


def test_without_a_terminal_a_line_is_written_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with event_progress("evaluating", 1000) as advance:
        advance(500)
    assert capsys.readouterr().err == ""
    EventProgress("evaluating", 1000, None, interval=0.0).advance(500)
    assert capsys.readouterr().err == "coterie: evaluating, 500 of 1,000\n"


def test_a_terminal_shows_a_bar_after_two_seconds() -> None:
    from rich.console import Console

    from coterie.cli.progress_bars import display

    clock = [0.0]
    bar = display(Console(force_terminal=True, file=StringIO()))
    progress = EventProgress("evaluating", 1000, bar, clock=lambda: clock[0])
    progress.advance(100)
    assert not bar.live.is_started
    clock[0] = 2.5
    progress.advance(100)
    assert bar.live.is_started
    bar.stop()
    assert bar.tasks[0].completed == 200
