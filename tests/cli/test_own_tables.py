"""`coterie run` and `coterie evaluate` on a stranger's files: each mistake has its own sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.conftest import Call

N, USERS, ITEMS = 600, 20, 40
SHORT = ("--horizon", "60", "--seeds", "1", "--arms", "4", "--dim", "4")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tables of clicks and ratings with items as CSV, as an array and with a column of lists."""
    rng = np.random.default_rng(3)
    users, items = rng.integers(0, USERS, N), rng.integers(0, ITEMS, N)
    clicks = (rng.random(N) < 0.2 + 0.6 * (users % 2 == items % 2)).astype(int)
    vectors = np.round(rng.normal(size=(ITEMS, 3)), 2)
    plain = {"user": users, "item": items}
    pl.DataFrame({**plain, "click": clicks, "time": np.arange(N)}).write_csv(tmp_path / "log.csv")
    pl.DataFrame({**plain, "rating": 1 + 3 * clicks + (items % 2)}).write_csv(tmp_path / "ratings.csv")
    columns = {f"f{k}": vectors[:, k] for k in range(3)}
    pl.DataFrame({"item": np.arange(ITEMS), **columns}).write_csv(tmp_path / "items.csv")
    pl.DataFrame({"item": np.arange(ITEMS), "x": vectors.tolist()}).write_parquet(tmp_path / "items.parquet")
    np.save(tmp_path / "items.npy", vectors)
    (tmp_path / "mine.py").write_text("class Greedy:\n    pass\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one_line(output: str) -> str:
    return " ".join(output.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        # A file called ratings.csv is your own table where its columns are named.
        (
            "--data ratings.csv --columns user=user,item=item,value=rating",
            "the value column 'rating' needs a threshold, above which feedback is 1 (--threshold); "
            "the setting 'rated' takes values as rewards",
        ),
        (
            "--setting stream --data log.csv --columns user=user,item=item,value=click,time=time",
            "--threshold must be given where values of a stream may be 0 or less, such as 0 for clicks",
        ),
        (
            "--setting rated --data ratings.csv --items items.csv",
            "--items are for the setting 'payoffs': 'rated' makes vectors from other users' feedback",
        ),
        ("--data ratings.csv --items items.csv", "--items can only be given with --setting payoffs"),
        (
            "--setting payoffs --data log.csv --items items.csv --threshold 0",
            "--threshold has no effect on the setting 'payoffs', whose values are rewards",
        ),
        ("--setting payoffs --data log.csv --items nothing.npy", "no file at 'nothing.npy'"),
        ("--setting payoffs --data log.csv --items mine.py", "a table is a file that ends in .csv"),
        (
            "--setting payoffs --data items.parquet --items items.npy",
            "items.parquet must hold numbers or text, and its column",
        ),
        ("--dataset synthetic --data log.csv", "--data has no effect with --dataset synthetic"),
        ("--setting rated --data ratings.csv --clusters 3", "--clusters has no effect with --setting rated"),
        ("--setting rated --data ratings.csv --scale raw", "--scale has no effect with --setting rated"),
        ("--setting rated --data ratings.csv --set zipf=1", "zipf has no effect with --setting rated"),
        ("--set once=true", "once has no effect with --setting stochastic"),
        ("--set sigma=0.5", "sigma has no effect with --setting stochastic"),
        ("--set liar_sd=3", "liar_sd has no effect with other parameters of this environment"),
        ("--set rewards=bernoulli --noise 0.2", "--noise has no effect with other parameters"),
        ("--data log.csv --columns who=user,item=item", "no column of a table 'who'. They are user, item"),
        ("--data log.csv --columns customer,item", "--columns must be OURS=YOURS pairs separated by commas"),
        ("--data log.csv --columns item=film", "--columns must name two or three of user, item, click, time"),
        ("--setting stream --data ratings.csv --columns user=user", "must be among user, item, rating, got"),
        (
            "--setting rated --data log.csv --columns user=user,item=item,value=click,time=time",
            "--columns have no use for a time, which is for --setting stream: leave it out",
        ),
        ("--policy mine.py", "a policy of your own is MODULE:CLASS: write mine:CLASS, got 'mine.py'"),
        ("--policy mine.py:Greedy", "a policy of your own is MODULE:CLASS: write mine:Greedy, got"),
        ("--json --chart", "--chart has no effect with --json"),
        ("--log a.parquet --out results", "--out has no effect with --log"),
    ],
)
def test_what_has_no_effect_or_cannot_be_is_refused_in_a_sentence(
    coterie: Call, folder: Path, words: str, says: str
) -> None:
    before = sorted(folder.iterdir())
    done = coterie("run", *words.split())
    assert done.exit_code in (2, 3, 1), done.output
    assert one_line(done.output).startswith("coterie: ")
    assert says in one_line(done.output)
    assert sorted(path for path in folder.iterdir() if path.name != "cache") == before


def test_clicks_of_a_stream_are_the_rows_above_the_threshold(coterie: Call, folder: Path) -> None:
    asked = ("run", "LinUCBOne", "--setting", "stream", "--data", "log.csv", "--seeds", 1, "--arms", 4)
    clicks = pl.read_csv(folder / "log.csv")["click"].sum()
    found = json.loads(
        coterie(
            *asked,
            "--dim",
            4,
            "--columns",
            "user=user,item=item,value=click,time=time",
            "--threshold",
            0,
            "--json",
        ).stdout
    )
    assert found["horizon"] < clicks < 0.7 * N  # half of the users are served
    every = json.loads(
        coterie(*asked, "--dim", 4, "--columns", "user=user,item=item,time=time", "--json").stdout
    )
    assert every["horizon"] > 1.3 * found["horizon"]


def test_a_table_named_ratings_is_your_own_where_columns_are_named(coterie: Call, folder: Path) -> None:
    words = ("run", "LinUCBOne", "--data", "ratings.csv", "--setting", "rated", *SHORT, "--json")
    for columns in ("value=rating", "item=item,user=user,value=rating"):
        found = json.loads(coterie(*words, "--columns", columns).stdout)
        assert found["environment"]["dataset"] == "interactions"
    simulated = (
        "run",
        "LinUCBOne",
        "--data",
        "ratings.csv",
        "--columns",
        "user=user,item=item",
        *SHORT,
        "--json",
    )
    found = json.loads(coterie(*simulated, "--users", 10, "--clusters", 2).stdout)
    environment = found["environment"]
    assert (environment["dataset"], environment["setting"]) == ("interactions", "stochastic")


def test_items_may_be_columns_lists_or_an_array(coterie: Call, folder: Path) -> None:
    words = ("run", "LinUCBOne", "--setting", "payoffs", "--data", "log.csv", "--horizon", 60, "--seeds", 1)
    told = [
        json.loads(coterie(*words, "--arms", 4, "--items", name, "--json").stdout)["policies"][0]["regret"]
        for name in ("items.csv", "items.parquet", "items.npy")
    ]
    assert told[0] == told[1] == told[2]
