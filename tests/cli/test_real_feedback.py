"""`coterie run` on rewards that nobody made up."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from cli.conftest import Call
from coterie.experiments.run_plan import guessed_dataset
from datasets import generated

ROWS = generated.rows(n_users=40, n_items=50, count=900)
SHORT = ("--horizon", "300", "--seeds", "2", "--arms", "5", "--dim", "6")


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    return generated.write(tmp_path / "ratings.csv", generated.movielens_csv(ROWS))


def own_table(folder: Path) -> Path:
    columns = {
        "who": [r.user for r in ROWS],
        "what": [r.item for r in ROWS],
        "worth": [r.rating for r in ROWS],
    }
    pl.DataFrame({**columns, "time": list(range(len(ROWS)))}).write_csv(folder / "own.csv")
    vectors = {"what": list(range(1, 51)), "x": [k % 7 for k in range(50)], "y": [k % 3 for k in range(50)]}
    pl.DataFrame(vectors).write_csv(folder / "vectors.csv")
    return folder / "own.csv"


def test_real_worlds_show_reward_beside_uniform_play(coterie: Call, ratings: Path) -> None:
    done = coterie("run", "--setting", "rated", "--data", ratings, "LinUCBInd", "CLUB", *SHORT)
    assert done.exit_code == 0, done.output
    assert "movielens, rated: " in done.output
    assert "× uniform" in done.output
    assert "ARI" not in done.output
    assert "Rewards are those that users gave" in done.output
    assert "20 of 40 users, whose feedback makes" in " ".join(done.output.split())  # lines are wrapped


def test_the_same_as_plain_values(coterie: Call, ratings: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = coterie(
        "run", "--setting", "rated", "--data", ratings, *SHORT, "--threshold", 3, "--json", "--out", out
    )
    found = json.loads(done.output)
    assert found["environment"]["threshold"] == 3
    assert 0.3 < found["environment"]["noise"] <= 0.5  # the deviation of clicks
    for policy in found["policies"]:
        assert policy["relative_to_uniform"] > 0.8
        assert policy["ari"] is None
    assert "relative" in (out / "summary.csv").read_text().splitlines()[0]
    again = coterie("compare", out, out, "--metric", "relative")
    assert "identical" in again.output
    assert "rated" in again.output


def test_own_payoffs_get_an_intercept_and_say_so(coterie: Call, tmp_path: Path) -> None:
    table = own_table(tmp_path)
    asked = ["run", "LinUCBInd", "--setting", "payoffs", "--data", table, "--items", tmp_path / "vectors.csv"]
    plain = (
        "--horizon",
        "300",
        "--seeds",
        "1",
        "--arms",
        "5",
        "--columns",
        "user=who,item=what,value=worth",
        "--json",
    )
    found = json.loads(coterie(*asked, *plain).output)
    assert found["environment"]["intercept"] is True
    assert "Arms have an intercept" in found["caution"]
    assert json.loads(coterie(*asked, *plain, "--no-intercept").output)["environment"]["intercept"] is False


def test_an_offset_brings_an_intercept(coterie: Call) -> None:
    small = (
        "--horizon",
        "500",
        "--seeds",
        "1",
        "--users",
        "8",
        "--clusters",
        "2",
        "--arms",
        "10",
        "--dim",
        "5",
    )
    regret = {}
    for given in ((), ("--no-intercept",)):
        found = json.loads(coterie("run", "LinUCBInd", "--set", "offset=5", *small, *given, "--json").output)
        regret[found["environment"]["intercept"]] = found["policies"][0]["regret"]
    assert regret[True] < 0.5 * regret[False]


def test_a_stream_plays_all_events_unless_more_are_asked_for(coterie: Call, tmp_path: Path) -> None:
    table = own_table(tmp_path)
    asked = (
        "run",
        "LinUCBOne",
        "--setting",
        "stream",
        "--data",
        table,
        "--arms",
        5,
        "--dim",
        6,
        "--seeds",
        1,
    )
    found = json.loads(coterie(*asked, "--json").output)
    assert 100 < found["horizon"] < 900
    refused = coterie(*asked, "--horizon", 5000)
    assert refused.exit_code == 2
    assert "horizon must be at most" in refused.output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("LinUCBOracle",), "LinUCBOracle needs the true clusters, and real feedback has none"),
        (("GOBLin",), "GOBLin needs a graph of the users, and only 'lastfm-2014' has one"),
        (("CLUB", "--dataset", "synthetic"), "'rated' needs real feedback: movielens"),
        (
            ("CLUB", "--missing", "drop"),
            "and --encoding cannot be given with --setting rated",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    coterie: Call, ratings: Path, options: tuple[str, ...], says: str
) -> None:
    done = coterie("run", "--setting", "rated", "--data", ratings, *SHORT, *options)
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())


def test_the_dataset_is_guessed_from_the_file(tmp_path: Path) -> None:
    generated.write(tmp_path / "hetrec" / "user_taggedartists.dat", generated.lastfm(ROWS))
    assert guessed_dataset(str(tmp_path)) == "lastfm"
    assert guessed_dataset("yelp_dataset.tar") == "yelp"
